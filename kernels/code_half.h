/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CODE_HALF_H
#define GF_KERNELS_CODE_HALF_H

#include "sets.h"

/*
 * Defines name_encode, name_decode and name_decode_add of a codec of 16 bits.
 * The including file has two functions: encode(to, from, n, narrow) and
 * decode(to, from, n, widen, add). The names narrow and widen convert a value,
 * or a vector of values.
 */
#define GF_CODE_HALF(name, narrow, widen)                                      \
	static void name##_encode(void *wire, const float *from, size_t n,     \
				  size_t block_elems)                          \
	{                                                                      \
		(void)block_elems;                                             \
		encode(wire, from, n, narrow);                                 \
	}                                                                      \
	GF_DECODE_HALF(name##_decode, widen, 0)                                \
	GF_DECODE_HALF(name##_decode_add, widen, 1)

#define GF_DECODE_HALF(function, widen, add)                                   \
	static void function(float *to, const void *wire, size_t n,            \
			     size_t block_elems)                               \
	{                                                                      \
		(void)block_elems;                                             \
		decode(to, wire, n, widen, add);                               \
	}

#endif
