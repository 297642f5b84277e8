/* SPDX-License-Identifier: BSD-3-Clause */
#include <immintrin.h>

#include "sets.h"

static void tail(const struct gf_sgd_step *o, const float *grad, float *weight,
		 float *velocity, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float g = o->scale * grad[i] + o->weight_decay * weight[i];
		float u = o->momentum * velocity[i] + g;

		velocity[i] = u;
		weight[i] -= o->lr * (o->nesterov ? g + o->momentum * u : u);
	}
}

static void sgd_f32(const struct gf_sgd_step *o, const float *grad,
		    float *weight, float *velocity, size_t n)
{
	const __m256 lr = _mm256_set1_ps(o->lr);
	const __m256 momentum = _mm256_set1_ps(o->momentum);
	const __m256 decay = _mm256_set1_ps(o->weight_decay);
	const __m256 scale = _mm256_set1_ps(o->scale);
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		__m256 w = _mm256_loadu_ps(weight + i);
		__m256 g = _mm256_mul_ps(scale, _mm256_loadu_ps(grad + i));
		__m256 u = _mm256_loadu_ps(velocity + i);
		__m256 step;

		g = _mm256_add_ps(g, _mm256_mul_ps(decay, w));
		u = _mm256_add_ps(_mm256_mul_ps(momentum, u), g);
		step = u;
		if (o->nesterov)
			step = _mm256_add_ps(g, _mm256_mul_ps(momentum, u));
		w = _mm256_sub_ps(w, _mm256_mul_ps(lr, step));
		_mm256_storeu_ps(velocity + i, u);
		_mm256_storeu_ps(weight + i, w);
	}
	tail(o, grad + i, weight + i, velocity + i, n - i);
}

void gf_kernels_fill_sgd_avx2(struct gf_kernels *k)
{
	k->sgd_f32 = sgd_f32;
}
