/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_ADAMW_H
#define GF_KERNELS_ADAMW_H

#include <math.h>

#include "bits.h"
#include "gf_kernels.h"

/* beta^t by squaring: products alone, so that every processor comes to the same bits. */
GF_INLINE double adamw_power(double beta, uint64_t t)
{
	double power = 1;

	for (; t; t >>= 1, beta *= beta)
		if (t & 1)
			power *= beta;
	return power;
}

/* The numbers of step t, from 1. */
GF_INLINE struct gf_adamw_step adamw_step(const struct gf_adamw_rule *o, float scale, uint64_t t)
{
	struct gf_adamw_step s;

	s.rate = (float)(o->lr / (1 - adamw_power(o->beta1, t)));
	s.root = (float)sqrt(1 - adamw_power(o->beta2, t));
	s.keep = (float)(1 - o->lr * o->weight_decay);
	s.change1 = (float)(1 - o->beta1);
	s.beta2 = (float)o->beta2;
	s.change2 = (float)(1 - o->beta2);
	s.epsilon = (float)o->epsilon;
	s.scale = scale;
	return s;
}

#endif
