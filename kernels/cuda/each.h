/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CUDA_EACH_H
#define GF_KERNELS_CUDA_EACH_H

#include "device.h"

/*
 * Elementwise kernels, four elements at a time where the addresses allow it. An operation is a
 * struct that is copied into the kernel:
 *	struct quad;			what is read of four elements
 *	size_t phase() const;		of the addresses, MIXED if they differ
 *	void load(size_t i, quad &q) const;	elements i to i + 3, aligned
 *	void store(size_t i, const quad &q) const;
 *	void one(size_t i) const;
 * Loads of a thread come before its stores, so that enough of them are under way to keep the memory
 * busy.
 */
#define MIXED   ((size_t)-1)
#define AT_ONCE 2 // groups of four per thread

static inline size_t same_phase(size_t a, size_t b)
{
	return a == b ? a : MIXED;
}

// head: elements before the first aligned group; the tail follows the last.
template <class Op>
__global__ void __launch_bounds__(THREADS) each_quad(Op op, size_t n, size_t head)
{
	const size_t groups = (n - head) / 4;
	const size_t first = (size_t)blockIdx.x * (THREADS * AT_ONCE) + threadIdx.x;
	typename Op::quad q[AT_ONCE];

#pragma unroll
	for (size_t u = 0; u < AT_ONCE; u++)
		if (first + u * THREADS < groups)
			op.load(head + 4 * (first + u * THREADS), q[u]);
#pragma unroll
	for (size_t u = 0; u < AT_ONCE; u++)
		if (first + u * THREADS < groups)
			op.store(head + 4 * (first + u * THREADS), q[u]);
	if (blockIdx.x == 0 && threadIdx.x < head)
		op.one(threadIdx.x);
	if (blockIdx.x == 0 && threadIdx.x < (n - head) % 4)
		op.one(head + 4 * groups + threadIdx.x);
}

template <class Op> __global__ void __launch_bounds__(THREADS) each_one(Op op, size_t n)
{
	const size_t first = (size_t)blockIdx.x * (THREADS * 4) + threadIdx.x;

#pragma unroll
	for (size_t u = 0; u < 4; u++)
		if (first + u * THREADS < n)
			op.one(first + u * THREADS);
}

template <class Op> static void each(struct gf_gpu_stream *s, const Op &op, size_t n)
{
	const size_t at = op.phase();
	const size_t head = (4 - at) % 4;

	if (n == 0)
		return;
	if (at == MIXED || n < head + 4)
		LAUNCH(each_one<Op>, blocks_for(n, THREADS * 4), s, op, n);
	else
		LAUNCH(each_quad<Op>, blocks_for((n - head) / 4, THREADS * AT_ONCE), s, op, n,
		       head);
}

static __device__ inline float4 load4(const float *p)
{
	return *reinterpret_cast<const float4 *>(p);
}

static __device__ inline void store4(float *p, float4 v)
{
	*reinterpret_cast<float4 *>(p) = v;
}

static __device__ inline ushort4 load4(const uint16_t *p)
{
	return *reinterpret_cast<const ushort4 *>(p);
}

static __device__ inline void store4(uint16_t *p, ushort4 v)
{
	*reinterpret_cast<ushort4 *>(p) = v;
}

static __device__ inline float4 make4(float x, float y, float z, float w)
{
	return make_float4(x, y, z, w);
}

static __device__ inline ushort4 make4(uint16_t x, uint16_t y, uint16_t z, uint16_t w)
{
	return make_ushort4(x, y, z, w);
}

/* to[i] = f(to[i], from[i]); Reads: f looks at the first. */
template <class To, class From, bool Reads, class F> struct changed {
	To *to;
	const From *from;
	F f;

	struct quad {
		decltype(load4((To *)0)) y;
		decltype(load4((From *)0)) x;
	};
	size_t phase() const
	{
		return same_phase(::phase(to, sizeof(To)), ::phase(from, sizeof(From)));
	}
	__device__ void load(size_t i, quad &q) const
	{
		if (Reads)
			q.y = load4(to + i);
		q.x = load4(from + i);
	}
	__device__ void store(size_t i, const quad &q) const
	{
		store4(to + i,
		       make4(f(q.y.x, q.x.x), f(q.y.y, q.x.y), f(q.y.z, q.x.z), f(q.y.w, q.x.w)));
	}
	__device__ void one(size_t i) const
	{
		to[i] = f(Reads ? to[i] : To(), from[i]);
	}
};

#endif
