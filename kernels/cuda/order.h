/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CUDA_ORDER_H
#define GF_KERNELS_CUDA_ORDER_H

#include "reduce.h"

namespace
{

/*
 * Places in the order of their keys; places of the same key stay in their own order, so that the
 * result does not depend on which block runs first. A radix sort from the lowest digit on. For each
 * digit, the blocks count how often it occurs in their tiles of the places; each place then knows
 * how many go before it. Keys is a struct with
 *	unsigned of(unsigned place) const;
 */
#define DIGIT_BITS 8
#define DIGITS     THREADS // a thread for each
#define TILES_MAX  128
#define TILE_LEAST 1024 // places

static_assert(DIGITS == 1 << DIGIT_BITS, "a thread for each digit");

struct tiles {
	unsigned count, each, n; // places, of a tile, tiles
};

inline struct tiles cut_places(size_t count)
{
	size_t each = THREADS * blocks_for(count, (size_t)TILES_MAX * THREADS);

	each = each > TILE_LEAST ? each : TILE_LEAST;
	return tiles{(unsigned)count, (unsigned)each, (unsigned)blocks_for(count, each)};
}

/* Places in the order so far, and the digit that is looked at. */
template <class Keys> struct digits {
	Keys keys;
	const uint32_t *order; // NULL: as they come
	unsigned shift;

	__device__ unsigned place(unsigned i) const
	{
		return order ? order[i] : i;
	}
	__device__ unsigned of(unsigned i) const
	{
		return keys.of(place(i)) >> shift & (DIGITS - 1);
	}
};

template <class Keys>
__global__ void __launch_bounds__(THREADS) count_digits(digits<Keys> d, tiles t, uint32_t *counts)
{
	__shared__ uint32_t of_digit[DIGITS];
	const unsigned from = blockIdx.x * t.each;
	const unsigned end = t.count - from < t.each ? t.count : from + t.each;

	of_digit[threadIdx.x] = 0;
	__syncthreads();
	for (unsigned i = from + threadIdx.x; i < end; i += THREADS)
		atomicAdd(&of_digit[d.of(i)], 1u);
	__syncthreads();
	counts[blockIdx.x * DIGITS + threadIdx.x] = of_digit[threadIdx.x];
}

// Where the first place of digit threadIdx.x goes that this tile has.
__device__ inline uint32_t start_of(const uint32_t *counts, unsigned n)
{
	uint32_t all = 0, before = 0, of_block;

#pragma unroll 16
	for (unsigned tile = 0; tile < n; tile++) {
		const uint32_t x = counts[tile * DIGITS + threadIdx.x];

		all += x;
		before += tile < blockIdx.x ? x : 0;
	}
	return before + sum_before(all, &of_block);
}

// The lanes before this one that have the same digit; *all: of all lanes.
__device__ inline unsigned peers(bool works, unsigned digit, unsigned *all)
{
	unsigned same = __ballot_sync(ALL, works);

#pragma unroll
	for (unsigned bit = 0; bit < DIGIT_BITS; bit++) {
		const bool set = digit >> bit & 1;
		const unsigned votes = __ballot_sync(ALL, set);

		same &= set ? votes : ~votes;
	}
	*all = (unsigned)__popc(same);
	return (unsigned)__popc(same & ((1u << threadIdx.x % WARP) - 1));
}

// A warp has a part of the tile; its places move in their order.
template <class Keys>
__global__ void __launch_bounds__(THREADS)
	place_digits(digits<Keys> d, tiles t, const uint32_t *counts, uint32_t *to)
{
	__shared__ uint32_t next[WARPS][DIGITS];
	const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
	const unsigned part = t.each / WARPS;
	const unsigned from = blockIdx.x * t.each + warp * part;
	const unsigned end = from + part < t.count ? from + part : t.count;
	uint32_t start;

	for (unsigned w = 0; w < WARPS; w++)
		next[w][threadIdx.x] = 0;
	__syncthreads();
	for (unsigned i = from + lane; i < end; i += WARP)
		atomicAdd(&next[warp][d.of(i)], 1u);
	start = start_of(counts, t.n);
	__syncthreads();
	for (unsigned w = 0; w < WARPS; w++) {
		const uint32_t x = next[w][threadIdx.x];

		next[w][threadIdx.x] = start;
		start += x;
	}
	__syncthreads();
	for (unsigned i = from; i < end; i += WARP) {
		const bool works = i + lane < end;
		const unsigned digit = works ? d.of(i + lane) : 0;
		unsigned all;
		const unsigned before = peers(works, digit, &all);
		const uint32_t first = next[warp][digit];

		__syncwarp();
		if (works)
			to[first + before] = d.place(i + lane);
		if (works && before == 0)
			next[warp][digit] = first + all;
		__syncwarp();
	}
}

__global__ void __launch_bounds__(THREADS) clear_runs(uint32_t *runs, unsigned n)
{
	const unsigned i = blockIdx.x * THREADS + threadIdx.x;

	if (i < n)
		runs[2 * (size_t)i] = runs[2 * (size_t)i + 1] = 0;
}

template <class Keys>
__global__ void __launch_bounds__(THREADS)
	mark_runs(Keys keys, const uint32_t *order, unsigned count, uint32_t *runs)
{
	const unsigned i = blockIdx.x * THREADS + threadIdx.x;

	if (i >= count)
		return;
	const unsigned key = keys.of(order[i]);

	if (i == 0 || keys.of(order[i - 1]) != key)
		runs[2 * (size_t)key] = i;
	if (i + 1 == count || keys.of(order[i + 1]) != key)
		runs[2 * (size_t)key + 1] = i + 1;
}

inline size_t order_work_bytes(size_t count, size_t nkeys)
{
	return (2 * nkeys + 2 * count + TILES_MAX * DIGITS) * sizeof(uint32_t);
}

/* In work: key k's places are (*order)[runs[2 * k]] up to before (*order)[runs[2 * k + 1]]. Keys
 * are below nkeys, which is more than 1. */
template <class Keys>
void order_places(struct gf_gpu_stream *s, const Keys &keys, size_t count, size_t nkeys, void *work,
		  const uint32_t **runs, const uint32_t **order)
{
	const tiles t = cut_places(count);
	uint32_t *const run = (uint32_t *)work;
	uint32_t *to = run + 2 * nkeys, *other = to + count;
	uint32_t *const counts = other + count;
	digits<Keys> d = {keys, NULL, 0};

	for (; d.shift < 32 && (nkeys - 1) >> d.shift; d.shift += DIGIT_BITS) {
		LAUNCH(count_digits<Keys>, t.n, s, d, t, counts);
		LAUNCH(place_digits<Keys>, t.n, s, d, t, (const uint32_t *)counts, to);
		d.order = to;
		to = other;
		other = (uint32_t *)(uintptr_t)d.order;
	}
	LAUNCH(clear_runs, blocks_for(nkeys, THREADS), s, run, (unsigned)nkeys);
	LAUNCH(mark_runs<Keys>, blocks_for(count, THREADS), s, keys, d.order, t.count, run);
	*runs = run;
	*order = d.order;
}

} // namespace

#endif
