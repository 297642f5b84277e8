/* SPDX-License-Identifier: BSD-3-Clause */
// Embeddings. In backward one block per row of the table looks for the places
// that name the row, in order: the sums do not depend on which block runs
// first.
#include "nn_sets.h"
#include "typed.h"

namespace
{

// NaN is wrong, too.
__device__ bool good(float x, unsigned entries)
{
	return x >= 0 && x < (float)entries;
}

__global__ void __launch_bounds__(THREADS)
	check_kernel(const float *numbers, unsigned count, unsigned entries,
		     struct gf_gpu_outcome *outcome)
{
	__shared__ uint32_t wrongs[THREADS];
	uint32_t wrong = 0;

	for (unsigned i = threadIdx.x; i < count && !wrong; i += THREADS)
		if (!good(numbers[i], entries))
			wrong = i + 1;
	wrongs[threadIdx.x] = wrong;
	__syncthreads();
	if (threadIdx.x > 0)
		return;
	for (unsigned t = 1; t < THREADS; t++)
		if (wrongs[t] && (!wrong || wrongs[t] < wrong))
			wrong = wrongs[t];
	outcome->bad_number = wrong;
	outcome->number = wrong ? numbers[wrong - 1] : 0;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
	look_up(const float *numbers, const float *table, T *out, unsigned n,
		unsigned width, unsigned entries)
{
	const unsigned first = blockIdx.x * (THREADS * 4) + threadIdx.x;

#pragma unroll
	for (unsigned u = 0; u < 4; u++) {
		const unsigned i = first + u * THREADS;

		if (i >= n)
			return;
		const float number = numbers[i / width];
		const size_t row = good(number, entries) ? (size_t)number : 0;

		set(out + i, table[row * width + i % width]);
	}
}

#define FOUND_MAX THREADS

template <class T>
__global__ void __launch_bounds__(THREADS)
	add_up(const float *numbers, unsigned count, unsigned width,
	       unsigned entries, const T *dout, float scale, float *dtable)
{
	__shared__ unsigned votes[WARPS], found[FOUND_MAX];
	float *row = dtable + (size_t)blockIdx.x * width;
	const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;

	for (unsigned c = threadIdx.x; c < width; c += THREADS)
		row[c] = 0;
	for (unsigned from = 0; from < count; from += THREADS) {
		const unsigned i = from + threadIdx.x;
		const float number = i < count ? numbers[i] : -1;
		const bool mine =
			i < count && (good(number, entries) ? (unsigned)number
							    : 0) == blockIdx.x;
		const unsigned vote = __ballot_sync(ALL, mine);
		unsigned before = 0, all = 0;

		if (lane == 0)
			votes[warp] = vote;
		__syncthreads();
		for (unsigned w = 0; w < WARPS; w++) {
			before += w < warp ? (unsigned)__popc(votes[w]) : 0;
			all += (unsigned)__popc(votes[w]);
		}
		if (mine)
			found[before +
			      (unsigned)__popc(vote & ((1u << lane) - 1))] = i;
		__syncthreads();
		for (unsigned c = threadIdx.x; all > 0 && c < width;
		     c += THREADS) {
			float sum = row[c];

			for (unsigned k = 0; k < all; k++)
				sum += scale *
				       get(dout[(size_t)found[k] * width + c]);
			row[c] = sum;
		}
	}
}

} // namespace

void gf_cuda_nn_embed(struct gf_gpu_stream *s, const struct gf_gpu_embedding *o,
		      const float *table, void *out,
		      struct gf_gpu_outcome *outcome)
{
	const size_t n = o->count * o->width;

	if (n == 0)
		return;
	LAUNCH(check_kernel, 1, s, o->numbers, (unsigned)o->count,
	       (unsigned)o->entries, outcome);
	BY_TYPE(o->dtype, LAUNCH(look_up<T>, blocks_for(n, (size_t)THREADS * 4),
				 s, o->numbers, table, (T *)out, (unsigned)n,
				 (unsigned)o->width, (unsigned)o->entries));
}

void gf_cuda_nn_embed_backward(struct gf_gpu_stream *s,
			       const struct gf_gpu_embedding *o,
			       const void *dout, float scale, float *dtable)
{
	BY_TYPE(o->dtype,
		LAUNCH(add_up<T>, o->entries, s, o->numbers, (unsigned)o->count,
		       (unsigned)o->width, (unsigned)o->entries,
		       (const T *)dout, scale, dtable));
}
