/* SPDX-License-Identifier: BSD-3-Clause */
#include "minifloat_lanes.h"

GF_VECTOR gf_bits_lanes below(gf_bits_lanes x, uint32_t y, gf_bits_lanes a, gf_bits_lanes b)
{
	const __m256i less = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)y), (__m256i)x);

	return (gf_bits_lanes)_mm256_blendv_epi8((__m256i)b, (__m256i)a, less);
}

GF_VECTOR gf_bits_lanes least(gf_bits_lanes x, uint32_t y)
{
	return (gf_bits_lanes)_mm256_min_epu32((__m256i)x, _mm256_set1_epi32((int)y));
}

GF_VECTOR void put(struct minifloat f, uint8_t *to, gf_bits_lanes codes)
{
	const __m128i low = _mm_packus_epi32(_mm256_castsi256_si128((__m256i)codes),
					     _mm256_extracti128_si256((__m256i)codes, 1));
	__m128i bytes = _mm_packus_epi16(low, low);
	int four;

	if (f.bits == 8) {
		_mm_storel_epi64((__m128i *)(void *)to, bytes);
		return;
	}
	/* low + 16*high */
	bytes = _mm_maddubs_epi16(bytes, _mm_set1_epi16(0x1001));
	four = _mm_cvtsi128_si32(_mm_packus_epi16(bytes, bytes));
	memcpy(to, &four, sizeof(four));
}

GF_VECTOR gf_bits_lanes get(struct minifloat f, const uint8_t *from)
{
	__m128i bytes;
	int four;

	if (f.bits == 8) {
		bytes = _mm_loadl_epi64((const __m128i *)(const void *)from);
	} else {
		memcpy(&four, from, sizeof(four));
		bytes = _mm_cvtepu8_epi16(_mm_cvtsi32_si128(four));
		bytes = _mm_or_si128(bytes, _mm_slli_epi16(bytes, 4));
		bytes = _mm_and_si128(bytes, _mm_set1_epi16(0x0f0f));
	}
	return (gf_bits_lanes)_mm256_cvtepu8_epi32(bytes);
}

void gf_kernels_fill_minifloat_avx2(struct gf_kernels *k)
{
	fill_minifloat(k);
}
