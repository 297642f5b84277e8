/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CODE_HALF_H
#define GF_KERNELS_CODE_HALF_H

#include "half.h"
#include "sets.h"
#include "vectorise.h"

/* On the wire, the values of a set begin at any byte, after its indices. */
typedef uint16_t wire_half __attribute__((aligned(1)));
typedef uint16_t narrow_fn(float x);
typedef float widen_fn(uint16_t h);

GF_VECTOR void encode(wire_half *to, const float *from, size_t n, narrow_fn *narrow)
{
	for (size_t i = 0; i < n; i++)
		to[i] = narrow(from[i]);
}

GF_VECTOR void decode(float *to, const wire_half *from, size_t n, widen_fn *widen, int add)
{
	for (size_t i = 0; i < n; i++)
		to[i] = add ? to[i] + widen(from[i]) : widen(from[i]);
}

/* Defines name_encode, name_decode and name_decode_add of a codec of 16 bits, from the functions
 * that convert a value. */
#define GF_CODE_HALF(name, narrow, widen)                                                          \
	static void name##_encode(void *wire, const float *from, size_t n, size_t block_elems)     \
	{                                                                                          \
		(void)block_elems;                                                                 \
		encode(wire, from, n, narrow);                                                     \
	}                                                                                          \
	GF_DECODE_HALF(name##_decode, widen, 0)                                                    \
	GF_DECODE_HALF(name##_decode_add, widen, 1)

#define GF_DECODE_HALF(function, widen, add)                                                       \
	static void function(float *to, const void *wire, size_t n, size_t block_elems)            \
	{                                                                                          \
		(void)block_elems;                                                                 \
		decode(to, wire, n, widen, add);                                                   \
	}

GF_CODE_HALF(bf16, bf16_of, bf16_to)
GF_CODE_HALF(trunc16, trunc16_of, bf16_to)

static inline void fill_half(struct gf_kernels *k)
{
	k->codecs[GF_CODEC_BF16] = GF_CODEC_FNS(bf16);
	k->codecs[GF_CODEC_TRUNC16] = GF_CODEC_FNS(trunc16);
}

#endif
