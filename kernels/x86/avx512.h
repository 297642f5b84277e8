/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_X86_AVX512_H
#define GF_KERNELS_X86_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/* The lanes of a vector of 16 that `left` elements still fill. */
static inline __mmask16 lane_mask(size_t left)
{
	return left < 16 ? (__mmask16)((1u << left) - 1) : 0xffff;
}

static inline __m512i magnitudes(const float *from, __mmask16 m)
{
	return _mm512_castps_si512(
		_mm512_abs_ps(_mm512_maskz_loadu_ps(m, from)));
}

/* Magnitudes order as integers, NaN last. */
static inline uint32_t largest(const float *from, size_t n)
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

#endif
