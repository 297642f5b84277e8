/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "sets.h"

static void add_f32(float *y, const float *x, size_t n)
{
	size_t i = 0;

	for (; i + 16 <= n; i += 16) {
		__m256 a = _mm256_loadu_ps(y + i), b = _mm256_loadu_ps(x + i);
		__m256 c = _mm256_loadu_ps(y + i + 8);
		__m256 d = _mm256_loadu_ps(x + i + 8);

		_mm256_storeu_ps(y + i, _mm256_add_ps(a, b));
		_mm256_storeu_ps(y + i + 8, _mm256_add_ps(c, d));
	}
	for (; i < n; i++)
		y[i] += x[i];
}

static void axpby_f32(float a, const float *x, float b, float *y, size_t n)
{
	const __m256 va = _mm256_set1_ps(a), vb = _mm256_set1_ps(b);
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		__m256 p = _mm256_mul_ps(va, _mm256_loadu_ps(x + i));
		__m256 q = _mm256_mul_ps(vb, _mm256_loadu_ps(y + i));

		_mm256_storeu_ps(y + i, _mm256_add_ps(p, q));
	}
	for (; i < n; i++)
		y[i] = a * x[i] + b * y[i];
}

void gf_kernels_fill_vector_avx2(struct gf_kernels *k)
{
	k->add_f32 = add_f32;
	k->axpby_f32 = axpby_f32;
}
