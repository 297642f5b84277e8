/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

const struct gf_ref_layer *const gf_ref_layers[GF_LAYER_NTYPES] = {
	[GF_LAYER_CONV] = &gf_ref_conv,
	[GF_LAYER_BATCHNORM] = &gf_ref_batchnorm,
	[GF_LAYER_RELU] = &gf_ref_relu,
	[GF_LAYER_MAXPOOL] = &gf_ref_maxpool,
	[GF_LAYER_AVGPOOL] = &gf_ref_avgpool,
	[GF_LAYER_GLOBALPOOL] = &gf_ref_globalpool,
	[GF_LAYER_FC] = &gf_ref_fc,
	[GF_LAYER_ADD] = &gf_ref_add,
	[GF_LAYER_CONCAT] = &gf_ref_concat,
	[GF_LAYER_DROPOUT] = &gf_ref_dropout,
	[GF_LAYER_LAYERNORM] = &gf_ref_layernorm,
	[GF_LAYER_GELU] = &gf_ref_gelu,
	[GF_LAYER_TANH] = &gf_ref_tanh,
	[GF_LAYER_EMBEDDING] = &gf_ref_embedding,
	[GF_LAYER_ATTENTION] = &gf_ref_attention,
	[GF_LAYER_SELECT] = &gf_ref_select,
	[GF_LAYER_LSTM] = &gf_ref_lstm,
};

/* Both loops read b in the order of its memory. */
static void multiply(const struct gf_ref_product *p)
{
	const size_t down = p->a.transposed ? 1 : p->a.pitch;
	const size_t right = p->a.transposed ? p->a.pitch : 1;

	for (size_t i = 0; i < p->m; i++) {
		const float *a = p->a.at + i * down, *b = p->b.at;
		float *c = p->c + i * p->pitch;

		if (!p->adds)
			memset(c, 0, p->n * sizeof(*c));
		for (size_t j = 0; p->b.transposed && j < p->n; j++) {
			float sum = c[j];

			for (size_t k = 0; k < p->k; k++)
				sum += a[k * right] * b[j * p->b.pitch + k];
			c[j] = sum;
		}
		for (size_t k = 0; !p->b.transposed && k < p->k; k++)
			for (size_t j = 0; j < p->n; j++)
				c[j] += a[k * right] * b[k * p->b.pitch + j];
	}
}

void gf_ref_io_init(struct gf_ref_io *io, const struct gf_net *net, size_t l)
{
	const struct gf_layer *layer = &net->model->layers[l];

	assert(gf_layer_uses(layer) <= GF_REF_MAX_PARAMS);
	*io = (struct gf_ref_io){
		.net = net,
		.index = l,
		.layer = layer,
		.adds = net->adds[l],
		.in = gf_xcalloc(layer->ninputs, sizeof(*io->in)),
		.din = gf_xcalloc(layer->ninputs, sizeof(*io->din)),
		.running = net->running + net->running_at[l],
		.multiply = multiply,
	};
}

void gf_ref_io_bind(struct gf_ref_io *io, const float *params, float *grads)
{
	const struct gf_net *net = io->net;

	io->batch = net->batch;
	io->training = net->training;
	for (size_t i = 0; i < gf_layer_uses(io->layer); i++) {
		size_t at = net->param_at[gf_layer_use(io->layer, i)];

		io->param[i] = params + at;
		io->dparam[i] = grads ? grads + at : NULL;
	}
}

void gf_ref_io_release(struct gf_ref_io *io)
{
	free(io->in);
	free(io->din);
	memset(io, 0, sizeof(*io));
}
