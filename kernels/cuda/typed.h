/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CUDA_TYPED_H
#define GF_KERNELS_CUDA_TYPED_H

#include "device.h"
#include "each.h"
#include "gf_gpu_nn_kernels.h"
#include "half.h"

/* Values of f32, f16 and bf16 that are computed with in f32. */
struct f16 {
	uint16_t bits;
};
struct bf16 {
	uint16_t bits;
};

static __device__ inline float get(float x)
{
	return x;
}

static __device__ inline float get(f16 x)
{
	return __half2float(__ushort_as_half(x.bits));
}

static __device__ inline float get(bf16 x)
{
	return bf16_to(x.bits);
}

static __device__ inline void set(float *to, float x)
{
	*to = x;
}

static __device__ inline void set(f16 *to, float x)
{
	to->bits = __half_as_ushort(__float2half_rn(x));
}

static __device__ inline void set(bf16 *to, float x)
{
	to->bits = bf16_of(x);
}

// Two neighbours in one word.
static __device__ inline uint32_t two(f16, float low, float high)
{
#ifdef GF_EMULATE
	f16 x[2];

	set(&x[0], low);
	set(&x[1], high);
	return x[0].bits | (uint32_t)x[1].bits << 16;
#else
	const __half2 h = __floats2half2_rn(low, high);

	return *reinterpret_cast<const uint32_t *>(&h);
#endif
}

static __device__ inline uint32_t two(bf16, float low, float high)
{
	return bf16_of(low) | (uint32_t)bf16_of(high) << 16;
}

// Eight values in registers. Neighbours are aligned to 16 bytes in memory.
template <class T> struct eight {
	uint32_t words[4];

	__device__ void load(const T *p)
	{
		const uint4 v = *reinterpret_cast<const uint4 *>(p);

		words[0] = v.x;
		words[1] = v.y;
		words[2] = v.z;
		words[3] = v.w;
	}
	__device__ float of(unsigned e) const
	{
		return get(T{(uint16_t)(words[e / 2] >> (e % 2 * 16))});
	}
	// p[at], p[at + step], ...: those before p[end]
	__device__ void gather(const T *p, unsigned at, unsigned step, unsigned end)
	{
		uint32_t bits[8];

#pragma unroll
		for (unsigned e = 0; e < 8; e++)
			bits[e] = at + e * step < end ? p[at + e * step].bits : 0;
#pragma unroll
		for (unsigned w = 0; w < 4; w++)
			words[w] = bits[2 * w] | bits[2 * w + 1] << 16;
	}
	static __device__ void store(T *p, const float *x)
	{
		*reinterpret_cast<uint4 *>(p) =
			make_uint4(two(T{}, x[0], x[1]), two(T{}, x[2], x[3]), two(T{}, x[4], x[5]),
				   two(T{}, x[6], x[7]));
	}
};

template <> struct eight<float> {
	float values[8];

	__device__ void load(const float *p)
	{
		const float4 a = load4(p), b = load4(p + 4);

		values[0] = a.x;
		values[1] = a.y;
		values[2] = a.z;
		values[3] = a.w;
		values[4] = b.x;
		values[5] = b.y;
		values[6] = b.z;
		values[7] = b.w;
	}
	__device__ float of(unsigned e) const
	{
		return values[e];
	}
	__device__ void gather(const float *p, unsigned at, unsigned step, unsigned end)
	{
#pragma unroll
		for (unsigned e = 0; e < 8; e++)
			values[e] = at + e * step < end ? p[at + e * step] : 0;
	}
	static __device__ void store(float *p, const float *x)
	{
		store4(p, make_float4(x[0], x[1], x[2], x[3]));
		store4(p + 4, make_float4(x[4], x[5], x[6], x[7]));
	}
};

// out[e] = f(e, x), x[i] of array i
template <class T, unsigned INPUTS, class F>
static __device__ inline void map_eight(const eight<T> (&q)[INPUTS], T *out, F f)
{
	float y[8];

#pragma unroll
	for (unsigned e = 0; e < 8; e++) {
		float x[INPUTS];

#pragma unroll
		for (unsigned i = 0; i < INPUTS; i++)
			x[i] = q[i].of(e);
		y[e] = f(e, x);
	}
	eight<T>::store(out, y);
}

// The same for the values from `at` to `end`, one after the other.
template <class Op, class F>
static __device__ inline void map_one(const Op &op, unsigned at, unsigned end, F f)
{
	for (unsigned e = 0; at + e < end; e++) {
		float x[Op::INPUTS];

#pragma unroll
		for (unsigned i = 0; i < Op::INPUTS; i++)
			x[i] = get(op.in[i][at + e]);
		set(op.out + at + e, f(e, x));
	}
}

/*
 * out[i] = op(i, in[0][i], ...), eight at a time, two of these at once. Op is a struct:
 *	typedef ... type;	of the values
 *	enum { INPUTS };	arrays that are read
 *	const type *in[];  type *out;
 *	float of(unsigned i, const float *x) const;
 */
#define MAP_AT_ONCE 2

template <class Op> __global__ void __launch_bounds__(THREADS) map_kernel(Op op, unsigned n)
{
	const unsigned groups = n / 8;
	const unsigned first = blockIdx.x * (THREADS * MAP_AT_ONCE) + threadIdx.x;
	eight<typename Op::type> q[MAP_AT_ONCE][Op::INPUTS];

#pragma unroll
	for (unsigned u = 0; u < MAP_AT_ONCE; u++)
#pragma unroll
		for (unsigned k = 0; k < Op::INPUTS; k++)
			if (first + u * THREADS < groups)
				q[u][k].load(op.in[k] + 8 * (first + u * THREADS));
#pragma unroll
	for (unsigned u = 0; u < MAP_AT_ONCE; u++) {
		const unsigned i = 8 * (first + u * THREADS);

		if (first + u * THREADS >= groups)
			break;
		map_eight(q[u], op.out + i,
			  [&](unsigned e, const float *x) { return op.of(i + e, x); });
	}
	if (blockIdx.x == 0 && threadIdx.x == 0)
		map_one(op, 8 * groups, n,
			[&](unsigned e, const float *x) { return op.of(8 * groups + e, x); });
}

template <class Op> static void map(struct gf_gpu_stream *s, const Op &op, size_t n)
{
	if (n > 0)
		LAUNCH(map_kernel<Op>, blocks_for(n, (size_t)THREADS * MAP_AT_ONCE * 8), s, op,
		       (unsigned)n);
}

// Runs the rest with T as the type that dtype names.
#define BY_TYPE(dtype, ...)                                                                        \
	do {                                                                                       \
		if ((dtype) == GF_F16) {                                                           \
			typedef f16 T;                                                             \
			__VA_ARGS__;                                                               \
		} else if ((dtype) == GF_BF16) {                                                   \
			typedef bf16 T;                                                            \
			__VA_ARGS__;                                                               \
		} else {                                                                           \
			typedef float T;                                                           \
			__VA_ARGS__;                                                               \
		}                                                                                  \
	} while (0)

// Sums over a block, the same for all of its threads, in one order. words:
// shared, WARPS of them.
static __device__ inline float block_sum(float x, float *words)
{
	float sum = 0;

	for (int lanes = WARP / 2; lanes > 0; lanes /= 2)
		x += __shfl_xor_sync(ALL, x, lanes);
	__syncthreads();
	if (threadIdx.x % WARP == 0)
		words[threadIdx.x / WARP] = x;
	__syncthreads();
	for (unsigned w = 0; w < WARPS; w++)
		sum += words[w];
	return sum;
}

static __device__ inline float warp_sum(float x)
{
	for (int lanes = WARP / 2; lanes > 0; lanes /= 2)
		x += __shfl_xor_sync(ALL, x, lanes);
	return x;
}

#endif
