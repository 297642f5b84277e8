/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "sets.h"
#include "topk.h"

#define INLINE static inline __attribute__((always_inline))

/* The lanes of a vector of 16 that `left` elements still fill. */
INLINE __mmask16 lane_mask(size_t left)
{
	return left < 16 ? (__mmask16)((1u << left) - 1) : 0xffff;
}

/* Sixteen magnitudes from place i on, `add` taken up. */
INLINE __m512i take_up(const struct gf_topk *t, size_t i, __mmask16 m)
{
	__m512 v = _mm512_maskz_loadu_ps(m, t->values + i);

	if (t->add) {
		v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(m, t->add + i));
		_mm512_mask_storeu_ps(t->values + i, m, v);
	}
	return _mm512_castps_si512(_mm512_abs_ps(v));
}

/* Writes as many places as there are lanes, of which those of the hits count: compressing straight
 * to memory takes some processors a hundred cycles. */
INLINE size_t note(uint32_t *to, size_t i, __mmask16 hits, __mmask16 used)
{
	const __m512i lanes =
		_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

	_mm512_mask_storeu_epi32(to, used,
				 _mm512_maskz_compress_epi32(
					 hits, _mm512_add_epi32(lanes, _mm512_set1_epi32((int)i))));
	return (size_t)__builtin_popcount(hits);
}

/* Few vectors have a hit: four share one branch. */
static size_t collect(const struct gf_topk *t, uint32_t bound)
{
	const __m512i least = _mm512_set1_epi32((int)bound);
	size_t n = 0, i = 0;

	for (; i + 64 <= t->count; i += 64) {
		__mmask16 hits[4];

		for (size_t k = 0; k < 4; k++)
			hits[k] = _mm512_cmpge_epi32_mask(take_up(t, i + 16 * k, 0xffff), least);
		if (!(hits[0] | hits[1] | hits[2] | hits[3]))
			continue;
		for (size_t k = 0; k < 4; k++)
			n += note(t->scratch + n, i + 16 * k, hits[k], 0xffff);
	}
	for (; i < t->count; i += 16) {
		__mmask16 m = lane_mask(t->count - i);

		n += note(t->scratch + n, i,
			  _mm512_mask_cmpge_epi32_mask(m, take_up(t, i, m), least), m);
	}
	return n;
}

static void topk_f32(const struct gf_topk *t)
{
	topk(t, collect);
}

void gf_kernels_fill_topk_avx512(struct gf_kernels *k)
{
	k->topk_f32 = topk_f32;
}
