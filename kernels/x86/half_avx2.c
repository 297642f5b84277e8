/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "code_half.h"

#define WIDTH 8

/* An array's end goes through a padded copy. */
static void f16_encode(void *wire, const float *from, size_t n, size_t block_elems)
{
	uint16_t *to = wire, out[WIDTH];
	float in[WIDTH] = {0};
	size_t i = 0;

	(void)block_elems;
	for (; i + WIDTH <= n; i += WIDTH)
		_mm_storeu_si128(
			(__m128i *)(void *)(to + i),
			_mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
	if (i == n)
		return;
	memcpy(in, from + i, (n - i) * sizeof(*in));
	f16_encode(out, in, WIDTH, 0);
	memcpy(to + i, out, (n - i) * sizeof(*out));
}

GF_VECTOR void f16(float *to, const uint16_t *from, size_t n, int add)
{
	uint16_t in[WIDTH] = {0};
	float out[WIDTH];
	size_t i = 0;

	for (; i + WIDTH <= n; i += WIDTH) {
		__m256 v =
			_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i)));

		if (add)
			v = _mm256_add_ps(_mm256_loadu_ps(to + i), v);
		_mm256_storeu_ps(to + i, v);
	}
	memcpy(in, from + i, (n - i) * sizeof(*in));
	_mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(void *)in)));
	for (size_t k = 0; i < n; i++, k++)
		to[i] = add ? to[i] + out[k] : out[k];
}

static void f16_decode(float *to, const void *wire, size_t n, size_t block_elems)
{
	(void)block_elems;
	f16(to, wire, n, 0);
}

static void f16_decode_add(float *to, const void *wire, size_t n, size_t block_elems)
{
	(void)block_elems;
	f16(to, wire, n, 1);
}

void gf_kernels_fill_half_avx2(struct gf_kernels *k)
{
	fill_half(k);
	k->codecs[GF_CODEC_F16] = GF_CODEC_FNS(f16);
}
