/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "avx512.h"
#include "code_blocks.h"
#include "q8.h"

#define INLINE static inline __attribute__((always_inline))

INLINE __m512i magnitudes(const float *from, __mmask16 m)
{
	return _mm512_castps_si512(
		_mm512_abs_ps(_mm512_maskz_loadu_ps(m, from)));
}

static uint32_t largest(const float *from, size_t n)
{
	__m512i even = _mm512_setzero_si512(), odd = even;
	size_t i = 0;

	for (; i + 32 <= n; i += 32) {
		even = _mm512_max_epi32(even, magnitudes(from + i, 0xffff));
		odd = _mm512_max_epi32(odd, magnitudes(from + i + 16, 0xffff));
	}
	for (; i < n; i += 16)
		even = _mm512_max_epi32(even,
					magnitudes(from + i, lane_mask(n - i)));
	return (uint32_t)_mm512_reduce_max_epi32(_mm512_max_epi32(even, odd));
}

/* q8_round of sixteen values times f. */
INLINE __m128i quantise(__m512 v, __m512 f)
{
	const __m512 sign = _mm512_set1_ps(-0.0f);
	__m512 half;

	v = _mm512_mul_ps(v, f);
	half = _mm512_or_ps(_mm512_and_ps(v, sign), _mm512_set1_ps(GF_Q8_HALF));
	return _mm512_cvtepi32_epi8(
		_mm512_cvttps_epi32(_mm512_add_ps(v, half)));
}

static void encode(uint8_t *to, const float *from, size_t n)
{
	const float factor = q8_begin(to, largest(from, n));
	const __m512 f = _mm512_set1_ps(factor);
	size_t i = 0;

	to += GF_Q8_HEADER;
	if (isnan(factor)) {
		memset(to, 127, n);
		return;
	}
	for (; i + 16 <= n; i += 16)
		_mm_storeu_si128((__m128i *)(void *)(to + i),
				 quantise(_mm512_loadu_ps(from + i), f));
	if (i < n) {
		__mmask16 m = lane_mask(n - i);
		__m512 v = _mm512_maskz_loadu_ps(m, from + i);

		_mm_mask_storeu_epi8(to + i, m, quantise(v, f));
	}
}

INLINE void decode(float *to, const uint8_t *from, size_t n, int add)
{
	const __m512 step = _mm512_set1_ps(q8_step(from));

	from += GF_Q8_HEADER;
	for (size_t i = 0; i < n; i += 16) {
		__mmask16 m = lane_mask(n - i);
		__m128i b = _mm_maskz_loadu_epi8(m, from + i);
		__m512 v = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(b));

		v = _mm512_mul_ps(v, step);
		if (add)
			v = _mm512_add_ps(_mm512_maskz_loadu_ps(m, to + i), v);
		_mm512_mask_storeu_ps(to + i, m, v);
	}
}

GF_CODE_BLOCKS(q8, q8_bytes)

void gf_kernels_fill_q8_avx512(struct gf_kernels *k)
{
	k->codecs[GF_CODEC_Q8] = GF_CODEC_FNS(q8);
}
