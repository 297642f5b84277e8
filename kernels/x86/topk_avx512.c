/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "avx512.h"
#include "sets.h"
#include "topk.h"

static size_t collect(const struct gf_topk *t, uint32_t bound)
{
	const __m512i least = _mm512_set1_epi32((int)bound);
	const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
						10, 11, 12, 13, 14, 15);
	size_t n = 0;

	for (size_t i = 0; i < t->count; i += 16) {
		__mmask16 m = lane_mask(t->count - i), hits;
		__m512 v = _mm512_maskz_loadu_ps(m, t->values + i);

		if (t->add) {
			v = _mm512_add_ps(v,
					  _mm512_maskz_loadu_ps(m, t->add + i));
			_mm512_mask_storeu_ps(t->values + i, m, v);
		}
		hits = _mm512_mask_cmpge_epi32_mask(
			m, _mm512_castps_si512(_mm512_abs_ps(v)), least);
		if (!hits)
			continue;
		_mm512_mask_compressstoreu_epi32(
			t->scratch + n, hits,
			_mm512_add_epi32(lanes, _mm512_set1_epi32((int)i)));
		n += (size_t)__builtin_popcount(hits);
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
