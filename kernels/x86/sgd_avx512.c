/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "avx512.h"
#include "sets.h"

static void sgd_f32(const struct gf_sgd_step *o, const float *grad,
		    float *weight, float *velocity, size_t n)
{
	const __m512 lr = _mm512_set1_ps(o->lr);
	const __m512 momentum = _mm512_set1_ps(o->momentum);
	const __m512 decay = _mm512_set1_ps(o->weight_decay);
	const __m512 scale = _mm512_set1_ps(o->scale);

	for (size_t i = 0; i < n; i += 16) {
		__mmask16 m = lane_mask(n - i);
		__m512 w = _mm512_maskz_loadu_ps(m, weight + i);
		__m512 g = _mm512_maskz_loadu_ps(m, grad + i);
		__m512 u = _mm512_maskz_loadu_ps(m, velocity + i);
		__m512 step;

		g = _mm512_mul_ps(scale, g);
		g = _mm512_add_ps(g, _mm512_mul_ps(decay, w));
		u = _mm512_add_ps(_mm512_mul_ps(momentum, u), g);
		step = u;
		if (o->nesterov)
			step = _mm512_add_ps(g, _mm512_mul_ps(momentum, u));
		w = _mm512_sub_ps(w, _mm512_mul_ps(lr, step));
		_mm512_mask_storeu_ps(velocity + i, m, u);
		_mm512_mask_storeu_ps(weight + i, m, w);
	}
}

void gf_kernels_fill_sgd_avx512(struct gf_kernels *k)
{
	k->sgd_f32 = sgd_f32;
}
