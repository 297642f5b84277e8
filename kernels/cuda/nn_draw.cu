/* SPDX-License-Identifier: BSD-3-Clause */
// What dropout drops: the numbers of base/rng.h (xoshiro256**), drawn as
// nn/ref_dropout.c draws them.
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

static_assert(THREADS == 256, "a thread to each bit of the state");
static_assert(GF_GPU_DRAW_PARTS <= THREADS, "a thread to each part");

// Four values: one number's bits, 16 to each.
__device__ uint32_t four(uint64_t bits, uint32_t limit)
{
	uint32_t keeps = 0;

	for (unsigned k = 0; k < 4; k++)
		if ((uint32_t)(bits >> (16 * k) & 0xffff) >= limit)
			keeps |= 1u << (8 * k);
	return keeps;
}

__device__ void write_out(uint8_t *to, uint32_t keeps, size_t room)
{
	if (room >= 4 && (uintptr_t)to % 4 == 0) {
		*reinterpret_cast<uint32_t *>(to) = keeps;
		return;
	}
	for (unsigned k = 0; k < 4 && k < room; k++)
		to[k] = (uint8_t)(keeps >> (8 * k));
}

// One block per sample. The block finds the states at which the parts start,
// one after the other, each thread computing a bit; then each thread draws a
// part.
__global__ void __launch_bounds__(THREADS) draw_kernel(struct gf_gpu_draw d)
{
	__shared__ union {
		uint64_t words[4];
		uint32_t halves[WARPS];
	} starts[GF_GPU_DRAW_PARTS];
	const unsigned part = threadIdx.x;
	uint8_t *keeps = d.keeps + (size_t)blockIdx.x * d.elems;
	uint64_t row[4] = {0, 0, 0, 0};
	generator g;

	if (threadIdx.x == 0) {
		g.init(d.samples->seed, d.base | (d.samples->first + blockIdx.x));
		for (unsigned k = 0; k < 4; k++)
			starts[0].words[k] = g.s[k];
	}
	for (unsigned k = 0; k < 4 && d.parts > 1; k++)
		row[k] = d.jump[4 * threadIdx.x + k];
	__syncthreads();
	for (unsigned p = 1; p < d.parts; p++) {
		uint64_t both = 0;

		for (unsigned k = 0; k < 4; k++)
			both ^= row[k] & starts[p - 1].words[k];
		both ^= both >> 32;
		const unsigned vote = __ballot_sync(ALL, __popc((unsigned)both) & 1);

		if (threadIdx.x % WARP == 0)
			starts[p].halves[threadIdx.x / WARP] = vote;
		__syncthreads();
	}
	if (part >= d.parts)
		return;
	for (unsigned k = 0; k < 4; k++)
		g.s[k] = starts[part].words[k];
	for (size_t i = part * d.part_draws * 4; i < d.elems && i < (part + 1) * d.part_draws * 4;
	     i += 4)
		write_out(keeps + i, four(g.next(), d.limit), d.elems - i);
}

} // namespace

void gf_cuda_nn_set_samples(struct gf_gpu_stream *s, struct gf_gpu_samples *to, uint64_t seed,
			    uint64_t first)
{
	LAUNCH(set_kernel, 1, s, to, seed, first);
}

void gf_cuda_nn_draw_keeps(struct gf_gpu_stream *s, const struct gf_gpu_draw *d)
{
	LAUNCH(draw_kernel, d->batch, s, *d);
}
