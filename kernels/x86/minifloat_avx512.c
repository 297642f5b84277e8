/* SPDX-License-Identifier: BSD-3-Clause */
#include "minifloat_lanes.h"

GF_VECTOR gf_bits_lanes below(gf_bits_lanes x, uint32_t y, gf_bits_lanes a, gf_bits_lanes b)
{
	const __mmask16 less = _mm512_cmplt_epu32_mask((__m512i)x, _mm512_set1_epi32((int)y));

	return (gf_bits_lanes)_mm512_mask_blend_epi32(less, (__m512i)b, (__m512i)a);
}

GF_VECTOR gf_bits_lanes least(gf_bits_lanes x, uint32_t y)
{
	return (gf_bits_lanes)_mm512_min_epu32((__m512i)x, _mm512_set1_epi32((int)y));
}

/* Two codes of four bits lie in 64 bits until they share a byte. */
GF_VECTOR void put(struct minifloat f, uint8_t *to, gf_bits_lanes codes)
{
	__m512i c = (__m512i)codes;

	if (f.bits == 8) {
		_mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8(c));
		return;
	}
	c = _mm512_or_si512(c, _mm512_srli_epi64(c, 28));
	_mm_storel_epi64((__m128i *)(void *)to, _mm512_cvtepi64_epi8(c));
}

GF_VECTOR gf_bits_lanes get(struct minifloat f, const uint8_t *from)
{
	const __m128i *const bytes = (const void *)from;
	__m512i pairs;

	if (f.bits == 8)
		return (gf_bits_lanes)_mm512_cvtepu8_epi32(_mm_loadu_si128(bytes));
	pairs = _mm512_cvtepu8_epi64(_mm_loadl_epi64(bytes));
	return (gf_bits_lanes)_mm512_or_si512(pairs, _mm512_slli_epi64(pairs, 28)) & 15;
}

void gf_kernels_fill_minifloat_avx512(struct gf_kernels *k)
{
	fill_minifloat(k);
}
