/* SPDX-License-Identifier: BSD-3-Clause */
// Blocks of q8 (kernels/q8.h), a warp to each block of so many elements.
#include "device.h"
#include "q8.h"
#include "sets.h"

namespace
{

#define BATCH 8  // loads under way before the first store
#define HELD  32 // values a lane keeps: a block of 1024 is read once

// A block's place: its first element, its elements, and its first byte.
struct place {
	size_t first, count, byte;
};

__device__ place place_of(size_t block, size_t n, size_t block_elems)
{
	place p;

	p.first = block * block_elems;
	p.count = n - p.first < block_elems ? n - p.first : block_elems;
	p.byte = block * (block_elems + GF_Q8_HEADER);
	return p;
}

__device__ uint32_t warp_max(uint32_t x)
{
	for (int d = WARP / 2; d > 0; d /= 2) {
		const uint32_t other = __shfl_xor_sync(ALL, x, d);

		x = other > x ? other : x;
	}
	return x;
}

__global__ void __launch_bounds__(THREADS)
	encode(uint8_t *to, const float *from, size_t n, size_t block_elems)
{
	const unsigned lane = threadIdx.x % WARP;
	const size_t block = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP;
	const place p = place_of(block, n, block_elems);
	const float *x = from + p.first;
	uint8_t *bytes = to + p.byte + GF_Q8_HEADER;
	uint32_t largest = 0;
	float held[HELD], max, factor;

	if (p.first >= n) // the whole warp
		return;
#pragma unroll
	for (unsigned u = 0; u < HELD; u++) {
		const size_t i = lane + u * WARP;

		held[u] = i < p.count ? x[i] : 0;
		if (magnitude(held[u]) > largest)
			largest = magnitude(held[u]);
	}
	for (size_t i = lane + HELD * WARP; i < p.count; i += WARP)
		if (magnitude(x[i]) > largest)
			largest = magnitude(x[i]);
	max = float_of(warp_max(largest));
	if (max < GF_Q8_ZERO)
		max = 0;
	if (lane == 0)
		*reinterpret_cast<float *>(to + p.byte) = max;
	// As q8_begin: 0 for a zero block, NaN for one that is not finite.
	factor = max == 0 ? 0.0f : 127 / max;
	if (magnitude(max) >= 0x7f800000) {
		for (size_t i = lane; i < p.count; i += WARP)
			bytes[i] = 127;
		return;
	}
#pragma unroll
	for (unsigned u = 0; u < HELD; u++) {
		const size_t i = lane + u * WARP;

		if (i < p.count)
			bytes[i] = (uint8_t)q8_round(held[u] * factor);
	}
	for (size_t i = lane + HELD * WARP; i < p.count; i += WARP)
		bytes[i] = (uint8_t)q8_round(x[i] * factor);
}

template <bool Add>
__global__ void __launch_bounds__(THREADS)
	decode(float *to, const uint8_t *from, size_t n, size_t block_elems)
{
	const unsigned lane = threadIdx.x % WARP;
	const size_t block = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP;
	const place p = place_of(block, n, block_elems);
	const uint8_t *bytes = from + p.byte + GF_Q8_HEADER;
	float *y = to + p.first;
	float step;

	if (p.first >= n)
		return;
	step = *reinterpret_cast<const float *>(from + p.byte) / 127;
	for (size_t i = lane; i < p.count; i += BATCH * WARP) {
		float v[BATCH];

#pragma unroll
		for (unsigned u = 0; u < BATCH; u++) {
			const size_t at = i + u * WARP;

			if (at >= p.count)
				continue;
			v[u] = (float)(int8_t)bytes[at] * step;
			if (Add)
				v[u] = y[at] + v[u];
		}
#pragma unroll
		for (unsigned u = 0; u < BATCH; u++)
			if (i + u * WARP < p.count)
				y[i + u * WARP] = v[u];
	}
}

size_t cuda_blocks(size_t n, size_t block_elems)
{
	return blocks_for(blocks_for(n, block_elems), WARPS);
}

} // namespace

void gf_cuda_q8_encode(struct gf_gpu_stream *s, void *to, const void *from, size_t n,
		       size_t block_elems)
{
	if (n)
		LAUNCH(encode, cuda_blocks(n, block_elems), s, static_cast<uint8_t *>(to),
		       static_cast<const float *>(from), n, block_elems);
}

void gf_cuda_q8_decode(struct gf_gpu_stream *s, void *to, const void *from, size_t n,
		       size_t block_elems)
{
	if (n)
		LAUNCH(decode<false>, cuda_blocks(n, block_elems), s, static_cast<float *>(to),
		       static_cast<const uint8_t *>(from), n, block_elems);
}

void gf_cuda_q8_decode_add(struct gf_gpu_stream *s, void *to, const void *from, size_t n,
			   size_t block_elems)
{
	if (n)
		LAUNCH(decode<true>, cuda_blocks(n, block_elems), s, static_cast<float *>(to),
		       static_cast<const uint8_t *>(from), n, block_elems);
}
