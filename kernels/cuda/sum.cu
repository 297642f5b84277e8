/* SPDX-License-Identifier: BSD-3-Clause */
// Norms of chunks, and the test for overflow.
#include "bits.h"
#include "each.h"
#include "sets.h"
#include "sum.h"

namespace
{

#define BATCH 8 // loads under way before the first store

template <bool Add> __device__ float value(const float *y, const float *x, size_t i)
{
	return Add ? y[i] + x[i] : y[i];
}

// A block to each chunk. A warp takes 4096 elements, its lanes are the lanes of
// the specification (sum.h), and the first thread adds them up in its order.
template <bool Add>
__global__ void __launch_bounds__(THREADS)
	chunk_norms(float *y, const float *x, size_t n, size_t chunk_elems, double *norms)
{
	__shared__ float sums[WARPS][WARP];
	const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
	const size_t begin = (size_t)blockIdx.x * chunk_elems;
	const size_t count = n - begin < chunk_elems ? n - begin : chunk_elems;
	double total = 0;

	for (size_t round = 0; round < count; round += (size_t)WARPS * GF_SUM_BLOCK) {
		const size_t from = round + (size_t)warp * GF_SUM_BLOCK;
		const size_t to = from + GF_SUM_BLOCK < count ? from + GF_SUM_BLOCK : count;
		float sum = 0;

		for (size_t i = from + lane; i < to; i += BATCH * WARP) {
			float v[BATCH];

#pragma unroll
			for (unsigned u = 0; u < BATCH; u++)
				v[u] = i + u * WARP < to
					       ? value<Add>(y + begin, x + begin, i + u * WARP)
					       : 0;
#pragma unroll
			for (unsigned u = 0; u < BATCH; u++) {
				if (Add && i + u * WARP < to)
					y[begin + i + u * WARP] = v[u];
				sum += fabsf(v[u]);
			}
		}
		sums[warp][lane] = sum;
		__syncthreads();
		// Lanes without elements add 0, which changes nothing.
		if (threadIdx.x == 0)
			for (unsigned w = 0; w < WARPS; w++)
				for (unsigned l = 0; l < WARP; l++)
					total += sums[w][l];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		norms[blockIdx.x] = total;
}

struct nonfinite {
	const float *x;
	uint32_t *flag;

	struct quad {
		float4 x;
	};
	size_t phase() const
	{
		return ::phase(x, 4);
	}
	__device__ static bool bad(float v)
	{
		return magnitude(v) >= 0x7f800000;
	}
	__device__ void load(size_t i, quad &q) const
	{
		q.x = load4(x + i);
	}
	// Every thread that finds one writes the same value.
	__device__ void store(size_t, const quad &q) const
	{
		if (bad(q.x.x) || bad(q.x.y) || bad(q.x.z) || bad(q.x.w))
			atomicOr(flag, 1u);
	}
	__device__ void one(size_t i) const
	{
		if (bad(x[i]))
			atomicOr(flag, 1u);
	}
};

} // namespace

void gf_cuda_nonfinite_f32(struct gf_gpu_stream *s, const float *x, uint32_t *flag, size_t n)
{
	each(s, nonfinite{x, flag}, n);
}

void gf_cuda_chunk_norms_f32(struct gf_gpu_stream *s, float *y, const float *x, size_t n,
			     size_t chunk_elems, double *norms)
{
	const size_t chunks = blocks_for(n, chunk_elems);

	if (n == 0)
		return;
	LAUNCH((x ? chunk_norms<true> : chunk_norms<false>), chunks, s, y, x, n, chunk_elems,
	       norms);
}
