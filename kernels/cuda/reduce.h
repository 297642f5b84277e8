/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CUDA_REDUCE_H
#define GF_KERNELS_CUDA_REDUCE_H

#include "device.h"

// Sums over threads in a fixed order: the same bits on every GPU.

// The sum is lane 0's.
static __device__ inline double add_lanes_of_warp(double x)
{
	for (int d = WARP / 2; d > 0; d /= 2)
		x += __shfl_down_sync(ALL, x, d);
	return x;
}

// Sums of the threads before this one in the block; *all: of all threads.
static __device__ inline uint32_t sum_before(uint32_t x, uint32_t *all)
{
	__shared__ uint32_t of_warp[WARPS];
	const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
	uint32_t before = x, base = 0;

	for (unsigned d = 1; d < WARP; d *= 2) {
		const uint32_t left = __shfl_up_sync(ALL, before, d);

		if (lane >= d)
			before += left;
	}
	__syncthreads(); // threads may still read the last call's data
	if (lane == WARP - 1)
		of_warp[warp] = before;
	__syncthreads();
	*all = 0;
	for (unsigned w = 0; w < WARPS; w++) {
		if (w < warp)
			base += of_warp[w];
		*all += of_warp[w];
	}
	return base + before - x;
}

#endif
