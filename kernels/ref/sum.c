/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "sets.h"
#include "sum.h"

typedef float term_fn(float x);

static double sum(const float *x, size_t n, term_fn *term)
{
	double total = 0;

	for (size_t at = 0; at < n; at += GF_SUM_BLOCK) {
		size_t count = n - at < GF_SUM_BLOCK ? n - at : GF_SUM_BLOCK;
		float lanes[GF_SUM_LANES] = {0};

		for (size_t i = 0; i < count; i++)
			lanes[i % GF_SUM_LANES] += term(x[at + i]);
		total = add_lanes(total, lanes);
	}
	return total;
}

static float square(float x)
{
	return x * x;
}

static double sum_abs_f32(const float *x, size_t n)
{
	return sum(x, n, fabsf);
}

static double sum_squares_f32(const float *x, size_t n)
{
	return sum(x, n, square);
}

static double add_sum_abs_f32(float *y, const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] += x[i];
	return sum_abs_f32(y, n);
}

void gf_kernels_fill_sum_ref(struct gf_kernels *k)
{
	k->sum_abs_f32 = sum_abs_f32;
	k->sum_squares_f32 = sum_squares_f32;
	k->add_sum_abs_f32 = add_sum_abs_f32;
}
