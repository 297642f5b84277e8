/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gen_models DIR: writes the models of the papers, and resnet20, as gf-model
 * documents. Layers carry the names that PyTorch's own versions give them, so
 * that profiles made there fit. tests/docs/models.sh compares what is shipped
 * in share/models with what this program writes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "doc/model.h"

#define INPUT (-1)

struct net {
	struct gf_model m;
	size_t capacity;
};

/* --- layers: each returns its index, for `from` --------------------------- */

struct window {
	size_t high, wide, stride, pad_high, pad_wide, groups;
};

static struct window square(size_t side, size_t stride, size_t pad)
{
	return (struct window){side, side, stride, pad, pad, 1};
}

/* A window that keeps the size of an image: 1 x 7, 3 x 1, ... */
static struct window same(size_t high, size_t wide)
{
	return (struct window){high, wide, 1, high / 2, wide / 2, 1};
}

static char *name(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *name(const char *fmt, ...)
{
	/* more than are alive at once in any expression below */
	static char texts[8][128];
	static unsigned next;
	char *text = texts[next++ % GF_ARRAY_LENGTH(texts)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(texts[0]), fmt, ap);
	va_end(ap);
	return text;
}

static struct gf_layer *push(struct net *n, enum gf_layer_type type,
			     const char *layer_name, const int *from,
			     size_t count)
{
	struct gf_layer *l =
		gf_array_push(&n->m.layers, &n->m.nlayers, &n->capacity);

	l->name = gf_xstrdup(layer_name);
	l->type = type;
	l->inputs = gf_xmemdup(from, count * sizeof(*from));
	l->ninputs = count;
	l->stride = l->groups = 1;
	l->bias = true;
	l->epsilon = 1e-5;
	l->momentum = 0.1;
	return l;
}

static int last(const struct net *n)
{
	return (int)n->m.nlayers - 1;
}

static int simple(struct net *n, enum gf_layer_type type, int from,
		  const char *layer_name)
{
	push(n, type, layer_name, &from, 1);
	return last(n);
}

static int relu(struct net *n, int from, const char *layer_name)
{
	return simple(n, GF_LAYER_RELU, from, layer_name);
}

static struct gf_layer *windowed(struct net *n, enum gf_layer_type type,
				 int from, const char *layer_name,
				 struct window w)
{
	struct gf_layer *l = push(n, type, layer_name, &from, 1);

	l->kernel = w.high;
	l->kernel_w = w.wide;
	l->stride = w.stride;
	l->pad = w.pad_high;
	l->pad_w = w.pad_wide;
	l->groups = w.groups;
	return l;
}

static int conv(struct net *n, int from, const char *layer_name, size_t filters,
		struct window w)
{
	struct gf_layer *l = windowed(n, GF_LAYER_CONV, from, layer_name, w);

	l->filters = filters;
	l->bias = false;
	return last(n);
}

static int conv_with_bias(struct net *n, int from, const char *layer_name,
			  size_t filters, struct window w)
{
	conv(n, from, layer_name, filters, w);
	n->m.layers[last(n)].bias = true;
	return last(n);
}

static int pool(struct net *n, enum gf_layer_type type, int from,
		const char *layer_name, struct window w)
{
	windowed(n, type, from, layer_name, w);
	return last(n);
}

static int batchnorm(struct net *n, int from, const char *layer_name)
{
	return simple(n, GF_LAYER_BATCHNORM, from, layer_name);
}

static int fc(struct net *n, int from, const char *layer_name, size_t outputs)
{
	push(n, GF_LAYER_FC, layer_name, &from, 1)->filters = outputs;
	return last(n);
}

static int dropout(struct net *n, int from, const char *layer_name, double rate)
{
	push(n, GF_LAYER_DROPOUT, layer_name, &from, 1)->rate = rate;
	return last(n);
}

static int add(struct net *n, int a, int b, const char *layer_name)
{
	const int from[] = {a, b};

	push(n, GF_LAYER_ADD, layer_name, from, 2);
	return last(n);
}

static int concat(struct net *n, const char *layer_name, const int *from,
		  size_t count)
{
	push(n, GF_LAYER_CONCAT, layer_name, from, count);
	return last(n);
}

/* --- AlexNet (Krizhevsky 2012, two groups), batch norm after convolutions --
 */

static int alexnet_block(struct net *n, int x, int index, size_t filters,
			 struct window w)
{
	x = conv_with_bias(n, x, name("conv%d", index), filters, w);
	x = batchnorm(n, x, name("bn%d", index));
	return relu(n, x, name("relu%d", index));
}

static void alexnet(struct net *n)
{
	struct window two = {5, 5, 1, 2, 2, 2}, three = {3, 3, 1, 1, 1, 2};
	int x = INPUT, i;

	x = alexnet_block(n, x, 1, 96, square(11, 4, 0));
	x = pool(n, GF_LAYER_MAXPOOL, x, "pool1", square(3, 2, 0));
	x = alexnet_block(n, x, 2, 256, two);
	x = pool(n, GF_LAYER_MAXPOOL, x, "pool2", square(3, 2, 0));
	x = alexnet_block(n, x, 3, 384, square(3, 1, 1));
	x = alexnet_block(n, x, 4, 384, three);
	x = alexnet_block(n, x, 5, 256, three);
	x = pool(n, GF_LAYER_MAXPOOL, x, "pool5", square(3, 2, 0));
	for (i = 6; i < 8; i++) {
		x = fc(n, x, name("fc%d", i), 4096);
		x = relu(n, x, name("relu%d", i));
		x = dropout(n, x, name("drop%d", i), 0.5);
	}
	fc(n, x, "fc8", 1000);
}

/* --- VGG-16 (Simonyan, Zisserman 2015), configuration D --------------------
 */

static void vgg16(struct net *n)
{
	static const struct {
		size_t filters;
		int convs;
	} blocks[] = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
	int x = INPUT, index = 0, k;
	size_t b;

	for (b = 0; b < GF_ARRAY_LENGTH(blocks); b++) {
		for (k = 0; k < blocks[b].convs; k++) {
			x = conv_with_bias(n, x, name("features.%d", index++),
					   blocks[b].filters, square(3, 1, 1));
			x = relu(n, x, name("features.%d", index++));
		}
		x = pool(n, GF_LAYER_MAXPOOL, x, name("features.%d", index++),
			 square(2, 2, 0));
	}
	for (k = 0; k < 2; k++) {
		x = fc(n, x, name("classifier.%d", 3 * k), 4096);
		x = relu(n, x, name("classifier.%d", 3 * k + 1));
		x = dropout(n, x, name("classifier.%d", 3 * k + 2), 0.5);
	}
	fc(n, x, "classifier.6", 1000);
}

/* --- ResNet (He et al. 2016) ---------------------------------------------- */

struct resnet {
	int blocks[4];
	int stages;
	size_t width;    /* of the first stage */
	bool bottleneck; /* 1x1, 3x3, 1x1 instead of two 3x3 */
};

/* conv, bn and, unless it is a block's last, relu */
static int resnet_conv(struct net *n, int x, const char *block, int index,
		       size_t filters, struct window w)
{
	x = conv(n, x, name("%s.conv%d", block, index), filters, w);
	return batchnorm(n, x, name("%s.bn%d", block, index));
}

static int resnet_block(struct net *n, int x, const char *block, size_t width,
			const struct resnet *r, size_t stride, bool project)
{
	size_t outputs = r->bottleneck ? 4 * width : width;
	int y = x, shortcut = x;

	if (r->bottleneck) {
		y = resnet_conv(n, y, block, 1, width, square(1, 1, 0));
		y = relu(n, y, name("%s.relu1", block));
		y = resnet_conv(n, y, block, 2, width, square(3, stride, 1));
		y = relu(n, y, name("%s.relu2", block));
		y = resnet_conv(n, y, block, 3, outputs, square(1, 1, 0));
	} else {
		y = resnet_conv(n, y, block, 1, width, square(3, stride, 1));
		y = relu(n, y, name("%s.relu1", block));
		y = resnet_conv(n, y, block, 2, width, square(3, 1, 1));
	}
	if (project) {
		shortcut = conv(n, x, name("%s.downsample.0", block), outputs,
				square(1, stride, 0));
		shortcut =
			batchnorm(n, shortcut, name("%s.downsample.1", block));
	}
	x = add(n, y, shortcut, name("%s.add", block));
	return relu(n, x, name("%s.relu", block));
}

static int resnet_stages(struct net *n, int x, const struct resnet *r)
{
	size_t width = r->width;
	int stage, k;

	for (stage = 0; stage < r->stages; stage++, width *= 2) {
		for (k = 0; k < r->blocks[stage]; k++) {
			bool first = k == 0;
			char *block = gf_xasprintf("layer%d.%d", stage + 1, k);

			x = resnet_block(n, x, block, width, r,
					 first && stage ? 2 : 1,
					 first && (stage || r->bottleneck));
			free(block);
		}
	}
	return x;
}

static void resnet_imagenet(struct net *n, const struct resnet *r)
{
	int x;

	x = conv(n, INPUT, "conv1", 64, square(7, 2, 3));
	x = batchnorm(n, x, "bn1");
	x = relu(n, x, "relu");
	x = pool(n, GF_LAYER_MAXPOOL, x, "maxpool", square(3, 2, 1));
	x = resnet_stages(n, x, r);
	x = simple(n, GF_LAYER_GLOBALPOOL, x, "avgpool");
	fc(n, x, "fc", 1000);
}

static void resnet18(struct net *n)
{
	resnet_imagenet(n, &(struct resnet){{2, 2, 2, 2}, 4, 64, false});
}

static void resnet50(struct net *n)
{
	resnet_imagenet(n, &(struct resnet){{3, 4, 6, 3}, 4, 64, true});
}

static void resnet152(struct net *n)
{
	resnet_imagenet(n, &(struct resnet){{3, 8, 36, 3}, 4, 64, true});
}

/* For CIFAR; projections where the shape changes (option B). */
static void resnet20(struct net *n)
{
	int x;

	x = conv(n, INPUT, "conv1", 16, square(3, 1, 1));
	x = batchnorm(n, x, "bn1");
	x = relu(n, x, "relu");
	x = resnet_stages(n, x, &(struct resnet){{3, 3, 3}, 3, 16, false});
	x = simple(n, GF_LAYER_GLOBALPOOL, x, "avgpool");
	fc(n, x, "fc", 10);
}

/* --- DenseNet-201 (Huang et al. 2017), growth 32 -------------------------- */

static int norm_relu_conv(struct net *n, int x, const char *prefix, int index,
			  size_t filters, struct window w)
{
	x = batchnorm(n, x, name("%s.norm%d", prefix, index));
	x = relu(n, x, name("%s.relu%d", prefix, index));
	return conv(n, x, name("%s.conv%d", prefix, index), filters, w);
}

static int dense_layer(struct net *n, int x, const char *prefix)
{
	int pair[2] = {x, 0};

	x = norm_relu_conv(n, x, prefix, 1, 128, square(1, 1, 0));
	pair[1] = norm_relu_conv(n, x, prefix, 2, 32, square(3, 1, 1));
	return concat(n, name("%s.concat", prefix), pair, 2);
}

static int transition(struct net *n, int x, int index, size_t filters)
{
	x = batchnorm(n, x, name("features.transition%d.norm", index));
	x = relu(n, x, name("features.transition%d.relu", index));
	x = conv(n, x, name("features.transition%d.conv", index), filters,
		 square(1, 1, 0));
	return pool(n, GF_LAYER_AVGPOOL, x,
		    name("features.transition%d.pool", index), square(2, 2, 0));
}

static void densenet201(struct net *n)
{
	static const int blocks[] = {6, 12, 48, 32};
	size_t channels = 64, b;
	int x, k;

	x = conv(n, INPUT, "features.conv0", 64, square(7, 2, 3));
	x = batchnorm(n, x, "features.norm0");
	x = relu(n, x, "features.relu0");
	x = pool(n, GF_LAYER_MAXPOOL, x, "features.pool0", square(3, 2, 1));
	for (b = 0; b < GF_ARRAY_LENGTH(blocks); b++) {
		for (k = 0; k < blocks[b]; k++) {
			char *prefix = gf_xasprintf(
				"features.denseblock%zu.denselayer%d", b + 1,
				k + 1);

			x = dense_layer(n, x, prefix);
			free(prefix);
			channels += 32;
		}
		if (b + 1 < GF_ARRAY_LENGTH(blocks)) {
			channels /= 2;
			x = transition(n, x, (int)b + 1, channels);
		}
	}
	x = batchnorm(n, x, "features.norm5");
	x = relu(n, x, "features.relu5");
	x = simple(n, GF_LAYER_GLOBALPOOL, x, "features.pool5");
	fc(n, x, "classifier", 1000);
}

/* --- Inception-v4 (Szegedy et al. 2017) ----------------------------------- */

struct step {
	size_t filters;
	struct window w;
};

static int basic(struct net *n, int x, const char *prefix, struct step s)
{
	x = conv(n, x, name("%s.conv", prefix), s.filters, s.w);
	x = batchnorm(n, x, name("%s.bn", prefix));
	n->m.layers[x].epsilon = 0.001;
	return relu(n, x, name("%s.relu", prefix));
}

/* Convolutions one after the other; ends where filters is 0. */
static int branch(struct net *n, int x, const char *prefix,
		  const struct step *steps)
{
	int i;

	for (i = 0; steps[i].filters; i++) {
		char *step = gf_xasprintf("%s.%d", prefix, i);

		x = basic(n, x, step, steps[i]);
		free(step);
	}
	return x;
}

#define ONE   square(1, 1, 0)
#define THREE square(3, 1, 1)
#define HALVE square(3, 2, 0)
#define BRANCH(...)                                                            \
	(const struct step[])                                                  \
	{                                                                      \
		__VA_ARGS__,                                                   \
		{                                                              \
			0                                                      \
		}                                                              \
	}

static int inception_branch(struct net *n, int x, const char *block, int index,
			    const struct step *steps)
{
	char *prefix = gf_xasprintf("%s.branch%d", block, index);

	x = branch(n, x, prefix, steps);
	free(prefix);
	return x;
}

/* The branch that pools and then, maybe, convolves. */
static int pool_branch(struct net *n, int x, const char *block, int index,
		       size_t filters)
{
	x = pool(n, GF_LAYER_AVGPOOL, x, name("%s.branch%d.pool", block, index),
		 square(3, 1, 1));
	return inception_branch(n, x, block, index, BRANCH({filters, ONE}));
}

static int halve_pool(struct net *n, int x, const char *block, int index)
{
	return pool(n, GF_LAYER_MAXPOOL, x,
		    name("%s.branch%d.pool", block, index), HALVE);
}

static int inception_stem(struct net *n)
{
	int x, b[2];

	x = branch(n, INPUT, "features",
		   BRANCH({32, HALVE}, {32, square(3, 1, 0)}, {64, THREE}));
	b[0] = halve_pool(n, x, "features.3", 0);
	b[1] = inception_branch(n, x, "features.3", 1, BRANCH({96, HALVE}));
	x = concat(n, "features.3.concat", b, 2);
	b[0] = inception_branch(n, x, "features.4", 0,
				BRANCH({64, ONE}, {96, square(3, 1, 0)}));
	b[1] = inception_branch(n, x, "features.4", 1,
				BRANCH({64, ONE}, {64, same(1, 7)},
				       {64, same(7, 1)},
				       {96, square(3, 1, 0)}));
	x = concat(n, "features.4.concat", b, 2);
	b[0] = inception_branch(n, x, "features.5", 0, BRANCH({192, HALVE}));
	b[1] = halve_pool(n, x, "features.5", 1);
	return concat(n, "features.5.concat", b, 2);
}

static int inception_a(struct net *n, int x, const char *block)
{
	int b[4];

	b[0] = inception_branch(n, x, block, 0, BRANCH({96, ONE}));
	b[1] = inception_branch(n, x, block, 1, BRANCH({64, ONE}, {96, THREE}));
	b[2] = inception_branch(n, x, block, 2,
				BRANCH({64, ONE}, {96, THREE}, {96, THREE}));
	b[3] = pool_branch(n, x, block, 3, 96);
	return concat(n, name("%s.concat", block), b, 4);
}

static int reduction_a(struct net *n, int x, const char *block)
{
	int b[3];

	b[0] = inception_branch(n, x, block, 0, BRANCH({384, HALVE}));
	b[1] = inception_branch(n, x, block, 1,
				BRANCH({192, ONE}, {224, THREE}, {256, HALVE}));
	b[2] = halve_pool(n, x, block, 2);
	return concat(n, name("%s.concat", block), b, 3);
}

static int inception_b(struct net *n, int x, const char *block)
{
	int b[4];

	b[0] = inception_branch(n, x, block, 0, BRANCH({384, ONE}));
	b[1] = inception_branch(
		n, x, block, 1,
		BRANCH({192, ONE}, {224, same(1, 7)}, {256, same(7, 1)}));
	b[2] = inception_branch(n, x, block, 2,
				BRANCH({192, ONE}, {192, same(7, 1)},
				       {224, same(1, 7)}, {224, same(7, 1)},
				       {256, same(1, 7)}));
	b[3] = pool_branch(n, x, block, 3, 128);
	return concat(n, name("%s.concat", block), b, 4);
}

static int reduction_b(struct net *n, int x, const char *block)
{
	int b[3];

	b[0] = inception_branch(n, x, block, 0,
				BRANCH({192, ONE}, {192, HALVE}));
	b[1] = inception_branch(n, x, block, 1,
				BRANCH({256, ONE}, {256, same(1, 7)},
				       {320, same(7, 1)}, {320, HALVE}));
	b[2] = halve_pool(n, x, block, 2);
	return concat(n, name("%s.concat", block), b, 3);
}

/* A branch that ends in a 1 x 3 and a 3 x 1 convolution side by side. */
static void fork_branch(struct net *n, int x, const char *block, int index,
			int *ends)
{
	char *a = gf_xasprintf("%s.branch%da", block, index);
	char *b = gf_xasprintf("%s.branch%db", block, index);

	ends[0] = basic(n, x, a, (struct step){256, same(1, 3)});
	ends[1] = basic(n, x, b, (struct step){256, same(3, 1)});
	free(a);
	free(b);
}

static int inception_c(struct net *n, int x, const char *block)
{
	int b[6], y;

	b[0] = inception_branch(n, x, block, 0, BRANCH({256, ONE}));
	y = inception_branch(n, x, block, 1, BRANCH({384, ONE}));
	fork_branch(n, y, block, 1, &b[1]);
	y = inception_branch(
		n, x, block, 2,
		BRANCH({384, ONE}, {448, same(3, 1)}, {512, same(1, 3)}));
	fork_branch(n, y, block, 2, &b[3]);
	b[5] = pool_branch(n, x, block, 3, 256);
	return concat(n, name("%s.concat", block), b, 6);
}

static void inception_v4(struct net *n)
{
	static int (*const blocks[])(struct net *, int, const char *) = {
		inception_a, reduction_a, inception_b, reduction_b, inception_c,
	};
	static const int repeats[] = {4, 1, 7, 1, 3};
	int x = inception_stem(n), index = 6, k;
	size_t b;

	for (b = 0; b < GF_ARRAY_LENGTH(blocks); b++) {
		for (k = 0; k < repeats[b]; k++) {
			char *block = gf_xasprintf("features.%d", index++);

			x = blocks[b](n, x, block);
			free(block);
		}
	}
	x = simple(n, GF_LAYER_GLOBALPOOL, x, "avg_pool");
	fc(n, x, "last_linear", 1000);
}

/* --- BERT-Base (Devlin et al. 2019) with its pre-training heads ----------- */

#define WIDTH 768

static int layernorm(struct net *n, int from, const char *layer_name)
{
	push(n, GF_LAYER_LAYERNORM, layer_name, &from, 1)->epsilon = 1e-12;
	return last(n);
}

static int embedding(struct net *n, const char *layer_name, size_t entries,
		     size_t outputs)
{
	const int from = INPUT;
	struct gf_layer *l = push(n, GF_LAYER_EMBEDDING, layer_name, &from, 1);

	l->entries = entries;
	l->filters = outputs;
	return last(n);
}

/* fc, dropout, residual, layernorm */
static int bert_output(struct net *n, int x, int residual, const char *prefix)
{
	x = fc(n, x, name("%s.output.dense", prefix), WIDTH);
	x = dropout(n, x, name("%s.output.dropout", prefix), 0.1);
	x = add(n, x, residual, name("%s.output.add", prefix));
	return layernorm(n, x, name("%s.output.LayerNorm", prefix));
}

static int bert_layer(struct net *n, int x, const char *prefix)
{
	static const char *const parts[] = {"query", "key", "value"};
	char *attention = gf_xasprintf("%s.attention", prefix);
	int from[3], y;
	size_t i;

	for (i = 0; i < 3; i++)
		from[i] = fc(n, x, name("%s.self.%s", attention, parts[i]),
			     WIDTH);
	push(n, GF_LAYER_ATTENTION, name("%s.self", attention), from, 3)
		->heads = 12;
	x = bert_output(n, last(n), x, attention);
	y = fc(n, x, name("%s.intermediate.dense", prefix), 4 * WIDTH);
	y = simple(n, GF_LAYER_GELU, y, name("%s.intermediate.gelu", prefix));
	free(attention);
	return bert_output(n, y, x, prefix);
}

/* The masked words come last: their scores are the model's output. The pair of
 * sentences is scored from position 0. */
static void bert_heads(struct net *n, int x)
{
	int y = simple(n, GF_LAYER_SELECT, x, "bert.pooler.first");

	y = fc(n, y, "bert.pooler.dense", WIDTH);
	y = simple(n, GF_LAYER_TANH, y, "bert.pooler.tanh");
	fc(n, y, "cls.seq_relationship", 2);
	x = fc(n, x, "cls.predictions.transform.dense", WIDTH);
	x = simple(n, GF_LAYER_GELU, x, "cls.predictions.transform.gelu");
	x = layernorm(n, x, "cls.predictions.transform.LayerNorm");
	x = fc(n, x, "cls.predictions.decoder", 30522);
	n->m.layers[x].tied = gf_xstrdup("bert.embeddings.word_embeddings");
}

static void bert_base(struct net *n)
{
	int words, places, kinds, x, i;

	words = embedding(n, "bert.embeddings.word_embeddings", 30522, WIDTH);
	places =
		embedding(n, "bert.embeddings.position_embeddings", 512, WIDTH);
	kinds = embedding(n, "bert.embeddings.token_type_embeddings", 2, WIDTH);
	x = add(n, words, places, "bert.embeddings.add1");
	x = add(n, x, kinds, "bert.embeddings.add2");
	x = layernorm(n, x, "bert.embeddings.LayerNorm");
	x = dropout(n, x, "bert.embeddings.dropout", 0.1);
	for (i = 0; i < 12; i++) {
		char *prefix = gf_xasprintf("bert.encoder.layer.%d", i);

		x = bert_layer(n, x, prefix);
		free(prefix);
	}
	bert_heads(n, x);
}

/* --- LSTM on PTB (Zaremba et al. 2014), "large" ----------------------------
 */

static void lstm_ptb(struct net *n)
{
	int x = embedding(n, "encoder", 10000, 1500), i;

	for (i = 0; i < 2; i++) {
		x = dropout(n, x, name("drop%d", i), 0.65);
		push(n, GF_LAYER_LSTM, name("rnn.%d", i), &x, 1)->filters =
			1500;
		x = last(n);
	}
	x = dropout(n, x, "drop2", 0.65);
	fc(n, x, "decoder", 10000);
}

/* --- MNIST-MLP (Li et al. 2018): two hidden layers of 500 ----------------- */

static void mnist_mlp(struct net *n)
{
	int x = INPUT, i;

	for (i = 1; i < 3; i++) {
		x = fc(n, x, name("fc%d", i), 500);
		x = relu(n, x, name("relu%d", i));
	}
	fc(n, x, "fc3", 10);
}

/* --- CIFAR100-CNN (the same): three convolutions, two fc -------------------
 */

static void cifar100_cnn(struct net *n)
{
	static const size_t filters[] = {32, 32, 64};
	int x = INPUT, i;

	for (i = 1; i < 4; i++) {
		x = conv_with_bias(n, x, name("conv%d", i), filters[i - 1],
				   square(5, 1, 2));
		x = relu(n, x, name("relu%d", i));
		x = pool(n, GF_LAYER_MAXPOOL, x, name("pool%d", i),
			 square(3, 2, 1));
	}
	x = fc(n, x, "fc1", 256);
	x = relu(n, x, "relu4");
	fc(n, x, "fc2", 100);
}

/* Its convex variant: only the last layer is trained. */
static void cifar100_convex(struct net *n)
{
	size_t i;

	cifar100_cnn(n);
	for (i = 0; i + 1 < n->m.nlayers; i++)
		n->m.layers[i].frozen = n->m.layers[i].type == GF_LAYER_CONV ||
					n->m.layers[i].type == GF_LAYER_FC;
}

/* --- a small one for the shipped text, character by character ------------- */

static void lstm_text(struct net *n)
{
	int x = embedding(n, "encoder", 128, 32), i;

	for (i = 0; i < 2; i++) {
		push(n, GF_LAYER_LSTM, name("rnn.%d", i), &x, 1)->filters = 128;
		x = last(n);
	}
	fc(n, x, "decoder", 128);
}

/* --- all of them ---------------------------------------------------------- */

static const struct {
	const char *name;
	struct gf_shape input;
	size_t classes;
	void (*build)(struct net *n);
} models[] = {
	{"alexnet-bn", {3, {3, 227, 227}}, 1000, alexnet},
	{"bert-base", {1, {64}}, 30522, bert_base},
	{"cifar100-cnn", {3, {3, 32, 32}}, 100, cifar100_cnn},
	{"cifar100-convex", {3, {3, 32, 32}}, 100, cifar100_convex},
	{"densenet201", {3, {3, 224, 224}}, 1000, densenet201},
	{"inception-v4", {3, {3, 224, 224}}, 1000, inception_v4},
	{"lstm-ptb", {1, {35}}, 10000, lstm_ptb},
	{"lstm-text", {1, {64}}, 128, lstm_text},
	{"mnist-mlp", {3, {1, 28, 28}}, 10, mnist_mlp},
	{"resnet152", {3, {3, 224, 224}}, 1000, resnet152},
	{"resnet18", {3, {3, 224, 224}}, 1000, resnet18},
	{"resnet20", {3, {3, 32, 32}}, 10, resnet20},
	{"resnet50", {3, {3, 224, 224}}, 1000, resnet50},
	{"vgg16", {3, {3, 224, 224}}, 1000, vgg16},
};

/* Written only if a reader takes it. */
static int write_model(const char *folder, struct gf_model *m,
		       struct gf_error *err)
{
	char *path = gf_xasprintf("%s/%s.json", folder, m->name);
	char *text = gf_model_write(m);
	struct gf_model read;
	struct gf_json *root;
	int rc;

	rc = gf_json_parse(text, strlen(text), path, &root, err);
	if (!rc) {
		rc = gf_model_read(root, path, &read, err);
		gf_json_free(root);
	}
	if (!rc) {
		gf_model_release(&read);
		rc = gf_file_write(path, text, strlen(text), err);
	}
	free(path);
	free(text);
	return rc;
}

int main(int argc, char **argv)
{
	struct gf_error err;
	size_t i;
	int rc = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: gen_models DIR\n");
		return 2;
	}
	for (i = 0; i < GF_ARRAY_LENGTH(models) && !rc; i++) {
		struct net n = {.m = {.input = models[i].input,
				      .classes = models[i].classes}};

		n.m.name = gf_xstrdup(models[i].name);
		models[i].build(&n);
		rc = write_model(argv[1], &n.m, &err);
		gf_model_release(&n.m);
	}
	if (rc)
		fprintf(stderr, "gen_models: %s\n", err.text);
	return rc ? 3 : 0;
}
