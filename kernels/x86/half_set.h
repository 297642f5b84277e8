/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_X86_HALF_SET_H
#define GF_KERNELS_X86_HALF_SET_H

#include "sets.h"

/*
 * A set's conversions of arrays, to be included behind what they are made of:
 * encode(to, from, n, narrow) and decode(to, from, n, widen, add), and of one
 * vector to_f16, from_f16, to_bf16, from_bf16 and to_trunc16.
 */
static void f16_encode(uint16_t *to, const float *from, size_t n)
{
	encode(to, from, n, to_f16);
}

static void f16_decode(float *to, const uint16_t *from, size_t n)
{
	decode(to, from, n, from_f16, 0);
}

static void f16_decode_add(float *y, const uint16_t *x, size_t n)
{
	decode(y, x, n, from_f16, 1);
}

static void bf16_encode(uint16_t *to, const float *from, size_t n)
{
	encode(to, from, n, to_bf16);
}

static void bf16_decode(float *to, const uint16_t *from, size_t n)
{
	decode(to, from, n, from_bf16, 0);
}

static void bf16_decode_add(float *y, const uint16_t *x, size_t n)
{
	decode(y, x, n, from_bf16, 1);
}

static void trunc16_encode(uint16_t *to, const float *from, size_t n)
{
	encode(to, from, n, to_trunc16);
}

static inline void fill_half(struct gf_kernels *k)
{
	k->f16_encode = f16_encode;
	k->f16_decode = f16_decode;
	k->f16_decode_add = f16_decode_add;
	k->bf16_encode = bf16_encode;
	k->bf16_decode = bf16_decode;
	k->bf16_decode_add = bf16_decode_add;
	k->trunc16_encode = trunc16_encode;
}

#endif
