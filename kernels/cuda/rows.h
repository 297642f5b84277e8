/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CUDA_ROWS_H
#define GF_KERNELS_CUDA_ROWS_H

#include "typed.h"

/*
 * Rows of values that are looked at as a whole. A team of LANES threads, a block, a warp or a part
 * of one, has one row at a time and walks over the rows of the matrix. Each thread holds HELD
 * groups of eight values of its row in registers, so that a row is read once, however often it is
 * looked at; all of its loads are under way together. With a HELD of 0, rows have any length and
 * are read each time.
 *
 * If eight divides the rows' width, a group lies side by side and moves by 16 bytes. If not,
 * neighbouring threads have neighbouring values. A thread has the same columns in each row.
 */
#define ROW_BLOCKS 528 // four to each of 132 processors

template <unsigned LANES> struct team {
	enum { ROWS = THREADS / LANES }; // of a block at once

	static __device__ unsigned lane()
	{
		return threadIdx.x % LANES;
	}
	static __device__ unsigned first_row()
	{
		return blockIdx.x * ROWS + threadIdx.x / LANES;
	}
	static __device__ unsigned step()
	{
		return gridDim.x * ROWS;
	}
	// The team's lanes of the warp: teams of a warp may have ended before.
	static __device__ unsigned lanes_of()
	{
		return LANES < WARP ? ((1u << LANES % WARP) - 1) << (threadIdx.x % WARP - lane())
				    : ALL;
	}
	/* Joins the team's values, in one order, for all of its threads. words: shared, WARPS of
	 * them; for a block only. */
	template <class V, class Join> static __device__ V all(V x, V *words, Join join)
	{
		for (int lanes = (LANES < WARP ? LANES : WARP) / 2; lanes > 0; lanes /= 2)
			x = join(x, __shfl_xor_sync(lanes_of(), x, lanes));
		if (LANES <= WARP)
			return x;
		__syncthreads();
		if (threadIdx.x % WARP == 0)
			words[threadIdx.x / WARP] = x;
		__syncthreads();
		x = words[0];
		for (unsigned w = 1; w < WARPS; w++)
			x = join(x, words[w]);
		return x;
	}
	static __device__ float sum(float x, float *words)
	{
		return all(x, words, [](float a, float b) { return a + b; });
	}
	static __device__ unsigned sum(unsigned x, unsigned *words)
	{
		return all(x, words, [](unsigned a, unsigned b) { return a + b; });
	}
	// NaN is left out.
	static __device__ float max(float x, float *words)
	{
		return all(x, words, [](float a, float b) { return fmaxf(a, b); });
	}
};

/* A thread's columns of rows of `width`. */
template <unsigned LANES> struct columns {
	unsigned width, first, step, lane;
	bool whole;

	__device__ explicit columns(unsigned width_)
	    : width(width_), lane(team<LANES>::lane()), whole(width_ % 8 == 0)
	{
		first = whole ? 8 * lane : lane;
		step = whole ? 1 : LANES;
	}
	__device__ unsigned group(int g) const
	{
		return 8 * LANES * (unsigned)g + first;
	}
};

/* A number for each column, the same for all rows. They lie in shared memory, place k of a team's
 * threads side by side. */
template <unsigned LANES, int HELD> struct known {
	enum { ROOM = HELD ? 8 * HELD * LANES : 1 };
	const float *from, *held;

	// room: shared, ROOM of them. All threads of the block make one.
	__device__ known(const columns<LANES> &c, const float *p, float *room)
	    : from(p), held(room + c.lane)
	{
		const int width = HELD ? (int)c.width : 0;

		for (int i = (int)threadIdx.x; i < width; i += THREADS) {
			const unsigned at = (unsigned)i, l = at % (8 * LANES);
			const unsigned k = at / (8 * LANES) * 8 + l % 8;

			room[c.whole ? k * LANES + l / 8 : at] = p[at];
		}
		__syncthreads();
	}
	__device__ float of(unsigned k, unsigned i) const
	{
		return HELD ? held[k * LANES] : from[i];
	}
};

/*
 * The same row of INPUTS matrices. f is called for each column i of this thread's that is below
 * `end`, with its place k among those that are held and its values x.
 */
template <class T, unsigned INPUTS, unsigned LANES, int HELD> struct row {
	const columns<LANES> &c;
	unsigned end;
	const T *in[INPUTS];
	eight<T> held[HELD ? HELD : 1][INPUTS];

	__device__ row(const columns<LANES> &c_, size_t r, unsigned end_, const T *const *from)
	    : c(c_), end(end_)
	{
#pragma unroll
		for (unsigned m = 0; m < INPUTS; m++)
			in[m] = from[m] + r * c.width;
#pragma unroll
		for (int g = 0; g < HELD; g++)
			if (c.group(g) < end)
				load(held[g], c.group(g));
	}
	__device__ void load(eight<T> *q, unsigned at) const
	{
#pragma unroll
		for (unsigned m = 0; m < INPUTS; m++)
			if (c.whole)
				q[m].load(in[m] + at);
			else
				q[m].gather(in[m], at, c.step, end);
	}
	template <bool SOME, class F>
	__device__ void those_of(const eight<T> *q, unsigned k, unsigned at, unsigned step,
				 F f) const
	{
#pragma unroll
		for (unsigned e = 0; e < 8; e++) {
			float x[INPUTS];

#pragma unroll
			for (unsigned m = 0; m < INPUTS; m++)
				x[m] = q[m].of(e);
			if (!SOME || at + e * step < end)
				f(k + e, at + e * step, x);
		}
	}
	/* All eight of a group or some. With a condition for each value, one value would wait for
	 * the one before it. */
	template <class F>
	__device__ void eight_of(const eight<T> *q, unsigned k, unsigned at, F f) const
	{
		if (c.whole && at + 8 <= end)
			those_of<false>(q, k, at, 1, f);
		else
			those_of<true>(q, k, at, c.step, f);
	}
	template <class F> __device__ void each(F f) const
	{
#pragma unroll
		for (int g = 0; g < HELD; g++)
			if (c.group(g) < end)
				eight_of(held[g], 8 * (unsigned)g, c.group(g), f);
		if (HELD == 0)
			for (unsigned at = c.first; at < end; at += 8 * LANES) {
				eight<T> q[INPUTS];

				load(q, at);
				eight_of(q, 0, at, f);
			}
	}
	/* out[i] = f(k, i, x), and 0 from `end` on */
	template <class F>
	__device__ void store(const eight<T> *q, unsigned k, unsigned at, T *out, F f) const
	{
		float y[8] = {};

		if (at < end)
			eight_of(q, k, at, [&](unsigned k_, unsigned i, const float *x) {
				y[k_ % 8] = f(k_, i, x);
			});
		if (c.whole) {
			eight<T>::store(out + at, y);
			return;
		}
#pragma unroll
		for (unsigned e = 0; e < 8; e++)
			if (at + e * c.step < c.width)
				set(out + at + e * c.step, y[e]);
	}
	template <class F> __device__ void map(T *out, F f) const
	{
#pragma unroll
		for (int g = 0; g < HELD; g++)
			if (c.group(g) < c.width)
				store(held[g], 8 * (unsigned)g, c.group(g), out, f);
		if (HELD == 0)
			for (unsigned at = c.first; at < c.width; at += 8 * LANES) {
				eight<T> q[INPUTS];

				if (at < end)
					load(q, at);
				store(q, 0, at, out, f);
			}
	}
};

/* exp(x - max) of a row's values. They are computed once where there are registers for them besides
 * the row's. */
template <class T, unsigned LANES, int HELD> struct exponentials {
	enum { HOLDS = HELD && sizeof(T) == 2 };
	float max, sum, inverse; /* 1 / sum */
	float held[HOLDS ? 8 * HELD : 1];

	/* All threads of the team; words as for team::all. */
	template <class R> __device__ void of(const R &x, float *words)
	{
		typedef team<LANES> us;

		max = -INFINITY;
		x.each([&](unsigned, unsigned, const float *v) { max = fmaxf(max, v[0]); });
		max = us::max(max, words);
		sum = 0;
		x.each([&](unsigned k, unsigned, const float *v) {
			const float y = expf(v[0] - max);

			sum += y;
			if (HOLDS)
				held[k] = y;
		});
		sum = us::sum(sum, words);
		inverse = 1 / sum;
	}
	__device__ float at(unsigned k, float x) const
	{
		return HOLDS ? held[k] : expf(x - max);
	}
};

static inline size_t row_blocks(size_t rows, size_t at_once)
{
	const size_t blocks = blocks_for(rows, at_once);

	return blocks < ROW_BLOCKS ? blocks : ROW_BLOCKS;
}

/* Launches kernel<T, LANES, HELD> for rows of that width. */
#define LAUNCH_ROWS(kernel, rows, width, s, ...)                                                   \
	do {                                                                                       \
		auto tiny_ = kernel<T, WARP / 4, 1>;                                               \
		auto small_ = kernel<T, WARP / 2, 1>;                                              \
		auto short_ = kernel<T, WARP, 1>;                                                  \
		auto middle_ = kernel<T, WARP, 4>;                                                 \
		auto long_ = kernel<T, THREADS, 2>;                                                \
		auto any_ = kernel<T, THREADS, 0>;                                                 \
                                                                                                   \
		if ((width) <= 8 * WARP / 4)                                                       \
			LAUNCH(tiny_, row_blocks(rows, 4 * WARPS), s, __VA_ARGS__);                \
		else if ((width) <= 8 * WARP / 2)                                                  \
			LAUNCH(small_, row_blocks(rows, 2 * WARPS), s, __VA_ARGS__);               \
		else if ((width) <= 8 * WARP)                                                      \
			LAUNCH(short_, row_blocks(rows, WARPS), s, __VA_ARGS__);                   \
		else if ((width) <= 8 * WARP * 4)                                                  \
			LAUNCH(middle_, row_blocks(rows, WARPS), s, __VA_ARGS__);                  \
		else if ((width) <= 8 * THREADS * 2)                                               \
			LAUNCH(long_, row_blocks(rows, 1), s, __VA_ARGS__);                        \
		else                                                                               \
			LAUNCH(any_, row_blocks(rows, 1), s, __VA_ARGS__);                         \
	} while (0)

#endif
