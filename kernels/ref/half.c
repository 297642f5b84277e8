/* SPDX-License-Identifier: BSD-3-Clause */
#include "half.h"
#include "sets.h"

static void f16_encode(uint16_t *to, const float *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = f16_of(from[i]);
}

static void f16_decode(float *to, const uint16_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = f16_to(from[i]);
}

static void f16_decode_add(float *y, const uint16_t *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] += f16_to(x[i]);
}

static void bf16_encode(uint16_t *to, const float *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = bf16_of(from[i]);
}

static void bf16_decode(float *to, const uint16_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = bf16_to(from[i]);
}

static void bf16_decode_add(float *y, const uint16_t *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] += bf16_to(x[i]);
}

static void trunc16_encode(uint16_t *to, const float *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = trunc16_of(from[i]);
}

void gf_kernels_fill_half_ref(struct gf_kernels *k)
{
	k->f16_encode = f16_encode;
	k->f16_decode = f16_decode;
	k->f16_decode_add = f16_decode_add;
	k->bf16_encode = bf16_encode;
	k->bf16_decode = bf16_decode;
	k->bf16_decode_add = bf16_decode_add;
	k->trunc16_encode = trunc16_encode;
}
