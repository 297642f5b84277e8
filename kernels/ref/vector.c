/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "sets.h"

static void add_f32(float *y, const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] += x[i];
}

static void axpby_f32(float a, const float *x, float b, float *y, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] = a * x[i] + b * y[i];
}

static void f32_encode(void *wire, const float *from, size_t n,
		       size_t block_elems)
{
	(void)block_elems;
	memcpy(wire, from, n * sizeof(*from));
}

static void f32_decode(float *to, const void *wire, size_t n,
		       size_t block_elems)
{
	(void)block_elems;
	memcpy(to, wire, n * sizeof(*to));
}

/* By the best set: all of them give the same bits. */
static void f32_decode_add(float *to, const void *wire, size_t n,
			   size_t block_elems)
{
	(void)block_elems;
	gf_kernels()->add_f32(to, wire, n);
}

void gf_kernels_fill_vector_ref(struct gf_kernels *k)
{
	k->add_f32 = add_f32;
	k->axpby_f32 = axpby_f32;
	k->codecs[GF_CODEC_F32] = GF_CODEC_FNS(f32);
}
