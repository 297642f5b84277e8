/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "code_blocks.h"
#include "q8.h"

#define WIDTH  8
#define INLINE static inline __attribute__((always_inline))

static uint32_t largest(const float *from, size_t n)
{
	const __m256i positive = _mm256_set1_epi32(0x7fffffff);
	__m256i top = _mm256_setzero_si256();
	uint32_t lanes[WIDTH], max = 0;
	size_t i = 0;

	for (; i + WIDTH <= n; i += WIDTH)
		top = _mm256_max_epi32(
			top,
			_mm256_and_si256(positive,
					 _mm256_castps_si256(
						 _mm256_loadu_ps(from + i))));
	_mm256_storeu_si256((__m256i *)(void *)lanes, top);
	for (size_t k = 0; k < WIDTH; k++)
		max = lanes[k] > max ? lanes[k] : max;
	for (; i < n; i++)
		max = magnitude(from[i]) > max ? magnitude(from[i]) : max;
	return max;
}

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

static void encode(uint8_t *to, const float *from, size_t n)
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

INLINE void decode(float *to, const uint8_t *from, size_t n, int add)
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

GF_CODE_BLOCKS(q8, q8_bytes)

void gf_kernels_fill_q8_avx2(struct gf_kernels *k)
{
	k->codecs[GF_CODEC_Q8] = GF_CODEC_FNS(q8);
}
