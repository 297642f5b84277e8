/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_X86_LARGEST_AVX2_H
#define GF_KERNELS_X86_LARGEST_AVX2_H

#include <immintrin.h>

#include "bits.h"

static inline __m256i larger(__m256i top, const float *from)
{
	const __m256 sign = _mm256_set1_ps(-0.0f);

	return _mm256_max_epi32(top, _mm256_castps_si256(_mm256_andnot_ps(
					     sign, _mm256_loadu_ps(from))));
}

/* Magnitudes order as integers, NaN last. */
static inline uint32_t largest(const float *from, size_t n)
{
	__m256i even = _mm256_setzero_si256(), odd = even;
	__m128i top;
	size_t i = 0;
	uint32_t max;

	for (; i + 16 <= n; i += 16) {
		even = larger(even, from + i);
		odd = larger(odd, from + i + 8);
	}
	even = _mm256_max_epi32(even, odd);
	top = _mm_max_epi32(_mm256_castsi256_si128(even),
			    _mm256_extracti128_si256(even, 1));
	top = _mm_max_epi32(top, _mm_shuffle_epi32(top, 0x4e));
	top = _mm_max_epi32(top, _mm_shuffle_epi32(top, 0xb1));
	max = (uint32_t)_mm_cvtsi128_si32(top);
	for (; i < n; i++)
		max = magnitude(from[i]) > max ? magnitude(from[i]) : max;
	return max;
}

#endif
