/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "avx512.h"
#include "sets.h"
#include "sum.h"

#define INLINE static inline __attribute__((always_inline))

/* Terms from the lanes of y (and x) that the mask names, zero elsewhere: a
 * zero leaves its lane as it is. */
typedef __m512 terms_fn(float *y, const float *x, __mmask16 m);

INLINE double sum(float *y, const float *x, size_t n, terms_fn *terms)
{
	double total = 0;

	for (size_t at = 0; at < n; at += GF_SUM_BLOCK) {
		size_t count = n - at < GF_SUM_BLOCK ? n - at : GF_SUM_BLOCK;
		__m512 even = _mm512_setzero_ps(), odd = even;
		float lanes[GF_SUM_LANES];
		size_t i = 0;

		for (; i + 32 <= count; i += 32) {
			even = _mm512_add_ps(
				even, terms(y + at + i, x + at + i, 0xffff));
			odd = _mm512_add_ps(odd,
					    terms(y + at + i + 16,
						  x + at + i + 16, 0xffff));
		}
		if (i < count)
			even = _mm512_add_ps(even, terms(y + at + i, x + at + i,
							 lane_mask(count - i)));
		if (i + 16 < count)
			odd = _mm512_add_ps(
				odd, terms(y + at + i + 16, x + at + i + 16,
					   lane_mask(count - i - 16)));
		_mm512_storeu_ps(lanes, even);
		_mm512_storeu_ps(lanes + 16, odd);
		total = add_lanes(total, lanes);
	}
	return total;
}

INLINE __m512 abs_terms(float *y, const float *x, __mmask16 m)
{
	(void)y;
	return _mm512_abs_ps(_mm512_maskz_loadu_ps(m, x));
}

INLINE __m512 square_terms(float *y, const float *x, __mmask16 m)
{
	__m512 v = _mm512_maskz_loadu_ps(m, x);

	(void)y;
	return _mm512_mul_ps(v, v);
}

INLINE __m512 added_terms(float *y, const float *x, __mmask16 m)
{
	__m512 v = _mm512_add_ps(_mm512_maskz_loadu_ps(m, y),
				 _mm512_maskz_loadu_ps(m, x));

	_mm512_mask_storeu_ps(y, m, v);
	return _mm512_abs_ps(v);
}

static double sum_abs_f32(const float *x, size_t n)
{
	return sum((float *)x, x, n, abs_terms);
}

static double sum_squares_f32(const float *x, size_t n)
{
	return sum((float *)x, x, n, square_terms);
}

static double add_sum_abs_f32(float *y, const float *x, size_t n)
{
	return sum(y, x, n, added_terms);
}

void gf_kernels_fill_sum_avx512(struct gf_kernels *k)
{
	k->sum_abs_f32 = sum_abs_f32;
	k->sum_squares_f32 = sum_squares_f32;
	k->add_sum_abs_f32 = add_sum_abs_f32;
}
