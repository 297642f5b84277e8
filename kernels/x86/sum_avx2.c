/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>
#include <math.h>

#include "sets.h"
#include "sum.h"

#define WIDTH   8
#define VECTORS (GF_SUM_LANES / WIDTH)
#define INLINE  static inline __attribute__((always_inline))

/* A vector of terms from y (and x), and the same for one element. */
typedef __m256 terms_fn(float *y, const float *x);
typedef float term_fn(float *y, const float *x);

INLINE double sum(float *y, const float *x, size_t n, terms_fn *terms,
		  term_fn *term)
{
	double total = 0;

	for (size_t at = 0; at < n; at += GF_SUM_BLOCK) {
		size_t count = n - at < GF_SUM_BLOCK ? n - at : GF_SUM_BLOCK;
		__m256 v[VECTORS] = {_mm256_setzero_ps(), _mm256_setzero_ps(),
				     _mm256_setzero_ps(), _mm256_setzero_ps()};
		float lanes[GF_SUM_LANES];
		size_t i = 0;

		for (; i + GF_SUM_LANES <= count; i += GF_SUM_LANES)
			for (size_t k = 0; k < VECTORS; k++) {
				size_t from = at + i + k * WIDTH;

				v[k] = _mm256_add_ps(v[k],
						     terms(y + from, x + from));
			}
		for (size_t k = 0; k < VECTORS; k++)
			_mm256_storeu_ps(lanes + k * WIDTH, v[k]);
		for (; i < count; i++)
			lanes[i % GF_SUM_LANES] += term(y + at + i, x + at + i);
		total = add_lanes(total, lanes);
	}
	return total;
}

INLINE __m256 absolute(__m256 v)
{
	return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
}

INLINE __m256 abs_terms(float *y, const float *x)
{
	(void)y;
	return absolute(_mm256_loadu_ps(x));
}

INLINE float abs_term(float *y, const float *x)
{
	(void)y;
	return fabsf(*x);
}

INLINE __m256 square_terms(float *y, const float *x)
{
	__m256 v = _mm256_loadu_ps(x);

	(void)y;
	return _mm256_mul_ps(v, v);
}

INLINE float square_term(float *y, const float *x)
{
	(void)y;
	return *x * *x;
}

INLINE __m256 added_terms(float *y, const float *x)
{
	__m256 v = _mm256_add_ps(_mm256_loadu_ps(y), _mm256_loadu_ps(x));

	_mm256_storeu_ps(y, v);
	return absolute(v);
}

INLINE float added_term(float *y, const float *x)
{
	*y += *x;
	return fabsf(*y);
}

static double sum_abs_f32(const float *x, size_t n)
{
	return sum((float *)x, x, n, abs_terms, abs_term);
}

static double sum_squares_f32(const float *x, size_t n)
{
	return sum((float *)x, x, n, square_terms, square_term);
}

static double add_sum_abs_f32(float *y, const float *x, size_t n)
{
	return sum(y, x, n, added_terms, added_term);
}

void gf_kernels_fill_sum_avx2(struct gf_kernels *k)
{
	k->sum_abs_f32 = sum_abs_f32;
	k->sum_squares_f32 = sum_squares_f32;
	k->add_sum_abs_f32 = add_sum_abs_f32;
}
