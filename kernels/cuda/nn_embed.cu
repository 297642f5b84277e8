/* SPDX-License-Identifier: BSD-3-Clause */
// Embeddings. In backward a block adds up the places that name its row of the
// table, in order: the sums do not depend on which block runs first. If the
// table has few rows, each block looks for its row among a part of the places,
// and the parts' sums are added up afterwards. If the table has many rows, the
// places are brought into the order of their rows first.
#include "nn_sets.h"
#include "order.h"
#include "typed.h"

namespace
{

// NaN is wrong, too.
__device__ bool good(float x, unsigned entries)
{
	return x >= 0 && x < (float)entries;
}

// The rows that places name.
struct names {
	const float *numbers; // NULL: each its position's
	unsigned count, steps, entries, stretch;

	__device__ unsigned of(unsigned place) const
	{
		return look(place, false, NULL);
	}
	// notes: this thread does so if the place's number is wrong.
	__device__ unsigned look(unsigned place, bool notes, struct gf_gpu_outcome *outcome) const
	{
		if (!numbers)
			return place % steps / stretch;
		const float x = numbers[place];

		if (good(x, entries))
			return (unsigned)x;
		if (notes)
			atomicMax(reinterpret_cast<unsigned long long *>(&outcome->bad_number),
				  (unsigned long long)~place << 32 | bits_of(x));
		return 0;
	}
};

names names_of(const struct gf_gpu_embedding *o)
{
	return names{o->numbers, (unsigned)o->count, (unsigned)o->steps, (unsigned)o->entries,
		     (unsigned)o->stretch};
}

#define LOOKED_UP 2 // groups of eight of a thread at once

// Rows that eight divides. aligned: the table's, to 16 bytes.
template <class T>
__global__ void __launch_bounds__(THREADS)
	look_up(names n, const float *table, T *out, unsigned width, bool aligned,
		struct gf_gpu_outcome *outcome)
{
	const unsigned per_row = width / 8;
	const unsigned first = blockIdx.x * (THREADS * LOOKED_UP) + threadIdx.x;
	const float *from[LOOKED_UP];
	eight<float> q[LOOKED_UP];

#pragma unroll
	for (unsigned u = 0; u < LOOKED_UP; u++) {
		const unsigned i = first + u * THREADS, place = i / per_row;
		const unsigned column = 8 * (i - place * per_row);

		from[u] = place < n.count
				  ? table + column +
					    (size_t)n.look(place, column == 0, outcome) * width
				  : NULL;
	}
#pragma unroll
	for (unsigned u = 0; u < LOOKED_UP; u++)
		if (from[u] && aligned)
			q[u].load(from[u]);
		else if (from[u])
			q[u].gather(from[u], 0, 1, 8);
#pragma unroll
	for (unsigned u = 0; u < LOOKED_UP; u++)
		if (from[u])
			eight<T>::store(out + 8 * (size_t)(first + u * THREADS), q[u].values);
}

template <class T>
__global__ void __launch_bounds__(THREADS)
	look_up_one(names n, const float *table, T *out, unsigned width,
		    struct gf_gpu_outcome *outcome)
{
	const unsigned first = blockIdx.x * (THREADS * 4) + threadIdx.x;

	float x[4];

#pragma unroll
	for (unsigned u = 0; u < 4; u++) {
		const unsigned i = first + u * THREADS, place = i / width;

		if (place < n.count)
			x[u] = table[(size_t)n.look(place, i % width == 0, outcome) * width +
				     i % width];
	}
#pragma unroll
	for (unsigned u = 0; u < 4; u++)
		if ((first + u * THREADS) / width < n.count)
			set(out + first + u * THREADS, x[u]);
}

/* A block's part of backward: `across` threads have eight columns each of a place, as many places
 * at once as there are threads for. */
struct tiling {
	unsigned width, across, down, tiles;
	unsigned splits, per; // places of a split
	bool whole;           // a thread's columns lie side by side

	__device__ unsigned column(unsigned lane, unsigned e) const
	{
		return whole ? 8 * lane + e : lane + e * across;
	}
};

#define WANTED_BLOCKS 1056 // eight to each of 132 processors
#define SEEN          4    // numbers of a thread at once
#define FOUND_MAX     (SEEN * THREADS)

tiling tile(const struct gf_gpu_embedding *o)
{
	tiling t = {};
	size_t splits, most = blocks_for(o->count, FOUND_MAX);

	t.width = (unsigned)o->width;
	t.whole = o->width % 8 == 0;
	t.across = (unsigned)blocks_for(o->width, 8);
	t.across = t.across < THREADS ? t.across : THREADS;
	t.down = THREADS / t.across;
	t.tiles = (unsigned)blocks_for(o->width, 8 * (size_t)t.across);
	splits = WANTED_BLOCKS / (o->entries * t.tiles);
	splits = splits < most ? splits : most;
	t.splits = splits > 0 ? (unsigned)splits : 1;
	t.per = (unsigned)blocks_for(o->count, t.splits);
	return t;
}

// The places from `from` on that name the row, in order; how many they are.
__device__ unsigned find(const names &n, unsigned row, unsigned from, unsigned to, unsigned *found)
{
	__shared__ unsigned votes[SEEN][WARPS];
	const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
	unsigned named[SEEN], vote[SEEN], all = 0;

#pragma unroll
	for (unsigned u = 0; u < SEEN; u++) {
		const unsigned i = from + u * THREADS + threadIdx.x;

		named[u] = i < to ? n.of(i) : n.entries;
	}
#pragma unroll
	for (unsigned u = 0; u < SEEN; u++) {
		vote[u] = __ballot_sync(ALL, named[u] == row);
		if (lane == 0)
			votes[u][warp] = (unsigned)__popc(vote[u]);
	}
	__syncthreads();
#pragma unroll
	for (unsigned u = 0; u < SEEN; u++)
		for (unsigned w = 0; w < WARPS; w++) {
			if (w == warp && named[u] == row)
				found[all + (unsigned)__popc(vote[u] & ((1u << lane) - 1))] =
					from + u * THREADS + threadIdx.x;
			all += votes[u][w];
		}
	__syncthreads();
	return all;
}

#define ADDED 4 // places of a thread at once

// A thread's part of a tile's sums.
template <class T> struct adding {
	const tiling t;
	const T *dout;
	unsigned lane, first, base, at;
	bool works;
	float sum[8];

	__device__ adding(const tiling &t_, unsigned tile, const T *dout_)
	    : t(t_), dout(dout_), lane(threadIdx.x % t.across), first(threadIdx.x / t.across),
	      base(tile * 8 * t.across), at(base + t.column(lane, 0)),
	      works(first < t.down && at < t.width), sum{}
	{
	}
	__device__ void add(const unsigned *places, unsigned all)
	{
		for (unsigned k = first; k < (works ? all : 0); k += ADDED * t.down) {
			eight<T> q[ADDED];

#pragma unroll
			for (unsigned u = 0; u < ADDED; u++) {
				const unsigned i = k + u * t.down;

				if (i >= all)
					continue;
				const T *p = dout + (size_t)places[i] * t.width;

				if (t.whole)
					q[u].load(p + at);
				else
					q[u].gather(p, at, t.across, t.width);
			}
#pragma unroll
			for (unsigned u = 0; u < ADDED; u++)
#pragma unroll
				for (unsigned e = 0; e < 8; e++)
					if (k + u * t.down < all)
						sum[e] += q[u].of(e);
		}
	}
	// All threads of the block.
	__device__ void end(float scale, bool add, float *to) const
	{
		__shared__ float sums[8][THREADS];

#pragma unroll
		for (unsigned e = 0; e < 8; e++)
			sums[e][threadIdx.x] = sum[e];
		__syncthreads();
		for (unsigned i = threadIdx.x; i < 8 * t.across; i += THREADS) {
			const unsigned e = t.whole ? i % 8 : i / t.across;
			const unsigned l = t.whole ? i / 8 : i % t.across;
			float x = 0;

			for (unsigned d = 0; d < t.down; d++)
				x += sums[e][d * t.across + l];
			if (base + i < t.width)
				to[base + i] = (add ? to[base + i] : 0) + scale * x;
		}
	}
};

template <class T>
__global__ void __launch_bounds__(THREADS)
	add_up(names n, tiling t, const T *dout, float scale, bool add, float *to)
{
	__shared__ unsigned found[FOUND_MAX];
	const unsigned row = blockIdx.x / t.tiles % n.entries;
	const unsigned split = blockIdx.x / t.tiles / n.entries;
	const unsigned end = (split + 1) * t.per < n.count ? (split + 1) * t.per : n.count;
	adding<T> sums(t, blockIdx.x % t.tiles, dout);

	for (unsigned from = split * t.per; from < end; from += FOUND_MAX) {
		sums.add(found, find(n, row, from, end, found));
		__syncthreads();
	}
	sums.end(scale, add, to + ((size_t)split * n.entries + row) * t.width);
}

template <class T>
__global__ void __launch_bounds__(THREADS)
	add_runs(const uint32_t *runs, const uint32_t *order, tiling t, const T *dout, float scale,
		 bool add, float *to)
{
	const size_t row = blockIdx.x / t.tiles;
	const unsigned from = runs[2 * row];
	adding<T> sums(t, blockIdx.x % t.tiles, dout);

	sums.add(order + from, runs[2 * row + 1] - from);
	sums.end(scale, add, to + row * t.width);
}

__global__ void __launch_bounds__(THREADS) add_splits(const float *partial, unsigned splits,
						      size_t n, float scale, bool add, float *to)
{
	const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
	float sum = 0;

	if (i >= n)
		return;
#pragma unroll 8
	for (unsigned s = 0; s < splits; s++)
		sum += partial[s * n + i];
	to[i] = (add ? to[i] : 0) + scale * sum;
}

template <class T>
void embed(struct gf_gpu_stream *s, const struct gf_gpu_embedding *o, const float *table, T *out,
	   struct gf_gpu_outcome *outcome)
{
	const unsigned width = (unsigned)o->width;
	const size_t n = o->count * o->width;

	if (width % 8 == 0)
		LAUNCH(look_up<T>, blocks_for(n / 8, (size_t)THREADS * LOOKED_UP), s, names_of(o),
		       table, out, width, (uintptr_t)table % 16 == 0, outcome);
	else
		LAUNCH(look_up_one<T>, blocks_for(n, (size_t)THREADS * 4), s, names_of(o), table,
		       out, width, outcome);
}

} // namespace

// Many rows, whatever the batch: a smaller one needs less memory.
static bool many(const struct gf_gpu_embedding *o)
{
	return o->entries * tile(o).tiles > WANTED_BLOCKS / 2;
}

size_t gf_gpu_embed_work_bytes(const struct gf_gpu_embedding *o)
{
	const unsigned splits = tile(o).splits;

	return many(o)      ? order_work_bytes(o->count, o->entries)
	       : splits > 1 ? splits * o->entries * o->width * sizeof(float)
			    : 0;
}

void gf_cuda_nn_embed(struct gf_gpu_stream *s, const struct gf_gpu_embedding *o, const float *table,
		      void *out, struct gf_gpu_outcome *outcome)
{
	if (o->count * o->width == 0)
		return;
	BY_TYPE(o->dtype, embed(s, o, table, (T *)out, outcome));
}

void gf_cuda_nn_embed_backward(struct gf_gpu_stream *s, const struct gf_gpu_embedding *o,
			       const void *dout, float scale, float *dtable, void *work)
{
	const tiling t = tile(o);
	const bool split = t.splits > 1;
	const size_t n = o->entries * o->width;

	if (many(o) && o->count > 0) {
		const uint32_t *runs, *order;

		order_places(s, names_of(o), o->count, o->entries, work, &runs, &order);
		BY_TYPE(o->dtype, LAUNCH(add_runs<T>, t.tiles * o->entries, s, runs, order, t,
					 (const T *)dout, scale, o->add, dtable));
		return;
	}
	BY_TYPE(o->dtype, LAUNCH(add_up<T>, t.tiles * o->entries * t.splits, s, names_of(o), t,
				 (const T *)dout, split ? 1 : scale, o->add && !split,
				 split ? (float *)work : dtable));
	if (split)
		LAUNCH(add_splits, blocks_for(n, THREADS), s, (const float *)work, t.splits, n,
		       scale, o->add, dtable);
}
