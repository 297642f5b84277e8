/* SPDX-License-Identifier: BSD-3-Clause */
#include "optim/sgd.h"

#include "gf_kernels.h"

void gf_sgd_update(const struct gf_sgd *o, float scale, const float *grad,
		   float *weight, float *velocity, size_t count_elems)
{
	const struct gf_sgd_step step = {
		.lr = (float)o->lr,
		.momentum = (float)o->momentum,
		.weight_decay = (float)o->weight_decay,
		.scale = scale,
		.nesterov = o->nesterov,
	};

	gf_kernels()->sgd_f32(&step, grad, weight, velocity, count_elems);
}
