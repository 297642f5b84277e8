/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/net.h"

#include <math.h>
#include <stdbool.h>

#include "base/heap.h"
#include "base/rng.h"

#define STREAM_WEIGHTS 1 /* of gf_rng_init */

static bool is_norm(const struct gf_layer *l)
{
	return l->type == GF_LAYER_BATCHNORM || l->type == GF_LAYER_LAYERNORM;
}

/* For each layer: does its output meet a ReLU before other weights do? */
static bool *find_relus(const struct gf_model *m)
{
	bool *ahead = gf_xcalloc(m->nlayers, sizeof(*ahead));

	for (size_t l = m->nlayers; l-- > 0;) {
		const struct gf_layer *next = &m->layers[l];
		bool rectifies = next->type == GF_LAYER_RELU || next->type == GF_LAYER_GELU;
		bool passes = next->nparams == 0 || is_norm(next);

		for (size_t i = 0; i < next->ninputs; i++)
			if (next->inputs[i] >= 0)
				ahead[next->inputs[i]] |= rectifies || (passes && ahead[l]);
	}
	return ahead;
}

/* Does a layer multiply by an embedding's table? Then the tables of all embeddings are drawn as
 * that product wants its weight. */
static bool ties(const struct gf_model *m)
{
	for (size_t l = 0; l < m->nlayers; l++)
		if (m->layers[l].tied)
			return true;
	return false;
}

static double deviation_of(const struct gf_model *m, const struct gf_param *p,
			   const bool *relu_ahead)
{
	size_t fan_in = gf_shape_elems(&p->shape) / p->shape.dims[0];

	if (m->layers[p->layer].type == GF_LAYER_EMBEDDING && !ties(m))
		return 1;
	return sqrt((relu_ahead[p->layer] ? 2.0 : 1.0) / (double)fan_in);
}

void gf_net_init_params(const struct gf_model *m, uint64_t seed, float *params)
{
	GF_FREED size_t *order = gf_model_generation_order(m);
	GF_FREED bool *relu_ahead = find_relus(m);
	struct gf_rng rng;

	gf_rng_init(&rng, seed, STREAM_WEIGHTS);
	for (size_t i = 0; i < m->nparams; i++) {
		const struct gf_param *p = &m->params[order[i]];
		const struct gf_layer *l = &m->layers[p->layer];
		const size_t count = gf_shape_elems(&p->shape);
		const bool scale = is_norm(l) && order[i] == l->first_param;
		const double deviation = deviation_of(m, p, relu_ahead);

		for (size_t k = 0; k < count; k++)
			params[k] = p->shape.rank == 1 ? scale
						       : (float)(deviation * gf_rng_normal(&rng));
		params += count;
	}
}
