/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_H
#define GF_KERNELS_H

#include <stddef.h>

/*
 * Inner loops over plain arrays. kernels/ref holds them in portable C and is
 * the specification; kernels/x86 overrides what it can do better; the table is
 * filled once for this machine and never has a hole. Pointers need no
 * alignment; ranges must not overlap unless they are equal.
 *
 * Every set gives the same bits as ref: ranks on unlike machines stay replicas
 * of each other. Hence no fused multiply-add, and sums are defined lane by
 * lane where there are any.
 */
struct gf_sgd_step {
	float lr, momentum, weight_decay;
	float scale; /* of the gradient, before weight decay */
	int nesterov;
};

struct gf_kernels {
	const char *name; /* of the best set in use: ref, avx2, avx512 */
	/* y += x */
	void (*add_f32)(float *y, const float *x, size_t n);
	/* y = a*x + b*y */
	void (*axpby_f32)(float a, const float *x, float b, float *y, size_t n);
	/* g = scale*grad + weight_decay*w;  u = momentum*u + g;
	 * w -= lr*u, or with nesterov w -= lr*(g + momentum*u) */
	void (*sgd_f32)(const struct gf_sgd_step *o, const float *grad,
			float *weight, float *velocity, size_t n);
};

const struct gf_kernels *gf_kernels(void);
/* One set by name, for tests; NULL if this machine cannot run it. */
const struct gf_kernels *gf_kernels_named(const char *name);

#endif
