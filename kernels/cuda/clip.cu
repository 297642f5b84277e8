/* SPDX-License-Identifier: BSD-3-Clause */
// Clipping by the norm of a whole gradient: sums of squares per block of the
// sums, then the factor that the update scales by. The gradient is read once
// and not written.
#include "reduce.h"
#include "sets.h"
#include "sum.h"

namespace
{

#define BATCH 8 // loads under way at once

static_assert(GF_SUM_BLOCK % (BATCH * WARP) == 0, "whole batches");

// A warp to each block of the sums; its lanes are those of the specification.
__global__ void __launch_bounds__(THREADS) squares(const float *x, size_t n, double *partial)
{
	const unsigned lane = threadIdx.x % WARP;
	const size_t index = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP;
	const size_t from = index * GF_SUM_BLOCK;
	const size_t to = n < from + GF_SUM_BLOCK ? n : from + GF_SUM_BLOCK;
	float sum = 0;
	double all;

	if (from >= n) // the whole warp
		return;
	for (size_t i = from + lane; i < to; i += BATCH * WARP) {
		float v[BATCH];

#pragma unroll
		for (unsigned u = 0; u < BATCH; u++)
			v[u] = i + u * WARP < to ? x[i + u * WARP] : 0;
#pragma unroll
		for (unsigned u = 0; u < BATCH; u++)
			sum += v[u] * v[u];
	}
	all = add_lanes_of_warp(sum);
	if (lane == 0)
		partial[index] = all;
}

// One block. As gf_optimizer_step; a norm that is not a number clips nothing.
__global__ void __launch_bounds__(THREADS)
	factor_of(struct gf_gpu_clip o, const double *partial, size_t npartial, float *factor)
{
	__shared__ double of_warp[WARPS];
	double sum = 0, norm;

	for (size_t i = threadIdx.x; i < npartial; i += THREADS)
		sum += partial[i];
	sum = add_lanes_of_warp(sum);
	if (threadIdx.x % WARP == 0)
		of_warp[threadIdx.x / WARP] = sum;
	__syncthreads();
	if (threadIdx.x != 0)
		return;
	for (unsigned i = 1; i < WARPS; i++)
		sum += of_warp[i];
	norm = fabs((double)o.scale) * sqrt(sum);
	*factor = norm > o.norm ? (float)((double)o.scale * (o.norm / norm)) : o.scale;
}

} // namespace

size_t gf_gpu_clip_work_bytes(size_t n)
{
	return blocks_for(n, GF_SUM_BLOCK) * sizeof(double);
}

void gf_cuda_clip_f32(struct gf_gpu_stream *s, const struct gf_gpu_clip *o, const float *grad,
		      size_t n, float *factor)
{
	const size_t npartial = blocks_for(n, GF_SUM_BLOCK);
	double *partial = static_cast<double *>(o->work);

	if (npartial)
		LAUNCH(squares, blocks_for(npartial, WARPS), s, grad, n, partial);
	LAUNCH(factor_of, 1, s, *o, partial, npartial, factor);
}
