/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CUDA_CHANNELS_H
#define GF_KERNELS_CUDA_CHANNELS_H

#include "typed.h"

/*
 * Values seen as {outer, channels, inner}: sums over each channel, and maps whose function depends
 * on the channel. Where channels lie side by side and eight divides their number (`wide`), a thread
 * has eight of them for all of its rows: it holds what it knows of them in registers and moves 16
 * bytes at a time.
 *
 * An operation is a struct that is copied into the kernel:
 *	typedef ... type;		of the values
 *	enum { INPUTS };		arrays that are read
 *	const type *in[INPUTS];
 *	struct channel;			what is known of one
 *	channel at(unsigned c) const;
 * Of a map:
 *	type *out;			may be one of the inputs
 *	float of(const channel &k, const float *x) const;
 * Of a sum:
 *	struct place;			what is known of a row of `outer`
 *	place row(unsigned o) const;
 *	pair of(const channel &k, const place &p, const float *x) const;
 *	void end(unsigned c, double a, double b) const;
 */
struct pair {
	float a, b;
};

struct nothing {
};

struct view {
	unsigned outer, channels, inner;
};

static inline view small(const struct gf_gpu_view *v)
{
	return view{(unsigned)v->outer, (unsigned)v->channels, (unsigned)v->inner};
}

static inline bool wide(const struct gf_gpu_view *v)
{
	return v->inner == 1 && v->channels % 8 == 0;
}

/* A block's part of a wide view: `columns` groups of eight channels side by side, and as many rows
 * at once as there are threads for. */
struct tiling {
	unsigned groups, columns, tiles, rows; // at once
	unsigned splits, per;                  // rows of a split

	__device__ unsigned group() const
	{
		return blockIdx.x % tiles * columns + threadIdx.x % columns;
	}
	__device__ bool works() const
	{
		return group() < groups && threadIdx.x < rows * columns;
	}
	__device__ unsigned first() const
	{
		return blockIdx.x / tiles * per + threadIdx.x / columns;
	}
	__device__ unsigned end(unsigned outer) const
	{
		const unsigned to = (blockIdx.x / tiles + 1) * per;

		return to < outer ? to : outer;
	}
};

/* most: blocks; least: rows of a thread, unless there are fewer. */
static inline tiling tile(const struct gf_gpu_view *v, size_t most, size_t least)
{
	tiling t = {};
	size_t splits, wanted;

	t.groups = (unsigned)(v->channels / 8);
	t.columns = t.groups < WARP ? t.groups : WARP;
	t.tiles = (t.groups + t.columns - 1) / t.columns;
	t.rows = THREADS / t.columns;
	wanted = v->outer / (t.rows * least);
	splits = most / t.tiles;
	splits = wanted < splits ? wanted : splits;
	splits = splits > 0 ? splits : 1;
	t.splits = (unsigned)splits; // never more for fewer rows
	t.per = (unsigned)((v->outer + splits - 1) / splits);
	return t;
}

/* --- sums ----------------------------------------------------------------- */

#define SUM_BLOCKS 528  // of a wide view: four to each of 132 processors
#define SUM_ROWS   8    // of a thread
#define SPLITS_MAX 512  // otherwise
#define SPLIT_MIN  1024 // values of a channel

static inline size_t splits_of(const struct gf_gpu_view *v)
{
	const size_t most = v->outer < SPLITS_MAX ? v->outer : (size_t)SPLITS_MAX;
	const size_t wanted = v->outer * v->inner / SPLIT_MIN;

	if (wide(v))
		return tile(v, SUM_BLOCKS, SUM_ROWS).splits;
	return wanted < 1 ? 1 : wanted < most ? wanted : most;
}

template <class Op>
__global__ void __launch_bounds__(THREADS) sum_wide(Op op, view v, tiling t, pair *partial)
{
	__shared__ float sums[2][8][THREADS];
	float a[8] = {}, b[8] = {};

	if (t.works()) {
		const unsigned c = 8 * t.group(), end = t.end(v.outer);
		typename Op::channel k[8];

#pragma unroll
		for (unsigned e = 0; e < 8; e++)
			k[e] = op.at(c + e);
		for (unsigned o = t.first(); o < end; o += 4 * t.rows) {
			eight<typename Op::type> q[4][Op::INPUTS];
			typename Op::place p[4];

#pragma unroll
			for (unsigned u = 0; u < 4; u++) {
				const unsigned r = o + u * t.rows;

				if (r < end)
					p[u] = op.row(r);
#pragma unroll
				for (unsigned i = 0; i < Op::INPUTS; i++)
					if (r < end)
						q[u][i].load(op.in[i] + (size_t)r * v.channels + c);
			}
#pragma unroll
			for (unsigned u = 0; u < 4; u++) {
				if (o + u * t.rows >= end)
					break;
#pragma unroll
				for (unsigned e = 0; e < 8; e++) {
					float x[Op::INPUTS];
					pair one;

#pragma unroll
					for (unsigned i = 0; i < Op::INPUTS; i++)
						x[i] = q[u][i].of(e);
					one = op.of(k[e], p[u], x);
					a[e] += one.a;
					b[e] += one.b;
				}
			}
		}
	}
#pragma unroll
	for (unsigned e = 0; e < 8; e++) {
		sums[0][e][threadIdx.x] = a[e];
		sums[1][e][threadIdx.x] = b[e];
	}
	__syncthreads();
	for (unsigned i = threadIdx.x; i < 8 * t.columns; i += THREADS) {
		const unsigned column = i / 8, e = i % 8;
		const unsigned group = blockIdx.x % t.tiles * t.columns + column;
		pair sum = {0, 0};

		if (group >= t.groups)
			continue;
		for (unsigned r = column; r < t.rows * t.columns; r += t.columns) {
			sum.a += sums[0][e][r];
			sum.b += sums[1][e][r];
		}
		partial[blockIdx.x / t.tiles * v.channels + 8 * group + e] = sum;
	}
}

template <class Op>
static __device__ inline pair sum_one(const Op &op, const typename Op::channel &k, unsigned o,
				      unsigned i)
{
	float x[Op::INPUTS];

	for (unsigned u = 0; u < Op::INPUTS; u++)
		x[u] = get(op.in[u][i]);
	return op.of(k, op.row(o), x);
}

// A block adds up a split of a channel,
template <class Op>
__global__ void __launch_bounds__(THREADS) sum_planes(Op op, view v, unsigned splits, pair *partial)
{
	__shared__ float words[2][WARPS];
	const unsigned c = blockIdx.x % v.channels;
	const unsigned split = blockIdx.x / v.channels;
	const unsigned per = (v.outer + splits - 1) / splits;
	const unsigned from = split * per < v.outer ? split * per : v.outer;
	const unsigned to = from + per < v.outer ? from + per : v.outer;
	const typename Op::channel known = op.at(c);
	pair sum = {0, 0};

#pragma unroll 4
	for (unsigned k = threadIdx.x; k < (to - from) * v.inner; k += THREADS) {
		const unsigned o = from + k / v.inner, x = k % v.inner;
		const pair one = sum_one(op, known, o, (o * v.channels + c) * v.inner + x);

		sum.a += one.a;
		sum.b += one.b;
	}
	sum.a = block_sum(sum.a, words[0]);
	sum.b = block_sum(sum.b, words[1]);
	if (threadIdx.x == 0)
		partial[split * v.channels + c] = sum;
}

// or of 32 channels that lie side by side.
template <class Op>
__global__ void __launch_bounds__(THREADS)
	sum_columns(Op op, view v, unsigned splits, pair *partial)
{
	__shared__ pair sums[WARPS][WARP];
	const unsigned tiles = (v.channels + WARP - 1) / WARP;
	const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
	const unsigned c = blockIdx.x % tiles * WARP + lane;
	const unsigned split = blockIdx.x / tiles;
	const unsigned per = (v.outer + splits - 1) / splits;
	const unsigned from = split * per < v.outer ? split * per : v.outer;
	const unsigned to = from + per < v.outer ? from + per : v.outer;
	const typename Op::channel known = op.at(c < v.channels ? c : v.channels - 1);
	pair sum = {0, 0};

	for (unsigned o = from + warp; o < (c < v.channels ? to : 0); o += WARPS) {
		const pair one = sum_one(op, known, o, o * v.channels + c);

		sum.a += one.a;
		sum.b += one.b;
	}
	sums[warp][lane] = sum;
	__syncthreads();
	if (warp > 0 || c >= v.channels)
		return;
	for (unsigned w = 1; w < WARPS; w++) {
		sum.a += sums[w][lane].a;
		sum.b += sums[w][lane].b;
	}
	partial[split * v.channels + c] = sum;
}

// A warp to a channel adds up its splits, in f64.
template <class Op>
__global__ void __launch_bounds__(THREADS)
	sum_splits(Op op, unsigned channels, unsigned splits, const pair *partial)
{
	const unsigned lane = threadIdx.x % WARP;
	const unsigned c = blockIdx.x * WARPS + threadIdx.x / WARP;
	double a = 0, b = 0;

#pragma unroll 4
	for (unsigned k = lane; k < (c < channels ? splits : 0); k += WARP) {
		a += partial[k * channels + c].a;
		b += partial[k * channels + c].b;
	}
	for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
		a += __shfl_xor_sync(ALL, a, lanes);
		b += __shfl_xor_sync(ALL, b, lanes);
	}
	if (lane == 0 && c < channels)
		op.end(c, a, b);
}

template <class Op>
static void sums(struct gf_gpu_stream *s, const Op &op, const struct gf_gpu_view *v, void *work)
{
	const unsigned splits = (unsigned)splits_of(v);
	pair *partial = (pair *)work;

	if (wide(v)) {
		const tiling t = tile(v, SUM_BLOCKS, SUM_ROWS);

		LAUNCH(sum_wide<Op>, t.tiles * t.splits, s, op, small(v), t, partial);
	} else if (v->inner == 1) {
		LAUNCH(sum_columns<Op>, blocks_for(v->channels, WARP) * splits, s, op, small(v),
		       splits, partial);
	} else {
		LAUNCH(sum_planes<Op>, v->channels * splits, s, op, small(v), splits, partial);
	}
	LAUNCH(sum_splits<Op>, blocks_for(v->channels, WARPS), s, op, (unsigned)v->channels, splits,
	       partial);
}

/* --- maps ----------------------------------------------------------------- */

#define MAP_BLOCKS 4096
#define MAP_ROWS   8 // of a thread
#define MAP_BATCH  2 // rows whose loads are under way together

template <class Op> __global__ void __launch_bounds__(THREADS) map_wide(Op op, view v, tiling t)
{
	const unsigned c = 8 * t.group(), end = t.end(v.outer);
	typename Op::channel k[8];

	if (!t.works())
		return;
#pragma unroll
	for (unsigned e = 0; e < 8; e++)
		k[e] = op.at(c + e);
	for (unsigned o = t.first(); o < end; o += MAP_BATCH * t.rows) {
		eight<typename Op::type> q[MAP_BATCH][Op::INPUTS];

#pragma unroll
		for (unsigned u = 0; u < MAP_BATCH; u++)
#pragma unroll
			for (unsigned i = 0; i < Op::INPUTS; i++)
				if (o + u * t.rows < end)
					q[u][i].load(op.in[i] +
						     (size_t)(o + u * t.rows) * v.channels + c);
#pragma unroll
		for (unsigned u = 0; u < MAP_BATCH; u++) {
			const unsigned r = o + u * t.rows;

			if (r >= end)
				break;
			map_eight(q[u], op.out + (size_t)r * v.channels + c,
				  [&](unsigned e, const float *x) { return op.of(k[e], x); });
		}
	}
}

// Eight values that follow each other, of channels that change as they do.
template <class Op> __global__ void __launch_bounds__(THREADS) map_runs(Op op, view v, unsigned n)
{
	const unsigned first = (blockIdx.x * THREADS + threadIdx.x) * 8;
	unsigned run = first / v.inner, left = v.inner - first % v.inner;
	eight<typename Op::type> q[Op::INPUTS];

	if (first >= n)
		return;
#pragma unroll
	for (unsigned i = 0; i < Op::INPUTS; i++)
		if (first + 8 <= n)
			q[i].load(op.in[i] + first);
	const auto of = [&](unsigned, const float *x) {
		const typename Op::channel k = op.at(run % v.channels);

		if (--left == 0) {
			run++;
			left = v.inner;
		}
		return op.of(k, x);
	};
	if (first + 8 <= n)
		map_eight(q, op.out + first, of);
	else
		map_one(op, first, n, of);
}

template <class Op>
static void map_channels(struct gf_gpu_stream *s, const Op &op, const struct gf_gpu_view *v)
{
	const size_t n = v->outer * v->channels * v->inner;

	if (n == 0)
		return;
	if (wide(v)) {
		const tiling t = tile(v, MAP_BLOCKS, MAP_ROWS);

		LAUNCH(map_wide<Op>, t.tiles * t.splits, s, op, small(v), t);
	} else {
		LAUNCH(map_runs<Op>, blocks_for(n, (size_t)THREADS * 8), s, op, small(v),
		       (unsigned)n);
	}
}

#endif
