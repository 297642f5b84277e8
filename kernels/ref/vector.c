/* SPDX-License-Identifier: BSD-3-Clause */
#include "sets.h"

static void add_f32(float *y, const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] += x[i];
}

static void axpby_f32(float a, const float *x, float b, float *y, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] = a * x[i] + b * y[i];
}

void gf_kernels_fill_vector_ref(struct gf_kernels *k)
{
	k->add_f32 = add_f32;
	k->axpby_f32 = axpby_f32;
}
