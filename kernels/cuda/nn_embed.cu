/* SPDX-License-Identifier: BSD-3-Clause */
// Embeddings. In backward a block adds up the places that name its row of the
// table, in order: the sums do not depend on which block runs first. If the
// table has few rows, each block looks for its row among a part of the places,
// and the parts' sums are added up afterwards. If the table has many rows, the
// places are brought into the order of their rows first.
#include "nn_sets.h"
#include "reduce.h"
#include "typed.h"

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
