/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "avx512.h"
#include "q8.h"
#include "sets.h"

#define INLINE static inline __attribute__((always_inline))

static uint32_t largest(const float *from, size_t n)
{
	__m512i top = _mm512_setzero_si512();

	for (size_t i = 0; i < n; i += 16) {
		__m512 v = _mm512_maskz_loadu_ps(lane_mask(n - i), from + i);

		top = _mm512_max_epi32(top,
				       _mm512_castps_si512(_mm512_abs_ps(v)));
	}
	return (uint32_t)_mm512_reduce_max_epi32(top);
}

/* q8_round of sixteen values. */
INLINE __m128i quantise(__m512 v)
{
	__m512 whole =
		_mm512_roundscale_ps(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
	__m512 rest = _mm512_abs_ps(_mm512_sub_ps(v, whole));
	__mmask16 away =
		_mm512_cmp_ps_mask(rest, _mm512_set1_ps(0.5f), _CMP_GE_OQ);
	__m512 one = _mm512_or_ps(_mm512_and_ps(v, _mm512_set1_ps(-0.0f)),
				  _mm512_set1_ps(1));

	whole = _mm512_mask_add_ps(whole, away, whole, one);
	return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(whole));
}

static void q8_encode(uint8_t *to, const float *from, size_t n)
{
	const float factor = q8_begin(to, largest(from, n));
	const __m512 f = _mm512_set1_ps(factor);

	to += GF_Q8_HEADER;
	if (isnan(factor)) {
		memset(to, 127, n);
		return;
	}
	for (size_t i = 0; i < n; i += 16) {
		__mmask16 m = lane_mask(n - i);
		__m512 v = _mm512_maskz_loadu_ps(m, from + i);

		_mm_mask_storeu_epi8(to + i, m, quantise(_mm512_mul_ps(f, v)));
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

static void q8_decode(float *to, const uint8_t *from, size_t n)
{
	decode(to, from, n, 0);
}

static void q8_decode_add(float *y, const uint8_t *x, size_t n)
{
	decode(y, x, n, 1);
}

void gf_kernels_fill_q8_avx512(struct gf_kernels *k)
{
	k->q8_encode = q8_encode;
	k->q8_decode = q8_decode;
	k->q8_decode_add = q8_decode_add;
}
