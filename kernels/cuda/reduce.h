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

#endif
