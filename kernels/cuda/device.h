/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CUDA_DEVICE_H
#define GF_KERNELS_CUDA_DEVICE_H

#include <stddef.h>
#include <stdint.h>

/*
 * The common beginning of every .cu here. The kernels use a small part of CUDA. Blocks have one
 * dimension, THREADS threads and static shared memory. Threads use barriers, warp votes, shuffles
 * and integer atomics. tests/gpu/emulate.h has the same part and runs the kernels on a machine
 * without a GPU, so that their logic is tested.
 *
 * The build says -fmad=false: contraction would give other bits than ref.
 */
#define THREADS 256
#define WARP    32
#define WARPS   (THREADS / WARP)
#define ALL     0xffffffffu /* lanes */

#ifdef GF_EMULATE
#include "emulate.h"
#else
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define LAUNCH(kernel, blocks, stream, ...)                                                        \
	kernel<<<(unsigned)(blocks), THREADS, 0, (cudaStream_t)(stream)>>>(__VA_ARGS__)
#endif

#include "gf_gpu_kernels.h"

// As many blocks as that takes; a grid of none is an error in CUDA, so the
// caller leaves when there is nothing to do.
static inline size_t blocks_for(size_t n, size_t per_block)
{
	return (n + per_block - 1) / per_block;
}

// For kernels that walk over their work: enough to fill any GPU.
#define BLOCKS_MAX 2048

static inline size_t walking_blocks(size_t n, size_t per_block)
{
	const size_t blocks = blocks_for(n, per_block);

	return blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX;
}

// The place of an address among groups of four elements.
static inline size_t phase(const void *p, size_t elem_bytes)
{
	return (uintptr_t)p / elem_bytes % 4;
}

#endif
