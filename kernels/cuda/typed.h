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

// Four neighbours, aligned.
static __device__ inline void get4(const float *p, float *x)
{
	const float4 v = load4(p);

	x[0] = v.x;
	x[1] = v.y;
	x[2] = v.z;
	x[3] = v.w;
}

template <class T> static __device__ inline void get4(const T *p, float *x)
{
	const ushort4 v = load4(&p->bits);

	x[0] = get(T{v.x});
	x[1] = get(T{v.y});
	x[2] = get(T{v.z});
	x[3] = get(T{v.w});
}

static __device__ inline void set4(float *p, const float *x)
{
	store4(p, make_float4(x[0], x[1], x[2], x[3]));
}

template <class T> static __device__ inline void set4(T *p, const float *x)
{
	T v[4];

	for (unsigned k = 0; k < 4; k++)
		set(&v[k], x[k]);
	store4(&p->bits,
	       make_ushort4(v[0].bits, v[1].bits, v[2].bits, v[3].bits));
}

/*
 * out[i] = op(i, in[0][i], ...), four at a time. Op is a struct:
 *	typedef ... type;	of the values
 *	enum { INPUTS };	arrays that are read, at most MAP_INPUTS
 *	const type *in[];  type *out;
 *	float of(unsigned i, const float *x) const;
 */
#define MAP_INPUTS 3

template <class Op>
__global__ void __launch_bounds__(THREADS) map_kernel(Op op, unsigned n)
{
	const unsigned i = (blockIdx.x * THREADS + threadIdx.x) * 4;
	float x[MAP_INPUTS][4], y[4];

	if (i + 4 <= n) {
#pragma unroll
		for (unsigned k = 0; k < Op::INPUTS; k++)
			get4(op.in[k] + i, x[k]);
#pragma unroll
		for (unsigned u = 0; u < 4; u++) {
			const float one[] = {x[0][u], x[1][u], x[2][u]};

			y[u] = op.of(i + u, one);
		}
		set4(op.out + i, y);
		return;
	}
	for (unsigned u = i; u < n; u++) {
		float one[MAP_INPUTS];

		for (unsigned k = 0; k < Op::INPUTS; k++)
			one[k] = get(op.in[k][u]);
		set(op.out + u, op.of(u, one));
	}
}

template <class Op>
static void map(struct gf_gpu_stream *s, const Op &op, size_t n)
{
	if (n > 0)
		LAUNCH(map_kernel<Op>, blocks_for(n, (size_t)THREADS * 4), s,
		       op, (unsigned)n);
}

// Runs the rest with T as the type that dtype names.
#define BY_TYPE(dtype, ...)                                                    \
	do {                                                                   \
		if ((dtype) == GF_F16) {                                       \
			typedef f16 T;                                         \
			__VA_ARGS__;                                           \
		} else if ((dtype) == GF_BF16) {                               \
			typedef bf16 T;                                        \
			__VA_ARGS__;                                           \
		} else {                                                       \
			typedef float T;                                       \
			__VA_ARGS__;                                           \
		}                                                              \
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
