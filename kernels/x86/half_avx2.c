/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>
#include <string.h>

#include "code_half.h"

#define WIDTH  8
#define INLINE static inline __attribute__((always_inline))

/* One vector of eight each; an array's end goes through a padded copy. */
typedef __m128i narrow_fn(__m256 v);
typedef __m256 widen_fn(__m128i h);

INLINE void encode(uint16_t *to, const float *from, size_t n, narrow_fn *narrow)
{
	size_t i = 0;

	for (; i + WIDTH <= n; i += WIDTH)
		_mm_storeu_si128((__m128i *)(void *)(to + i),
				 narrow(_mm256_loadu_ps(from + i)));
	if (i < n) {
		float in[WIDTH] = {0};
		uint16_t out[WIDTH];

		memcpy(in, from + i, (n - i) * sizeof(*in));
		_mm_storeu_si128((__m128i *)(void *)out,
				 narrow(_mm256_loadu_ps(in)));
		memcpy(to + i, out, (n - i) * sizeof(*out));
	}
}

INLINE void decode(float *to, const uint16_t *from, size_t n, widen_fn *widen,
		   int add)
{
	size_t i = 0;

	for (; i + WIDTH <= n; i += WIDTH) {
		__m256 v = widen(_mm_loadu_si128(
			(const __m128i *)(const void *)(from + i)));

		if (add)
			v = _mm256_add_ps(_mm256_loadu_ps(to + i), v);
		_mm256_storeu_ps(to + i, v);
	}
	if (i < n) {
		uint16_t in[WIDTH] = {0};
		float out[WIDTH];

		memcpy(in, from + i, (n - i) * sizeof(*in));
		_mm256_storeu_ps(out, widen(_mm_loadu_si128(
					      (const __m128i *)(void *)in)));
		for (size_t k = 0; i < n; i++, k++)
			to[i] = add ? to[i] + out[k] : out[k];
	}
}

INLINE __m128i to_f16(__m256 v)
{
	return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
}

INLINE __m256 from_f16(__m128i h)
{
	return _mm256_cvtph_ps(h);
}

/* The low halves of eight 32-bit lanes. */
INLINE __m128i low_halves(__m256i v)
{
	v = _mm256_packus_epi32(v, v);
	return _mm256_castsi256_si128(_mm256_permute4x64_epi64(v, 0x08));
}

/* Rounding would carry a NaN into infinity or zero: it is cut and marked. */
INLINE __m256i nan_or(__m256 v, __m256i rounded)
{
	__m256i cut = _mm256_srli_epi32(_mm256_castps_si256(v), 16);
	__m256 nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);

	cut = _mm256_or_si256(cut, _mm256_set1_epi32(0x40));
	return _mm256_blendv_epi8(rounded, cut, _mm256_castps_si256(nan));
}

INLINE __m128i to_bf16(__m256 v)
{
	__m256i b = _mm256_castps_si256(v);
	__m256i odd = _mm256_and_si256(_mm256_srli_epi32(b, 16),
				       _mm256_set1_epi32(1));

	b = _mm256_add_epi32(b, _mm256_set1_epi32(0x7fff));
	b = _mm256_srli_epi32(_mm256_add_epi32(b, odd), 16);
	return low_halves(nan_or(v, b));
}

INLINE __m128i to_trunc16(__m256 v)
{
	return low_halves(
		nan_or(v, _mm256_srli_epi32(_mm256_castps_si256(v), 16)));
}

INLINE __m256 from_bf16(__m128i h)
{
	return _mm256_castsi256_ps(
		_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

GF_CODE_HALF(f16, to_f16, from_f16)
GF_CODE_HALF(bf16, to_bf16, from_bf16)
GF_CODE_HALF(trunc16, to_trunc16, from_bf16)

void gf_kernels_fill_half_avx2(struct gf_kernels *k)
{
	k->codecs[GF_CODEC_F16] = GF_CODEC_FNS(f16);
	k->codecs[GF_CODEC_BF16] = GF_CODEC_FNS(bf16);
	k->codecs[GF_CODEC_TRUNC16] = GF_CODEC_FNS(trunc16);
}
