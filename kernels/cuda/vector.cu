/* SPDX-License-Identifier: BSD-3-Clause */
// Sums, and the updates of SGD.
#include "each.h"
#include "sets.h"

namespace
{

struct add {
	__device__ float operator()(float y, float x) const
	{
		return y + x;
	}
};

struct scale {
	float a;

	__device__ float operator()(float, float x) const
	{
		return a * x;
	}
};

struct sgd {
	struct gf_sgd_step o;
	struct gf_gpu_gate gate;
	const float *grad;
	float *weight, *velocity;

	struct quad {
		float4 g, w, u;
	};
	size_t phase() const
	{
		return same_phase(::phase(grad, 4),
				  same_phase(::phase(weight, 4), ::phase(velocity, 4)));
	}
	__device__ void load(size_t i, quad &q) const
	{
		q.g = load4(grad + i);
		q.w = load4(weight + i);
		q.u = load4(velocity + i);
	}
	__device__ float scale() const
	{
		return gate.scale ? *gate.scale : o.scale;
	}
	__device__ void of(float by, float grad_i, float &w, float &u) const
	{
		const float g = by * grad_i + o.weight_decay * w;

		u = o.momentum * u + g;
		w -= o.lr * (o.nesterov ? g + o.momentum * u : u);
	}
	__device__ void store(size_t i, quad q) const
	{
		const float by = scale();

		if (gate.skip && *gate.skip)
			return;
		of(by, q.g.x, q.w.x, q.u.x);
		of(by, q.g.y, q.w.y, q.u.y);
		of(by, q.g.z, q.w.z, q.u.z);
		of(by, q.g.w, q.w.w, q.u.w);
		store4(velocity + i, q.u);
		store4(weight + i, q.w);
	}
	__device__ void one(size_t i) const
	{
		if (gate.skip && *gate.skip)
			return;
		of(scale(), grad[i], weight[i], velocity[i]);
	}
};

} // namespace

void gf_cuda_add_f32(struct gf_gpu_stream *s, float *y, const float *x, size_t n)
{
	each(s, changed<float, float, true, add>{y, x, {}}, n);
}

void gf_cuda_scale_f32(struct gf_gpu_stream *s, float a, const float *x, float *y, size_t n)
{
	each(s, changed<float, float, false, scale>{y, x, {a}}, n);
}

void gf_cuda_sgd_f32(struct gf_gpu_stream *s, const struct gf_sgd_step *o,
		     const struct gf_gpu_gate *gate, const float *grad, float *weight,
		     float *velocity, size_t n)
{
	const struct gf_gpu_gate open = {NULL, NULL};

	each(s, sgd{*o, gate ? *gate : open, grad, weight, velocity}, n);
}
