/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "avx512.h"
#include "sets.h"

static void add_f32(float *y, const float *x, size_t n)
{
	size_t i = 0;

	for (; i + 16 <= n; i += 16)
		_mm512_storeu_ps(y + i, _mm512_add_ps(_mm512_loadu_ps(y + i),
						      _mm512_loadu_ps(x + i)));
	if (i < n) {
		__mmask16 m = lane_mask(n - i);
		__m512 a = _mm512_maskz_loadu_ps(m, y + i);
		__m512 b = _mm512_maskz_loadu_ps(m, x + i);

		_mm512_mask_storeu_ps(y + i, m, _mm512_add_ps(a, b));
	}
}

static void axpby_f32(float a, const float *x, float b, float *y, size_t n)
{
	const __m512 va = _mm512_set1_ps(a), vb = _mm512_set1_ps(b);

	for (size_t i = 0; i < n; i += 16) {
		__mmask16 m = lane_mask(n - i);
		__m512 p = _mm512_maskz_loadu_ps(m, x + i);
		__m512 q = _mm512_maskz_loadu_ps(m, y + i);

		p = _mm512_add_ps(_mm512_mul_ps(va, p), _mm512_mul_ps(vb, q));
		_mm512_mask_storeu_ps(y + i, m, p);
	}
}

void gf_kernels_fill_vector_avx512(struct gf_kernels *k)
{
	k->add_f32 = add_f32;
	k->axpby_f32 = axpby_f32;
}
