/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_REDUCE_H
#define GF_KERNELS_REDUCE_H

#include "sets.h"
#include "vectorise.h"

/* The reductions of whole types. */

static inline float sum_f32(float a, float b)
{
	return a + b;
}

static inline float prod_f32(float a, float b)
{
	return a * b;
}

/* Equal and yet of other bits are only 0 and -0. */
static inline float max_f32(float a, float b)
{
	float larger = a > b || a != a ? a : b;

	return a == b ? float_of(bits_of(a) & bits_of(b)) : larger;
}

static inline float min_f32(float a, float b)
{
	float smaller = a < b || a != a ? a : b;

	return a == b ? float_of(bits_of(a) | bits_of(b)) : smaller;
}

static inline double sum_f64(double a, double b)
{
	return a + b;
}

static inline double prod_f64(double a, double b)
{
	return a * b;
}

static inline double with_sign_of(double zero, double sum)
{
	return zero == 0 ? sum : zero;
}

/* 0 + -0 is 0, and -(-0 + -0) turns the other way. */
static inline double max_f64(double a, double b)
{
	double larger = a > b || a != a ? a : b;

	return a == b ? with_sign_of(larger, a + b) : larger;
}

static inline double min_f64(double a, double b)
{
	double smaller = a < b || a != a ? a : b;

	return a == b ? with_sign_of(smaller, -(-a - b)) : smaller;
}

static inline int32_t sum_i32(int32_t a, int32_t b)
{
	return (int32_t)((uint32_t)a + (uint32_t)b);
}

static inline int32_t prod_i32(int32_t a, int32_t b)
{
	return (int32_t)((uint32_t)a * (uint32_t)b);
}

static inline int32_t max_i32(int32_t a, int32_t b)
{
	return a > b ? a : b;
}

static inline int32_t min_i32(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

/* reduce_sum_f32 and so on: one loop per operation and type. */
#define GF_REDUCE(op, name, type)                                                                  \
	static void reduce_##op##_##name(void *y, const void *x, size_t n)                         \
	{                                                                                          \
		type *to = y;                                                                      \
		const type *from = x;                                                              \
                                                                                                   \
		for (size_t i = 0; i < n; i++)                                                     \
			to[i] = op##_##name(to[i], from[i]);                                       \
	}
#define GF_REDUCES(name, type)                                                                     \
	GF_REDUCE(sum, name, type)                                                                 \
	GF_REDUCE(prod, name, type)                                                                \
	GF_REDUCE(max, name, type)                                                                 \
	GF_REDUCE(min, name, type)                                                                 \
	static void divide_##name(void *y, size_t n, int by)                                       \
	{                                                                                          \
		type *to = y;                                                                      \
                                                                                                   \
		for (size_t i = 0; i < n; i++)                                                     \
			to[i] /= (type)by;                                                         \
	}
#define GF_REDUCES_FILL(k, dtype, name)                                                            \
	do {                                                                                       \
		(k)->reduce[dtype][GF_OP_SUM] = reduce_sum_##name;                                 \
		(k)->reduce[dtype][GF_OP_AVG] = reduce_sum_##name;                                 \
		(k)->reduce[dtype][GF_OP_PROD] = reduce_prod_##name;                               \
		(k)->reduce[dtype][GF_OP_MAX] = reduce_max_##name;                                 \
		(k)->reduce[dtype][GF_OP_MIN] = reduce_min_##name;                                 \
		(k)->divide[dtype] = divide_##name;                                                \
	} while (0)

GF_REDUCES(f32, float)
GF_REDUCES(f64, double)
GF_REDUCES(i32, int32_t)

static inline void fill_whole_types(struct gf_kernels *k)
{
	GF_REDUCES_FILL(k, GF_F32, f32);
	GF_REDUCES_FILL(k, GF_F64, f64);
	GF_REDUCES_FILL(k, GF_I32, i32);
}

#endif
