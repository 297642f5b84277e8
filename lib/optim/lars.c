/* SPDX-License-Identifier: BSD-3-Clause */
#include "optim/lars.h"

#include <math.h>

#include "gf_kernels.h"

double gf_lars_trust(const struct gf_lars *o, float scale, const float *grad,
		     const float *weight, size_t count_elems)
{
	const struct gf_kernels *k = gf_kernels();
	double w = sqrt(k->sum_squares_f32(weight, count_elems));
	double g = fabs((double)scale) *
		   sqrt(k->sum_squares_f32(grad, count_elems));

	if (w == 0 || g == 0)
		return 1;
	return o->eta * w / (g + o->sgd.weight_decay * w + o->epsilon);
}

/* trust*(scale*grad + decay*w) is SGD's g with both factors scaled. */
void gf_lars_update(const struct gf_lars *o, float scale, const float *grad,
		    float *weight, float *velocity, size_t count_elems)
{
	double trust = gf_lars_trust(o, scale, grad, weight, count_elems);
	struct gf_sgd sgd = o->sgd;

	sgd.weight_decay *= trust;
	gf_sgd_update(&sgd, (float)(trust * (double)scale), grad, weight,
		      velocity, count_elems);
}
