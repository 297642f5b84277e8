/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CODE_Q8_H
#define GF_KERNELS_CODE_Q8_H

#include "code_blocks.h"
#include "q8.h"
#include "vectorise.h"

/* The functions of q8. */

static void q8_encode_block(uint8_t *to, const float *from, size_t n)
{
	const float factor = q8_begin(to, largest(from, n));

	if (isnan(factor)) {
		memset(to + GF_Q8_HEADER, 127, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		to[GF_Q8_HEADER + i] = (uint8_t)q8_round(from[i] * factor);
}

GF_VECTOR void q8_decode_block(float *to, const uint8_t *from, size_t n, int add)
{
	const float step = q8_step(from);

	for (size_t i = 0; i < n; i++) {
		float v = (float)(int8_t)from[GF_Q8_HEADER + i] * step;

		to[i] = add ? to[i] + v : v;
	}
}

GF_CODE_BLOCKS(q8)

static inline void fill_q8(struct gf_kernels *k)
{
	k->codecs[GF_CODEC_Q8] = GF_CODEC_FNS(q8);
}

#endif
