/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CODE_HALF_H
#define GF_KERNELS_CODE_HALF_H

#include "sets.h"

/*
 * A set's codec of 16 bits, name_encode and so on, out of its encode(to, from,
 * n, narrow) and decode(to, from, n, widen, add) for arrays; narrow and widen
 * convert a value, or a vector of them.
 */
#define GF_CODE_HALF(name, narrow, widen)                                      \
	static void name##_encode(void *wire, const float *from, size_t n,     \
				  size_t block_elems)                          \
	{                                                                      \
		(void)block_elems;                                             \
		encode(wire, from, n, narrow);                                 \
	}                                                                      \
	static void name##_decode(float *to, const void *wire, size_t n,       \
				  size_t block_elems)                          \
	{                                                                      \
		(void)block_elems;                                             \
		decode(to, wire, n, widen, 0);                                 \
	}                                                                      \
	static void name##_decode_add(float *to, const void *wire, size_t n,   \
				      size_t block_elems)                      \
	{                                                                      \
		(void)block_elems;                                             \
		decode(to, wire, n, widen, 1);                                 \
	}

#endif
