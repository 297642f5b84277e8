/* SPDX-License-Identifier: BSD-3-Clause */
// What dropout drops: the numbers of base/rng.h (xoshiro256**), drawn as
// nn/ref_dropout.c draws them. A sample's numbers follow from each other, so
// one thread makes them; the samples are independent.
#include "nn_sets.h"
#include "typed.h"

namespace
{

struct generator {
	uint64_t s[4];

	__device__ static uint64_t mix(uint64_t *x)
	{
		uint64_t z = (*x += 0x9e3779b97f4a7c15u);

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		return z ^ (z >> 31);
	}
	__device__ void init(uint64_t seed, uint64_t stream)
	{
		uint64_t x = seed ^ mix(&stream);

		for (int i = 0; i < 4; i++)
			s[i] = mix(&x);
	}
	__device__ static uint64_t rotate(uint64_t x, int k)
	{
		return x << k | x >> (64 - k);
	}
	__device__ uint64_t next()
	{
		const uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;

		s[2] ^= s[0];
		s[3] ^= s[1];
		s[1] ^= s[2];
		s[0] ^= s[3];
		s[2] ^= t;
		s[3] = rotate(s[3], 45);
		return result;
	}
};

__global__ void __launch_bounds__(THREADS)
	set_kernel(struct gf_gpu_samples *to, uint64_t seed, uint64_t first)
{
	if (threadIdx.x == 0) {
		to->seed = seed;
		to->first = first;
	}
}

// A block to each sample: its first thread draws a tile, all write it out.
#define TILE 1024

__global__ void __launch_bounds__(THREADS)
	draw_kernel(const struct gf_gpu_samples *samples, uint64_t base,
		    uint32_t limit, uint8_t *keeps, unsigned elems)
{
	__shared__ uint64_t drawn[TILE / 4];
	uint8_t *to = keeps + (size_t)blockIdx.x * elems;
	generator g;

	g.init(samples->seed, base | (samples->first + blockIdx.x));
	for (unsigned from = 0; from < elems; from += TILE) {
		for (unsigned k = 0; threadIdx.x == 0 && k < TILE / 4; k++)
			drawn[k] = g.next();
		__syncthreads();
		for (unsigned k = threadIdx.x; k < TILE && from + k < elems;
		     k += THREADS)
			to[from + k] = (drawn[k / 4] >> (k % 4 * 16) &
					0xffff) >= limit;
		__syncthreads();
	}
}

} // namespace

void gf_cuda_nn_set_samples(struct gf_gpu_stream *s, struct gf_gpu_samples *to,
			    uint64_t seed, uint64_t first)
{
	LAUNCH(set_kernel, 1, s, to, seed, first);
}

void gf_cuda_nn_draw_keeps(struct gf_gpu_stream *s,
			   const struct gf_gpu_samples *samples, uint64_t base,
			   uint32_t limit, uint8_t *keeps, size_t batch,
			   size_t elems)
{
	LAUNCH(draw_kernel, batch, s, samples, base, limit, keeps,
	       (unsigned)elems);
}
