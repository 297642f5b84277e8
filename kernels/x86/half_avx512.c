/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "avx512.h"
#include "code_half.h"

#define INLINE static inline __attribute__((always_inline))

typedef __m256i narrow_fn(__m512 v);
typedef __m512 widen_fn(__m256i h);

INLINE void encode(uint16_t *to, const float *from, size_t n, narrow_fn *narrow)
{
	for (size_t i = 0; i < n; i += 16) {
		__mmask16 m = lane_mask(n - i);

		_mm256_mask_storeu_epi16(
			to + i, m, narrow(_mm512_maskz_loadu_ps(m, from + i)));
	}
}

INLINE void decode(float *to, const uint16_t *from, size_t n, widen_fn *widen,
		   int add)
{
	for (size_t i = 0; i < n; i += 16) {
		__mmask16 m = lane_mask(n - i);
		__m512 v = widen(_mm256_maskz_loadu_epi16(m, from + i));

		if (add)
			v = _mm512_add_ps(_mm512_maskz_loadu_ps(m, to + i), v);
		_mm512_mask_storeu_ps(to + i, m, v);
	}
}

INLINE __m256i to_f16(__m512 v)
{
	return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
}

INLINE __m512 from_f16(__m256i h)
{
	return _mm512_cvtph_ps(h);
}

/* Rounding would carry a NaN into infinity or zero: it is cut and marked. */
INLINE __m256i top_halves(__m512 v, __m512i rounded)
{
	__mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
	__m512i cut = _mm512_or_si512(_mm512_castps_si512(v),
				      _mm512_set1_epi32(0x400000));

	rounded = _mm512_mask_mov_epi32(rounded, nan, cut);
	return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}

INLINE __m256i to_bf16(__m512 v)
{
	__m512i b = _mm512_castps_si512(v);
	__m512i odd = _mm512_and_si512(_mm512_srli_epi32(b, 16),
				       _mm512_set1_epi32(1));

	b = _mm512_add_epi32(b, _mm512_set1_epi32(0x7fff));
	return top_halves(v, _mm512_add_epi32(b, odd));
}

INLINE __m256i to_trunc16(__m512 v)
{
	return top_halves(v, _mm512_castps_si512(v));
}

INLINE __m512 from_bf16(__m256i h)
{
	return _mm512_castsi512_ps(
		_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

GF_CODE_HALF(f16, to_f16, from_f16)
GF_CODE_HALF(bf16, to_bf16, from_bf16)
GF_CODE_HALF(trunc16, to_trunc16, from_bf16)

void gf_kernels_fill_half_avx512(struct gf_kernels *k)
{
	k->codecs[GF_CODEC_F16] = GF_CODEC_FNS(f16);
	k->codecs[GF_CODEC_BF16] = GF_CODEC_FNS(bf16);
	k->codecs[GF_CODEC_TRUNC16] = GF_CODEC_FNS(trunc16);
}
