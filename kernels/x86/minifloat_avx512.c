/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "minifloat.h"
#include "sets.h"

#define INLINE static inline __attribute__((always_inline))

INLINE __m512i all(uint32_t x)
{
	return _mm512_set1_epi32((int)x);
}

/* minifloat_of */
INLINE __m512i codes_of(struct minifloat f, __m512 v)
{
	const unsigned shift = 23 - f.fraction;
	const __m512i b = _mm512_castps_si512(v);
	const __m512i a = _mm512_and_si512(b, all(0x7fffffff));
	const __m512i rounder = all(minifloat_rounder(f));
	__m512i sign = _mm512_slli_epi32(_mm512_srli_epi32(b, 31), f.bits - 1);
	__m512i odd = _mm512_and_si512(_mm512_srli_epi32(a, shift), all(1));
	__m512i normal, small, code;

	normal = _mm512_add_epi32(a, all((1u << (shift - 1)) - 1 - minifloat_rebias(f)));
	normal = _mm512_srli_epi32(_mm512_add_epi32(normal, odd), shift);
	small = _mm512_castps_si512(
		_mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(rounder)));
	code = _mm512_mask_sub_epi32(
		normal, _mm512_cmplt_epi32_mask(a, all(minifloat_least_normal(f))), small, rounder);
	return _mm512_or_si512(sign, _mm512_min_epi32(code, all(f.largest)));
}

/* minifloat_to */
INLINE __m512 values_of(struct minifloat f, __m512i codes)
{
	const uint32_t top = 1u << (f.bits - 1);
	const __m512i a = _mm512_and_si512(codes, all(top - 1));
	__m512i sign = _mm512_slli_epi32(_mm512_and_si512(codes, all(top)), 32 - f.bits);
	__m512 value;

	value = _mm512_castsi512_ps(
		_mm512_add_epi32(_mm512_slli_epi32(a, 23 - f.fraction), all(minifloat_rebias(f))));
	value = _mm512_mask_mul_ps(value, _mm512_cmplt_epi32_mask(a, all(1u << f.fraction)),
				   _mm512_cvtepi32_ps(a),
				   _mm512_castsi512_ps(all(minifloat_step(f))));
	value = _mm512_mask_mov_ps(value, _mm512_cmpgt_epi32_mask(a, all(f.largest)),
				   _mm512_castsi512_ps(all(0x7fc00000)));
	return _mm512_or_ps(value, _mm512_castsi512_ps(sign));
}

/* Sixteen codes; two of four bits lie in 64 bits until they share a byte. */
INLINE void put(struct minifloat f, uint8_t *to, __m512i codes)
{
	if (f.bits == 8) {
		_mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8(codes));
		return;
	}
	codes = _mm512_or_si512(codes, _mm512_srli_epi64(codes, 28));
	_mm_storel_epi64((__m128i *)(void *)to, _mm512_cvtepi64_epi8(codes));
}

INLINE __m512i get(struct minifloat f, const uint8_t *from)
{
	__m512i pairs;

	if (f.bits == 8)
		return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
	pairs = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)from));
	pairs = _mm512_or_si512(pairs, _mm512_slli_epi64(pairs, 28));
	return _mm512_and_si512(pairs, all(15));
}

INLINE size_t encode(struct minifloat f, uint8_t *to, const float *from, size_t n)
{
	const __m512 inverse = _mm512_set1_ps(scale_inverse(*to));
	size_t i = 0;

	to += GF_SCALE_BYTES;
	for (; i + 16 <= n; i += 16)
		put(f, to + i * f.bits / 8,
		    codes_of(f, _mm512_mul_ps(_mm512_loadu_ps(from + i), inverse)));
	return i;
}

INLINE size_t decode(struct minifloat f, float *to, const uint8_t *from, size_t n, int add)
{
	const __m512 scale = _mm512_set1_ps(scale_to(*from));
	size_t i = 0;

	from += GF_SCALE_BYTES;
	for (; i + 16 <= n; i += 16) {
		__m512 v = _mm512_mul_ps(values_of(f, get(f, from + i * f.bits / 8)), scale);

		if (add)
			v = _mm512_add_ps(_mm512_loadu_ps(to + i), v);
		_mm512_storeu_ps(to + i, v);
	}
	return i;
}

#include "code_minifloat.h"

void gf_kernels_fill_minifloat_avx512(struct gf_kernels *k)
{
	fill_minifloat(k);
}
