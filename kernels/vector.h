/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_VECTOR_H
#define GF_KERNELS_VECTOR_H

#include <math.h>
#include <stdbool.h>

#include "sets.h"
#include "sum.h"
#include "vectorise.h"

/* Arithmetic on arrays, written once; each set compiles it for its own instructions. */

static void add_f32(float *y, const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] += x[i];
}

static void scale_f32(float a, const float *x, float *y, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] = a * x[i];
}

static void axpby_f32(float a, const float *x, float b, float *y, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] = a * x[i] + b * y[i];
}

GF_VECTOR void sgd(const struct gf_sgd_step *o, const float *grad, float *weight, float *velocity,
		   size_t n, bool nesterov)
{
	const float lr = o->lr, momentum = o->momentum, scale = o->scale;
	const float decay = o->weight_decay;

	for (size_t i = 0; i < n; i++) {
		float g = scale * grad[i] + decay * weight[i];
		float u = momentum * velocity[i] + g;

		velocity[i] = u;
		weight[i] -= lr * (nesterov ? g + momentum * u : u);
	}
}

static void sgd_f32(const struct gf_sgd_step *o, const float *grad, float *weight, float *velocity,
		    size_t n)
{
	if (o->nesterov)
		sgd(o, grad, weight, velocity, n, true);
	else
		sgd(o, grad, weight, velocity, n, false);
}

static void adamw_f32(const struct gf_adamw_step *step, const float *grad, float *weight, float *m,
		      float *v, size_t n)
{
	const struct gf_adamw_step o = *step;

	for (size_t i = 0; i < n; i++) {
		float g = o.scale * grad[i];
		float first = m[i] + o.change1 * (g - m[i]);
		float second = o.beta2 * v[i] + o.change2 * (g * g);

		m[i] = first;
		v[i] = second;
		weight[i] =
			o.keep * weight[i] - o.rate * first / (sqrtf(second) / o.root + o.epsilon);
	}
}

/* --- sums (sum.h) --------------------------------------------------------- */

enum terms { ABSOLUTE, SQUARES, ABSOLUTE_SUMS };

/* Terms of GF_SUM_LANES elements, in the vectors v. */
GF_VECTOR void add_terms(enum terms terms, gf_lanes *v, float *y, const float *x)
{
#pragma GCC unroll 8
	for (size_t k = 0; k < GF_SUM_LANES / GF_LANES; k++) {
		gf_lanes a = gf_lanes_at(x + k * GF_LANES);

		if (terms == ABSOLUTE_SUMS) {
			a += gf_lanes_at(y + k * GF_LANES);
			memcpy(y + k * GF_LANES, &a, sizeof(a));
		}
		v[k] += terms == SQUARES ? a * a : (gf_lanes)((gf_int_lanes)a & 0x7fffffff);
	}
}

/* Zeros after the last element leave their lanes as they are. */
GF_VECTOR void add_last(enum terms terms, gf_lanes *v, float *y, const float *x, size_t n)
{
	float last_x[GF_SUM_LANES] = {0}, last_y[GF_SUM_LANES] = {0};

	memcpy(last_x, x, n * sizeof(*x));
	if (terms == ABSOLUTE_SUMS)
		memcpy(last_y, y, n * sizeof(*y));
	add_terms(terms, v, last_y, last_x);
	if (terms == ABSOLUTE_SUMS)
		memcpy(y, last_y, n * sizeof(*y));
}

GF_VECTOR double sum(enum terms terms, float *y, const float *x, size_t n)
{
	double total = 0;

	for (size_t at = 0; at < n; at += GF_SUM_BLOCK) {
		size_t count = n - at < GF_SUM_BLOCK ? n - at : GF_SUM_BLOCK;
		gf_lanes v[GF_SUM_LANES / GF_LANES] = {{0}};
		float lanes[GF_SUM_LANES];
		size_t i = 0;

		for (; i + GF_SUM_LANES <= count; i += GF_SUM_LANES)
			add_terms(terms, v, y + at + i, x + at + i);
		if (i < count)
			add_last(terms, v, y + at + i, x + at + i, count - i);
		memcpy(lanes, v, sizeof(lanes));
		total = add_lanes(total, lanes);
	}
	return total;
}

static double sum_abs_f32(const float *x, size_t n)
{
	return sum(ABSOLUTE, (float *)x, x, n);
}

static double sum_squares_f32(const float *x, size_t n)
{
	return sum(SQUARES, (float *)x, x, n);
}

static double add_sum_abs_f32(float *y, const float *x, size_t n)
{
	return sum(ABSOLUTE_SUMS, y, x, n);
}

static inline void fill_vector(struct gf_kernels *k)
{
	k->add_f32 = add_f32;
	k->scale_f32 = scale_f32;
	k->axpby_f32 = axpby_f32;
	k->sgd_f32 = sgd_f32;
	k->adamw_f32 = adamw_f32;
	k->sum_abs_f32 = sum_abs_f32;
	k->sum_squares_f32 = sum_squares_f32;
	k->add_sum_abs_f32 = add_sum_abs_f32;
}

#endif
