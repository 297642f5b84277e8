/* SPDX-License-Identifier: BSD-3-Clause */
// LARS over all tensors of a pool: sums of squares per piece, a trust ratio per
// tensor, the update. Three launches, none of which the host waits for.
#include "reduce.h"
#include "sets.h"
#include "sum.h"

static_assert(GF_GPU_PIECE == GF_SUM_BLOCK, "a piece is a block of the sums");

namespace
{

struct sums {
	double grad, weight;
};

// What the trust ratio makes of the step, per tensor.
struct factors {
	float scale, weight_decay;
};

struct piece {
	size_t tensor, first, count;
};

// The tensor whose pieces number `index` is among.
__device__ piece piece_of(const struct gf_gpu_tensors &t, size_t index)
{
	size_t low = 0, high = t.count; // pieces[low] <= index < pieces[high]
	piece p;

	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (t.pieces[middle] <= index)
			low = middle;
		else
			high = middle;
	}
	p.tensor = low;
	p.first = t.offsets[low] + (index - t.pieces[low]) * GF_GPU_PIECE;
	p.count = t.offsets[low + 1] - p.first;
	if (p.count > GF_GPU_PIECE)
		p.count = GF_GPU_PIECE;
	return p;
}

// A warp to each piece.
__global__ void __launch_bounds__(THREADS)
	square(struct gf_gpu_tensors t, const float *grad, const float *weight, sums *partial)
{
	const unsigned lane = threadIdx.x % WARP;
	const size_t index = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP;
	piece p;
	float g = 0, w = 0;
	double g_all, w_all;

	if (index >= t.npieces) // the whole warp
		return;
	p = piece_of(t, index);
#pragma unroll 4
	for (size_t i = lane; i < p.count; i += WARP) {
		const float x = grad[p.first + i], y = weight[p.first + i];

		g += x * x;
		w += y * y;
	}
	g_all = add_lanes_of_warp(g);
	w_all = add_lanes_of_warp(w);
	if (lane == 0)
		partial[index] = sums{g_all, w_all};
}

// As gf_lars_update.
__device__ factors factors_of(const struct gf_gpu_lars &o, float scale, double g2, double w2)
{
	const double w = sqrt(w2);
	const double g = fabs((double)scale) * sqrt(g2);
	double trust = 1;

	if (w != 0 && g != 0)
		trust = o.eta * w / (g + o.weight_decay * w + o.epsilon);
	return factors{(float)(o.rate * trust * (double)scale),
		       (float)(o.weight_decay * o.rate * trust)};
}

// A block to each tensor.
__global__ void __launch_bounds__(THREADS)
	trust(struct gf_gpu_tensors t, struct gf_gpu_lars o, const float *scale,
	      const sums *partial, factors *out)
{
	__shared__ sums of_warp[WARPS];
	const float by = scale ? *scale : o.step.scale;
	const size_t tensor = blockIdx.x, end = t.pieces[tensor + 1];
	double g = 0, w = 0;

	for (size_t i = t.pieces[tensor] + threadIdx.x; i < end; i += THREADS) {
		g += partial[i].grad;
		w += partial[i].weight;
	}
	g = add_lanes_of_warp(g);
	w = add_lanes_of_warp(w);
	if (threadIdx.x % WARP == 0)
		of_warp[threadIdx.x / WARP] = sums{g, w};
	__syncthreads();
	if (threadIdx.x != 0)
		return;
	for (unsigned i = 1; i < WARPS; i++) {
		g += of_warp[i].grad;
		w += of_warp[i].weight;
	}
	out[tensor] = t.plain[tensor] ? factors{(float)(o.rate * (double)by), 0}
				      : factors_of(o, by, g, w);
}

// A block to each piece.
__global__ void __launch_bounds__(THREADS)
	update(struct gf_gpu_tensors t, struct gf_sgd_step o, const factors *of_tensor,
	       const uint32_t *skip, const float *grad, float *weight, float *velocity)
{
	const piece p = piece_of(t, blockIdx.x);
	const factors f = of_tensor[p.tensor];

	if (skip && *skip)
		return;
#pragma unroll 4
	for (size_t i = p.first + threadIdx.x; i < p.first + p.count; i += THREADS) {
		const float w = weight[i];
		const float g = f.scale * grad[i] + f.weight_decay * w;
		const float u = o.momentum * velocity[i] + g;

		velocity[i] = u;
		weight[i] = w - o.lr * (o.nesterov ? g + o.momentum * u : u);
	}
}

} // namespace

size_t gf_gpu_lars_work_bytes(const struct gf_gpu_tensors *t)
{
	return t->npieces * sizeof(sums) + t->count * sizeof(factors);
}

void gf_cuda_lars_f32(struct gf_gpu_stream *s, const struct gf_gpu_lars *o,
		      const struct gf_gpu_tensors *t, const struct gf_gpu_gate *gate,
		      const float *grad, float *weight, float *velocity)
{
	sums *partial = static_cast<sums *>(o->work);
	factors *of_tensor = reinterpret_cast<factors *>(partial + t->npieces);

	if (t->npieces == 0)
		return;
	LAUNCH(square, blocks_for(t->npieces, WARPS), s, *t, grad, weight, partial);
	LAUNCH(trust, t->count, s, *t, *o, gate ? gate->scale : NULL, partial, of_tensor);
	LAUNCH(update, t->npieces, s, *t, o->step, of_tensor, gate ? gate->skip : NULL, grad,
	       weight, velocity);
}
