/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_BITS_H
#define GF_KERNELS_BITS_H

#include <stdint.h>
#include <string.h>

/* Marks the functions that the kernels of every kind of processor share. */
#ifdef __CUDACC__
#define GF_INLINE static inline __host__ __device__
#else
#define GF_INLINE static inline
#endif

GF_INLINE uint32_t bits_of(float x)
{
	uint32_t b;

	memcpy(&b, &x, sizeof(b));
	return b;
}

GF_INLINE float float_of(uint32_t b)
{
	float x;

	memcpy(&x, &b, sizeof(x));
	return x;
}

/* Orders by magnitude as an integer: 0 < ... < infinity < NaN. */
GF_INLINE uint32_t magnitude(float x)
{
	return bits_of(x) & 0x7fffffff;
}

#endif
