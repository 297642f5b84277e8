/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "sets.h"
#include "topk.h"

#define WIDTH 8

static size_t collect(const struct gf_topk *t, uint32_t bound)
{
	const __m256i positive = _mm256_set1_epi32(0x7fffffff);
	/* keys and the bound are below 2^31: signed comparison will do */
	const __m256i below = _mm256_set1_epi32((int)bound - 1);
	size_t n = 0, i = 0;

	for (; i + WIDTH <= t->count; i += WIDTH) {
		__m256 v = _mm256_loadu_ps(t->values + i);
		__m256i key, hit;
		unsigned hits;

		if (t->add) {
			v = _mm256_add_ps(v, _mm256_loadu_ps(t->add + i));
			_mm256_storeu_ps(t->values + i, v);
		}
		key = _mm256_and_si256(positive, _mm256_castps_si256(v));
		hit = _mm256_cmpgt_epi32(key, below);
		hits = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(hit));
		for (; hits; hits &= hits - 1)
			t->scratch[n++] = (uint32_t)i + (uint32_t)__builtin_ctz(hits);
	}
	for (; i < t->count; i++) {
		if (t->add)
			t->values[i] += t->add[i];
		if (magnitude(t->values[i]) >= bound)
			t->scratch[n++] = (uint32_t)i;
	}
	return n;
}

static void topk_f32(const struct gf_topk *t)
{
	topk(t, collect);
}

void gf_kernels_fill_topk_avx2(struct gf_kernels *k)
{
	k->topk_f32 = topk_f32;
}
