/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "code_blocks.h"
#include "q8.h"
#include "x86/largest_avx2.h"

#define WIDTH  8
#define INLINE static inline __attribute__((always_inline))

/* q8_round of eight values, as bytes in the low half. */
INLINE __m128i quantise(__m256 v)
{
	__m256 half = _mm256_or_ps(_mm256_and_ps(v, _mm256_set1_ps(-0.0f)),
				   _mm256_set1_ps(GF_Q8_HALF));
	__m256i q = _mm256_cvttps_epi32(_mm256_add_ps(v, half));
	__m128i low = _mm_packs_epi32(_mm256_castsi256_si128(q),
				      _mm256_extracti128_si256(q, 1));

	return _mm_packs_epi16(low, low);
}

static void q8_encode_block(uint8_t *to, const float *from, size_t n)
{
	const float factor = q8_begin(to, largest(from, n));
	const __m256 f = _mm256_set1_ps(factor);
	size_t i = 0;

	to += GF_Q8_HEADER;
	if (isnan(factor)) {
		memset(to, 127, n);
		return;
	}
	for (; i + WIDTH <= n; i += WIDTH)
		_mm_storel_epi64(
			(__m128i *)(void *)(to + i),
			quantise(_mm256_mul_ps(f, _mm256_loadu_ps(from + i))));
	for (; i < n; i++)
		to[i] = (uint8_t)q8_round(from[i] * factor);
}

INLINE void q8_decode_block(float *to, const uint8_t *from, size_t n, int add)
{
	const float step = q8_step(from);
	const __m256 s = _mm256_set1_ps(step);
	size_t i = 0;

	from += GF_Q8_HEADER;
	for (; i + WIDTH <= n; i += WIDTH) {
		__m128i b = _mm_loadl_epi64(
			(const __m128i *)(const void *)(from + i));
		__m256 v = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b));

		v = _mm256_mul_ps(v, s);
		if (add)
			v = _mm256_add_ps(_mm256_loadu_ps(to + i), v);
		_mm256_storeu_ps(to + i, v);
	}
	for (; i < n; i++) {
		float v = (float)(int8_t)from[i] * step;

		to[i] = add ? to[i] + v : v;
	}
}

GF_CODE_BLOCKS(q8)

void gf_kernels_fill_q8_avx2(struct gf_kernels *k)
{
	k->codecs[GF_CODEC_Q8] = GF_CODEC_FNS(q8);
}
