/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_GPU_EMULATE_H
#define GF_TESTS_GPU_EMULATE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <functional>
#include <tuple>

#include "half.h"

/*
 * As much of CUDA as kernels/cuda/device.h asks for, on a processor: a block's threads are
 * coroutines that run until they wait for each other, the blocks of a grid run one after the other,
 * both in an order drawn anew each time. A barrier that not all threads of a block (or named lanes
 * of a warp) reach ends the program with the kernel's name. So logic, synchronisation, bounds
 * (under a sanitizer) and alignment (trapped) are tested; speed, caches and memory ordering between
 * running blocks are not.
 */
struct emulated_index {
	unsigned x;
};

#define __global__ static
#define __device__ /* one kind of function */
#define __host__
#define __shared__ static
#define __launch_bounds__(...)

extern struct emulated_index threadIdx, blockIdx, gridDim;

struct alignas(16) float4 {
	float x, y, z, w;
};
struct alignas(16) uint4 {
	unsigned x, y, z, w;
};

struct alignas(8) ushort4 {
	uint16_t x, y, z, w;
};

static inline float4 make_float4(float x, float y, float z, float w)
{
	return float4{x, y, z, w};
}

static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
	return uint4{x, y, z, w};
}

static inline ushort4 make_ushort4(uint16_t x, uint16_t y, uint16_t z, uint16_t w)
{
	return ushort4{x, y, z, w};
}

/* The hardware's conversions, by their definition. */
struct __half {
	uint16_t bits;
};
static inline __half __float2half_rn(float x)
{
	return __half{f16_of(x)};
}
static inline uint16_t __half_as_ushort(__half h)
{
	return h.bits;
}
static inline __half __ushort_as_half(uint16_t h)
{
	return __half{h};
}
static inline float __half2float(__half h)
{
	return f16_to(h.bits);
}

static inline int __popc(unsigned x)
{
	return __builtin_popcount(x);
}

/* Waits for all threads of the block; for the lanes of `mask` in the warp, each of which leaves a
 * word for the others. */
void emulate_block_barrier(void);
const uint32_t *emulate_exchange(unsigned mask, uint32_t word);
void emulate_launch(const char *kernel, size_t blocks, unsigned threads,
		    const std::function<void()> &body);

/* Takes launches, to run them later in the stream's order; NULL:
 * it runs at once. */
struct gf_gpu_stream;
extern void (*emulate_later)(struct gf_gpu_stream *s, std::function<void()> launch);

/* The arguments are taken as they are now, as a launch does. */
template <class... P, class... A>
static inline void emulate_call(const char *name, size_t blocks, unsigned threads,
				struct gf_gpu_stream *s, void (*kernel)(P...), A... arguments)
{
	const std::tuple<P...> taken(static_cast<P>(arguments)...);
	const std::function<void()> launch = [=] {
		emulate_launch(name, blocks, threads, [&] { std::apply(kernel, taken); });
	};

	if (emulate_later)
		emulate_later(s, launch);
	else
		launch();
}

static inline void __syncthreads(void)
{
	emulate_block_barrier();
}

static inline void __syncwarp(void)
{
	emulate_exchange(0xffffffffu, 0);
}

static inline void __threadfence(void)
{
}

static inline unsigned __ballot_sync(unsigned mask, bool vote)
{
	const uint32_t *words = emulate_exchange(mask, vote);
	unsigned votes = 0;

	for (unsigned lane = 0; lane < 32; lane++)
		if (mask >> lane & 1 && words[lane])
			votes |= 1u << lane;
	return votes;
}

template <class T> static inline T emulate_from(unsigned mask, T x, int lane)
{
	uint32_t halves[2] = {0, 0};

	static_assert(sizeof(T) <= sizeof(halves), "at most two words");
	memcpy(halves, &x, sizeof(T));
	for (unsigned h = 0; h < sizeof(T) / 4; h++)
		halves[h] = emulate_exchange(mask, halves[h])[lane];
	memcpy(&x, halves, sizeof(T));
	return x;
}

template <class T> static inline T __shfl_xor_sync(unsigned mask, T x, int lanes)
{
	return emulate_from(mask, x, (int)(threadIdx.x % 32) ^ lanes);
}

/* Beyond the warp's ends a lane keeps its own. */
template <class T> static inline T __shfl_down_sync(unsigned mask, T x, unsigned lanes)
{
	const unsigned from = threadIdx.x % 32 + lanes;

	return emulate_from(mask, x, (int)(from < 32 ? from : from - lanes));
}

template <class T> static inline T __shfl_up_sync(unsigned mask, T x, unsigned lanes)
{
	const unsigned lane = threadIdx.x % 32;

	return emulate_from(mask, x, (int)(lane < lanes ? lane : lane - lanes));
}

static inline uint32_t atomicAdd(uint32_t *p, uint32_t x)
{
	const uint32_t was = *p;

	*p += x;
	return was;
}

static inline unsigned long long atomicMax(unsigned long long *p, unsigned long long x)
{
	const unsigned long long was = *p;

	*p = was > x ? was : x;
	return was;
}

static inline uint32_t atomicOr(uint32_t *p, uint32_t x)
{
	const uint32_t was = *p;

	*p |= x;
	return was;
}

#define LAUNCH(kernel, blocks, stream, ...)                                                        \
	emulate_call(#kernel, (size_t)(blocks), THREADS, stream, kernel, __VA_ARGS__)

#endif
