/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_VECTORISE_H
#define GF_KERNELS_VECTORISE_H

#include <stddef.h>

#include "bits.h"

/*
 * A kernel that includes this file is written once. Each set compiles it for its own instructions,
 * and the compiler makes the vectors.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("tree-vectorize")
#pragma GCC optimize("vect-cost-model=dynamic")
#endif

/* Before a loop whose rounds share no memory. */
#ifdef __clang__
#define GF_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define GF_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* A function whose arguments that are constants save branches in loops. */
#define GF_VECTOR static inline __attribute__((always_inline))

/* Where the compiler finds no vectors by itself. */
#if defined(__AVX512F__)
#define GF_LANES 16
#elif defined(__AVX2__)
#define GF_LANES 8
#else
#define GF_LANES 4
#endif
typedef float gf_lanes __attribute__((vector_size(4 * GF_LANES)));
typedef int32_t gf_int_lanes __attribute__((vector_size(4 * GF_LANES)));

GF_VECTOR gf_lanes gf_lanes_at(const float *x)
{
	gf_lanes v;

	memcpy(&v, x, sizeof(v));
	return v;
}

/* The largest magnitude; NaN is above all. */
static inline uint32_t largest(const float *from, size_t n)
{
	uint32_t max = 0;

	for (size_t i = 0; i < n; i++)
		max = magnitude(from[i]) > max ? magnitude(from[i]) : max;
	return max;
}

#endif
