/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_SOFTMAX_H
#define GF_KERNELS_SOFTMAX_H

#include "exponential.h"
#include "sets.h"
#include "sum.h"

/* A row's softmax, in lanes as sums are (sum.h). */
#define VECTORS (GF_SUM_LANES / GF_LANES)

GF_VECTOR void keep_largest(gf_lanes *max, const float *x)
{
#pragma GCC unroll 8
	for (size_t k = 0; k < VECTORS; k++) {
		const gf_lanes a = gf_lanes_at(x + k * GF_LANES);
		const gf_int_lanes above = a > max[k];

		max[k] = (gf_lanes)(((gf_int_lanes)a & above) | ((gf_int_lanes)max[k] & ~above));
	}
}

GF_VECTOR float largest_value(const float *x, size_t n)
{
	float last[GF_SUM_LANES];
	gf_lanes max[VECTORS];
	size_t i;

	for (i = 0; i < GF_SUM_LANES; i++)
		last[i] = x[0];
	memcpy(max, last, sizeof(max));
	for (i = 0; i + GF_SUM_LANES <= n; i += GF_SUM_LANES)
		keep_largest(max, x + i);
	memcpy(last, x + i, (n - i) * sizeof(*x));
	keep_largest(max, last);
	memcpy(last, max, sizeof(last));
	for (i = 1; i < GF_SUM_LANES; i++)
		last[0] = last[i] > last[0] ? last[i] : last[0];
	return last[0];
}

/* Of products; y NULL: of x alone. */
GF_VECTOR void add_up(gf_lanes *sum, const float *x, const float *y)
{
#pragma GCC unroll 8
	for (size_t k = 0; k < VECTORS; k++) {
		gf_lanes a = gf_lanes_at(x + k * GF_LANES);

		if (y)
			a *= gf_lanes_at(y + k * GF_LANES);
		sum[k] += a;
	}
}

GF_VECTOR float total(const float *x, const float *y, size_t n)
{
	float last_x[GF_SUM_LANES] = {0}, last_y[GF_SUM_LANES] = {0};
	gf_lanes sum[VECTORS] = {{0}};
	size_t i;

	for (i = 0; i + GF_SUM_LANES <= n; i += GF_SUM_LANES)
		add_up(sum, x + i, y ? y + i : NULL);
	memcpy(last_x, x + i, (n - i) * sizeof(*x));
	if (y)
		memcpy(last_y, y + i, (n - i) * sizeof(*y));
	add_up(sum, last_x, y ? last_y : NULL);
	memcpy(last_x, sum, sizeof(last_x));
	return (float)add_lanes(0, last_x);
}

static void softmax_f32(float *x, float scale, size_t n)
{
	const float max = n ? largest_value(x, n) : 0;
	float share;

	for (size_t i = 0; i < n; i++)
		x[i] = exponential(scale * (x[i] - max));
	share = 1 / total(x, NULL, n);
	for (size_t i = 0; i < n; i++)
		x[i] *= share;
}

static void softmax_backward_f32(const float *y, float *d, float scale, size_t n)
{
	const float mean = total(y, d, n);

	for (size_t i = 0; i < n; i++)
		d[i] = scale * (y[i] * (d[i] - mean));
}

static inline void fill_softmax(struct gf_kernels *k)
{
	k->softmax_f32 = softmax_f32;
	k->softmax_backward_f32 = softmax_backward_f32;
}

#endif
