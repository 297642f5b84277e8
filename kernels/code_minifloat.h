/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CODE_MINIFLOAT_H
#define GF_KERNELS_CODE_MINIFLOAT_H

#include <string.h>

#include "code_blocks.h"
#include "minifloat.h"
#include "vectorise.h"

/*
 * The functions of fp8 and fp4, made from two of a set, which come before this header: encode(f,
 * to, from, n) codes the first elements by vectors, and returns their number, which ends a byte.
 * decode(f, to, from, n, add) decodes the first elements in the same way. minifloat.h codes the
 * rest.
 */
#define GF_CODE_MINIFLOAT(name, format)                                                            \
	static void name##_encode_block(uint8_t *to, const float *from, size_t n)                  \
	{                                                                                          \
		*to = scale_of(format(), largest(from, n));                                        \
		if (*to == GF_SCALE_NAN)                                                           \
			memset(to + GF_SCALE_BYTES, 0, name##_bytes(n) - GF_SCALE_BYTES);          \
		else                                                                               \
			minifloat_encode(format(), to, from, encode(format(), to, from, n), n);    \
	}                                                                                          \
	static void name##_decode_block(float *to, const uint8_t *from, size_t n, int add)         \
	{                                                                                          \
		minifloat_decode(format(), to, from, decode(format(), to, from, n, add), n, add);  \
	}                                                                                          \
	GF_CODE_BLOCKS(name)

GF_CODE_MINIFLOAT(fp8, e4m3)
GF_CODE_MINIFLOAT(fp4, e2m1)

static inline void fill_minifloat(struct gf_kernels *k)
{
	k->codecs[GF_CODEC_FP8] = GF_CODEC_FNS(fp8);
	k->codecs[GF_CODEC_FP4] = GF_CODEC_FNS(fp4);
}

#endif
