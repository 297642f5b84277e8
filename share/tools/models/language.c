/* SPDX-License-Identifier: BSD-3-Clause */
#include "net.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/heap.h"

/* BERT-Base (Devlin et al. 2019) with its pre-training heads */

#define WIDTH 768

static int layernorm(struct net *n, int from, const char *layer_name)
{
	net_push(n, GF_LAYER_LAYERNORM, layer_name, &from, 1)->epsilon = 1e-12;
	return net_last(n);
}

/* fc, dropout, residual, layernorm */
static int bert_output(struct net *n, int x, int residual, const char *prefix)
{
	x = net_fc(n, x, net_name("%s.output.dense", prefix), WIDTH);
	x = net_dropout(n, x, net_name("%s.output.dropout", prefix), 0.1);
	x = net_add(n, x, residual, net_name("%s.output.add", prefix));
	return layernorm(n, x, net_name("%s.output.LayerNorm", prefix));
}

static int bert_layer(struct net *n, int x, const char *prefix)
{
	static const char *const parts[] = {"query", "key", "value"};
	char *attention = gf_xasprintf("%s.attention", prefix);
	int from[3], y;
	size_t i;

	for (i = 0; i < 3; i++)
		from[i] = net_fc(n, x,
				 net_name("%s.self.%s", attention, parts[i]),
				 WIDTH);
	net_push(n, GF_LAYER_ATTENTION, net_name("%s.self", attention), from, 3)
		->heads = 12;
	x = bert_output(n, net_last(n), x, attention);
	y = net_fc(n, x, net_name("%s.intermediate.dense", prefix), 4 * WIDTH);
	y = net_simple(n, GF_LAYER_GELU, y,
		       net_name("%s.intermediate.gelu", prefix));
	free(attention);
	return bert_output(n, y, x, prefix);
}

/* The masked words come last: their scores are the model's output. The pair of
 * sentences is scored from position 0. */
static void bert_heads(struct net *n, int x)
{
	int y = net_simple(n, GF_LAYER_SELECT, x, "bert.pooler.first");

	y = net_fc(n, y, "bert.pooler.dense", WIDTH);
	y = net_simple(n, GF_LAYER_TANH, y, "bert.pooler.tanh");
	net_fc(n, y, "cls.seq_relationship", 2);
	x = net_fc(n, x, "cls.predictions.transform.dense", WIDTH);
	x = net_simple(n, GF_LAYER_GELU, x, "cls.predictions.transform.gelu");
	x = layernorm(n, x, "cls.predictions.transform.LayerNorm");
	x = net_fc(n, x, "cls.predictions.decoder", 30522);
	n->m.layers[x].tied = gf_xstrdup("bert.embeddings.word_embeddings");
}

void model_bert_base(struct net *n)
{
	int words, places, kinds, x, i;

	words = net_embedding(n, "bert.embeddings.word_embeddings", 30522,
			      WIDTH);
	places = net_embedding(n, "bert.embeddings.position_embeddings", 512,
			       WIDTH);
	kinds = net_embedding(n, "bert.embeddings.token_type_embeddings", 2,
			      WIDTH);
	x = net_add(n, words, places, "bert.embeddings.add1");
	x = net_add(n, x, kinds, "bert.embeddings.add2");
	x = layernorm(n, x, "bert.embeddings.LayerNorm");
	x = net_dropout(n, x, "bert.embeddings.dropout", 0.1);
	for (i = 0; i < 12; i++) {
		char *prefix = gf_xasprintf("bert.encoder.layer.%d", i);

		x = bert_layer(n, x, prefix);
		free(prefix);
	}
	bert_heads(n, x);
}

/* LSTM on PTB (Zaremba et al. 2014), "large" */
void model_lstm_ptb(struct net *n)
{
	int x = net_embedding(n, "encoder", 10000, 1500), i;

	for (i = 0; i < 2; i++) {
		x = net_dropout(n, x, net_name("drop%d", i), 0.65);
		net_push(n, GF_LAYER_LSTM, net_name("rnn.%d", i), &x, 1)
			->filters = 1500;
		x = net_last(n);
	}
	x = net_dropout(n, x, "drop2", 0.65);
	net_fc(n, x, "decoder", 10000);
}

/* a small one for the shipped text, character by character */
void model_lstm_text(struct net *n)
{
	int x = net_embedding(n, "encoder", 128, 32), i;

	for (i = 0; i < 2; i++) {
		net_push(n, GF_LAYER_LSTM, net_name("rnn.%d", i), &x, 1)
			->filters = 128;
		x = net_last(n);
	}
	net_fc(n, x, "decoder", 128);
}
