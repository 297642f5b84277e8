/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_X86_LARGEST_AVX2_H
#define GF_KERNELS_X86_LARGEST_AVX2_H

#include <immintrin.h>

#include "bits.h"

/* Magnitudes order as integers, NaN last. */
static inline uint32_t largest(const float *from, size_t n)
{
	const __m256i positive = _mm256_set1_epi32(0x7fffffff);
	__m256i top = _mm256_setzero_si256();
	__m128i half;
	size_t i = 0;
	uint32_t max;

	for (; i + 8 <= n; i += 8)
		top = _mm256_max_epi32(
			top,
			_mm256_and_si256(positive,
					 _mm256_castps_si256(
						 _mm256_loadu_ps(from + i))));
	half = _mm_max_epi32(_mm256_castsi256_si128(top),
			     _mm256_extracti128_si256(top, 1));
	half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4e));
	half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0xb1));
	max = (uint32_t)_mm_cvtsi128_si32(half);
	for (; i < n; i++)
		max = magnitude(from[i]) > max ? magnitude(from[i]) : max;
	return max;
}

#endif
