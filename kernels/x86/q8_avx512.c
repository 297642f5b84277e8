/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "avx512.h"
#include "code_blocks.h"
#include "q8.h"

#define INLINE static inline __attribute__((always_inline))

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

static void q8_encode_block(uint8_t *to, const float *from, size_t n)
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

INLINE void q8_decode_block(float *to, const uint8_t *from, size_t n, int add)
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

GF_CODE_BLOCKS(q8)

void gf_kernels_fill_q8_avx512(struct gf_kernels *k)
{
	k->codecs[GF_CODEC_Q8] = GF_CODEC_FNS(q8);
}
