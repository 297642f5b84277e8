/* SPDX-License-Identifier: BSD-3-Clause */
#include "q8.h"
#include "sets.h"

static void q8_encode(uint8_t *to, const float *from, size_t n)
{
	uint32_t largest = 0;
	float factor;

	for (size_t i = 0; i < n; i++)
		if (magnitude(from[i]) > largest)
			largest = magnitude(from[i]);
	factor = q8_begin(to, largest);
	if (isnan(factor)) {
		memset(to + GF_Q8_HEADER, 127, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		to[GF_Q8_HEADER + i] = (uint8_t)q8_round(from[i] * factor);
}

static void q8_decode(float *to, const uint8_t *from, size_t n)
{
	const float step = q8_step(from);

	for (size_t i = 0; i < n; i++)
		to[i] = (float)(int8_t)from[GF_Q8_HEADER + i] * step;
}

static void q8_decode_add(float *y, const uint8_t *x, size_t n)
{
	const float step = q8_step(x);

	for (size_t i = 0; i < n; i++)
		y[i] += (float)(int8_t)x[GF_Q8_HEADER + i] * step;
}

void gf_kernels_fill_q8_ref(struct gf_kernels *k)
{
	k->q8_encode = q8_encode;
	k->q8_decode = q8_decode;
	k->q8_decode_add = q8_decode_add;
}
