/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>
#include <string.h>

#include "minifloat.h"
#include "sets.h"

#define WIDTH  8
#define INLINE static inline __attribute__((always_inline))

INLINE __m256i all(uint32_t x)
{
	return _mm256_set1_epi32((int)x);
}

INLINE __m256i as_bits(__m256 v)
{
	return _mm256_castps_si256(v);
}

/* minifloat_of */
INLINE __m256i codes_of(struct minifloat f, __m256 v)
{
	const int shift = 23 - (int)f.fraction;
	const __m256i b = as_bits(v), a = _mm256_and_si256(b, all(0x7fffffff));
	const __m256i rounder = all(minifloat_rounder(f));
	__m256i sign = _mm256_slli_epi32(_mm256_srli_epi32(b, 31), (int)f.bits - 1);
	__m256i odd = _mm256_and_si256(_mm256_srli_epi32(a, shift), all(1));
	__m256i normal, small, code;

	normal = _mm256_add_epi32(a, all((1u << (shift - 1)) - 1 - minifloat_rebias(f)));
	normal = _mm256_srli_epi32(_mm256_add_epi32(normal, odd), shift);
	small = as_bits(_mm256_add_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(rounder)));
	small = _mm256_sub_epi32(small, rounder);
	code = _mm256_blendv_epi8(normal, small,
				  _mm256_cmpgt_epi32(all(minifloat_least_normal(f)), a));
	return _mm256_or_si256(sign, _mm256_min_epi32(code, all(f.largest)));
}

/* minifloat_to */
INLINE __m256 values_of(struct minifloat f, __m256i codes)
{
	const uint32_t top = 1u << (f.bits - 1);
	const __m256i a = _mm256_and_si256(codes, all(top - 1));
	__m256i sign = _mm256_slli_epi32(_mm256_and_si256(codes, all(top)), 32 - (int)f.bits);
	__m256i normal, small, value;

	normal = _mm256_add_epi32(_mm256_slli_epi32(a, 23 - (int)f.fraction),
				  all(minifloat_rebias(f)));
	small = as_bits(
		_mm256_mul_ps(_mm256_cvtepi32_ps(a), _mm256_castsi256_ps(all(minifloat_step(f)))));
	value = _mm256_blendv_epi8(normal, small, _mm256_cmpgt_epi32(all(1u << f.fraction), a));
	value = _mm256_blendv_epi8(value, all(0x7fc00000), _mm256_cmpgt_epi32(a, all(f.largest)));
	return _mm256_castsi256_ps(_mm256_or_si256(sign, value));
}

/* Eight codes, a byte each. */
INLINE __m128i as_bytes(__m256i codes)
{
	__m128i low =
		_mm_packus_epi32(_mm256_castsi256_si128(codes), _mm256_extracti128_si256(codes, 1));

	return _mm_packus_epi16(low, low);
}

INLINE void put(struct minifloat f, uint8_t *to, __m256i codes)
{
	__m128i bytes = as_bytes(codes);
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

INLINE __m256i get(struct minifloat f, const uint8_t *from)
{
	__m128i bytes;
	int four;

	if (f.bits == 8)
		return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
	memcpy(&four, from, sizeof(four));
	bytes = _mm_cvtepu8_epi16(_mm_cvtsi32_si128(four));
	bytes = _mm_or_si128(bytes, _mm_slli_epi16(bytes, 4));
	return _mm256_cvtepu8_epi32(_mm_and_si128(bytes, _mm_set1_epi16(0x0f0f)));
}

INLINE size_t encode(struct minifloat f, uint8_t *to, const float *from, size_t n)
{
	const __m256 inverse = _mm256_set1_ps(scale_inverse(*to));
	size_t i = 0;

	to += GF_SCALE_BYTES;
	for (; i + WIDTH <= n; i += WIDTH)
		put(f, to + i * f.bits / 8,
		    codes_of(f, _mm256_mul_ps(_mm256_loadu_ps(from + i), inverse)));
	return i;
}

INLINE size_t decode(struct minifloat f, float *to, const uint8_t *from, size_t n, int add)
{
	const __m256 scale = _mm256_set1_ps(scale_to(*from));
	size_t i = 0;

	from += GF_SCALE_BYTES;
	for (; i + WIDTH <= n; i += WIDTH) {
		__m256 v = _mm256_mul_ps(values_of(f, get(f, from + i * f.bits / 8)), scale);

		if (add)
			v = _mm256_add_ps(_mm256_loadu_ps(to + i), v);
		_mm256_storeu_ps(to + i, v);
	}
	return i;
}

#include "code_minifloat.h"

void gf_kernels_fill_minifloat_avx2(struct gf_kernels *k)
{
	fill_minifloat(k);
}
