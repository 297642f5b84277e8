/* SPDX-License-Identifier: BSD-3-Clause */
// AdamW: the count of steps and what follows from it stay on the device, since
// the host learns late whether a step was skipped.
#include "adamw.h"
#include "each.h"
#include "sets.h"

namespace
{

// One thread.
__global__ void __launch_bounds__(THREADS)
	count(struct gf_adamw_rule o, float scale, struct gf_gpu_gate gate, uint64_t *steps,
	      struct gf_adamw_step *now)
{
	if (threadIdx.x != 0 || (gate.skip && *gate.skip))
		return;
	*now = adamw_step(&o, gate.scale ? *gate.scale : scale, ++*steps);
}

struct adamw {
	const struct gf_adamw_step *now;
	bool plain;
	const uint32_t *skip;
	const float *grad;
	float *weight, *m, *v;

	struct quad {
		float4 g, w, m, v;
	};
	size_t phase() const
	{
		return same_phase(same_phase(::phase(grad, 4), ::phase(weight, 4)),
				  same_phase(::phase(m, 4), ::phase(v, 4)));
	}
	__device__ void load(size_t i, quad &q) const
	{
		q.g = load4(grad + i);
		q.w = load4(weight + i);
		q.m = load4(m + i);
		q.v = load4(v + i);
	}
	__device__ void of(const struct gf_adamw_step &o, float grad_i, float &w, float &first,
			   float &second) const
	{
		const float g = o.scale * grad_i;

		first = first + o.change1 * (g - first);
		second = o.beta2 * second + o.change2 * (g * g);
		w = (plain ? 1 : o.keep) * w -
		    o.rate * first / (sqrtf(second) / o.root + o.epsilon);
	}
	__device__ void store(size_t i, quad q) const
	{
		const struct gf_adamw_step o = *now;

		if (skip && *skip)
			return;
		of(o, q.g.x, q.w.x, q.m.x, q.v.x);
		of(o, q.g.y, q.w.y, q.m.y, q.v.y);
		of(o, q.g.z, q.w.z, q.m.z, q.v.z);
		of(o, q.g.w, q.w.w, q.m.w, q.v.w);
		store4(m + i, q.m);
		store4(v + i, q.v);
		store4(weight + i, q.w);
	}
	__device__ void one(size_t i) const
	{
		if (skip && *skip)
			return;
		of(*now, grad[i], weight[i], m[i], v[i]);
	}
};

} // namespace

void gf_cuda_adamw_begin(struct gf_gpu_stream *s, const struct gf_adamw_rule *o, float scale,
			 const struct gf_gpu_gate *gate, uint64_t *steps, struct gf_adamw_step *now)
{
	const struct gf_gpu_gate open = {NULL, NULL};

	LAUNCH(count, 1, s, *o, scale, gate ? *gate : open, steps, now);
}

void gf_cuda_adamw_f32(struct gf_gpu_stream *s, const struct gf_adamw_step *now, bool plain,
		       const uint32_t *skip, const float *grad, float *weight, float *m, float *v,
		       size_t n)
{
	each(s, adamw{now, plain, skip, grad, weight, m, v}, n);
}
