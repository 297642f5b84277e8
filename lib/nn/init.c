/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/net.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/rng.h"

#define STREAM_WEIGHTS 1 /* of gf_rng_init */

/* For each layer: does its output meet a ReLU before other weights do? */
static bool *find_relus(const struct gf_model *m)
{
	bool *ahead = gf_xcalloc(m->nlayers, sizeof(*ahead));

	for (size_t l = m->nlayers; l-- > 0;) {
		const struct gf_layer *next = &m->layers[l];
		bool weights = next->type == GF_LAYER_CONV ||
			       next->type == GF_LAYER_FC;

		for (int i = 0; i < 2; i++)
			if (next->from[i] >= 0)
				ahead[next->from[i]] |=
					next->type == GF_LAYER_RELU ||
					(!weights && ahead[l]);
	}
	return ahead;
}

static void fill(float *to, size_t count, float value)
{
	for (size_t i = 0; i < count; i++)
		to[i] = value;
}

/* He et al. 2015: standard deviation sqrt(gain / fan_in), gain 2 before ReLU,
 * 1 where nothing halves the variance. */
static void draw_weight(const struct gf_param *p, bool relu_ahead,
			struct gf_rng *rng, float *to)
{
	size_t count = gf_shape_elems(&p->shape);
	size_t fan_in = count / p->shape.dims[0];
	double deviation = sqrt((relu_ahead ? 2.0 : 1.0) / (double)fan_in);

	for (size_t i = 0; i < count; i++)
		to[i] = (float)(deviation * gf_rng_normal(rng));
}

void gf_net_init_params(const struct gf_model *m, uint64_t seed, float *params)
{
	size_t *order = gf_model_generation_order(m);
	bool *relu_ahead = find_relus(m);
	struct gf_rng rng;

	gf_rng_init(&rng, seed, STREAM_WEIGHTS);
	for (size_t i = 0; i < m->nparams; i++) {
		const struct gf_param *p = &m->params[order[i]];
		const struct gf_layer *l = &m->layers[p->layer];
		bool first = order[i] == l->first_param;

		if (!first)
			fill(params, gf_shape_elems(&p->shape), 0);
		else if (l->type == GF_LAYER_BATCHNORM)
			fill(params, gf_shape_elems(&p->shape), 1);
		else
			draw_weight(p, relu_ahead[p->layer], &rng, params);
		params += gf_shape_elems(&p->shape);
	}
	free(relu_ahead);
	free(order);
}
