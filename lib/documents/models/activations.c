/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/heap.h"
#include "documents/models/layer.h"
#include "documents/profile.h"

/* What a layer's backward reads of its forward beside parameters. */
struct kept {
	bool inputs, output;
	/* Bytes beside these values, in types of their own. (optional) */
	double (*more)(const struct gf_layer *l, double batch);
};

static double elems(const struct gf_shape *s)
{
	return (double)gf_shape_elems(s);
}

static double rows(const struct gf_layer *l)
{
	return elems(&l->in) / (double)l->in.dims[l->in.rank - 1];
}

/* Each f32, as all statistics are. */
static double mean_and_deviation_of_channels(const struct gf_layer *l, double batch)
{
	(void)batch;
	return 2 * 4 * (double)l->in.dims[0];
}

static double mean_and_deviation_of_rows(const struct gf_layer *l, double batch)
{
	return 2 * 4 * batch * rows(l);
}

static double deviation_of_rows(const struct gf_layer *l, double batch)
{
	return 4 * batch * rows(l);
}

/* Of 8 bytes, as those of words and of positions. */
static double indices_of_maxima(const struct gf_layer *l, double batch)
{
	return 8 * batch * elems(&l->out);
}

static double indices_of_rows(const struct gf_layer *l, double batch)
{
	return 8 * (l->positional ? 1 : batch) * elems(&l->in);
}

static double mask(const struct gf_layer *l, double batch)
{
	return batch * elems(&l->out);
}

static double sums_of_exponentials(const struct gf_layer *l, double batch)
{
	return 4 * batch * (double)l->heads * (double)l->in.dims[0];
}

/* Four gates and a cell per output. */
static double gates_and_cells(const struct gf_layer *l, double batch)
{
	return 5 * 4 * batch * elems(&l->out);
}

/* As PyTorch's autograd: each row's comment is the function of its derivatives.yaml, and the names
 * that stand there in the formulas of the gradients. */
static const struct kept table[] = {
	/* convolution: input */
	[GF_LAYER_CONV] = {.inputs = true},
	/* native_batch_norm: input, result1, result2 */
	[GF_LAYER_BATCHNORM] = {.inputs = true, .more = mean_and_deviation_of_channels},
	/* relu: result */
	[GF_LAYER_RELU] = {.output = true},
	/* max_pool2d_with_indices: self, result1 */
	[GF_LAYER_MAXPOOL] = {.inputs = true, .more = indices_of_maxima},
	/* avg_pool2d: self */
	[GF_LAYER_AVGPOOL] = {.inputs = true},
	/* mean: sizes alone */
	[GF_LAYER_GLOBALPOOL] = {0},
	/* linear: input */
	[GF_LAYER_FC] = {.inputs = true},
	/* add, cat: sizes alone */
	[GF_LAYER_ADD] = {0},
	[GF_LAYER_CONCAT] = {0},
	/* native_dropout: result1, a byte per element; on processors dropout is a mul by f32 */
	[GF_LAYER_DROPOUT] = {.more = mask},
	/* native_layer_norm: input, result1, result2 */
	[GF_LAYER_LAYERNORM] = {.inputs = true, .more = mean_and_deviation_of_rows},
	/* gelu: self */
	[GF_LAYER_GELU] = {.inputs = true},
	/* tanh: result */
	[GF_LAYER_TANH] = {.output = true},
	/* embedding: indices */
	[GF_LAYER_EMBEDDING] = {.more = indices_of_rows},
	/* _scaled_dot_product_flash_attention: query, key, value, output, logsumexp; queries and
	 * keys that turn are kept as turned, in as many bytes */
	[GF_LAYER_ATTENTION] = {.inputs = true, .output = true, .more = sums_of_exponentials},
	/* slice: sizes alone */
	[GF_LAYER_SELECT] = {0},
	/* _cudnn_rnn: input, result0, result4 */
	[GF_LAYER_LSTM] = {.inputs = true, .output = true, .more = gates_and_cells},
	/* _fused_rms_norm: input, result1 */
	[GF_LAYER_RMSNORM] = {.inputs = true, .more = deviation_of_rows},
	/* silu: self */
	[GF_LAYER_SILU] = {.inputs = true},
	/* mul: self, other */
	[GF_LAYER_MUL] = {.inputs = true},
	/* cat, add: sizes alone */
	[GF_LAYER_PATCHES] = {0},
};

/* Cross-entropy keeps what _log_softmax made of the logits, in f32, and the labels
 * (nll_loss_forward: self, target). */
static double kept_of_loss(const struct gf_model *m, double batch)
{
	return batch *
	       (4 * elems(&m->layers[m->nlayers - 1].out) + 8 * (double)gf_model_positions(m));
}

/* `kept` has the values that are counted already, after that of the sample. */
static double value_once(const struct gf_model *m, int layer, bool *kept)
{
	bool before = kept[layer + 1];

	kept[layer + 1] = true;
	return before ? 0 : elems(layer < 0 ? &m->input : &m->layers[layer].out);
}

void gf_model_activations(const struct gf_model *m, size_t batch, size_t element_bytes,
			  double *bytes)
{
	const double samples = (double)batch;
	GF_FREED bool *kept = gf_xcalloc(m->nlayers + 1, sizeof(*kept));

	for (size_t l = 0; l < m->nlayers; l++) {
		const struct gf_layer *layer = &m->layers[l];
		const struct kept *row = &table[layer->type];
		double values = 0;

		bytes[l] = 0;
		if (!layer->trained)
			continue;
		for (size_t i = 0; row->inputs && i < layer->ninputs; i++)
			values += value_once(m, layer->inputs[i], kept);
		if (row->output)
			values += value_once(m, (int)l, kept);
		bytes[l] = samples * values * (double)element_bytes +
			   (row->more ? row->more(layer, samples) : 0);
	}
	if (m->layers[m->nlayers - 1].trained)
		bytes[m->nlayers - 1] += kept_of_loss(m, samples);
}

void gf_model_keep(const struct gf_model *m, const double *bytes, struct gf_model_profile *p)
{
	size_t *order = gf_model_generation_order(m), i = 0, l;
	double sum = 0;

	for (l = m->nlayers; l-- > 0;) {
		sum += bytes[l];
		if (i == p->ntensors || m->params[order[i]].layer != l)
			continue;
		while (i < p->ntensors && m->params[order[i]].layer == l)
			i++;
		p->tensors[i - 1].activation_bytes =
			(size_t)fmin(sum, GF_MAX_SIZE / (double)(2 * p->ntensors));
		sum = 0;
	}
	free(order);
}
