/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

#include <assert.h>
#include <string.h>

#include "base/heap.h"

#define LAYER(NAME, name) [GF_LAYER_##NAME] = &gf_ref_##name,
const struct gf_ref_layer *const gf_ref_layers[GF_LAYER_NTYPES] = {GF_COMPUTED_LAYERS(LAYER)};

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
