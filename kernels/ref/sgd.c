/* SPDX-License-Identifier: BSD-3-Clause */
#include "sets.h"

static void sgd_f32(const struct gf_sgd_step *o, const float *grad,
		    float *weight, float *velocity, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float g = o->scale * grad[i] + o->weight_decay * weight[i];
		float u = o->momentum * velocity[i] + g;

		velocity[i] = u;
		weight[i] -= o->lr * (o->nesterov ? g + o->momentum * u : u);
	}
}

void gf_kernels_fill_sgd_ref(struct gf_kernels *k)
{
	k->sgd_f32 = sgd_f32;
}
