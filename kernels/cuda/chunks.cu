/* SPDX-License-Identifier: BSD-3-Clause */
// Chunks of the pool: each block works on PIECE elements of one chunk.
#include "each.h"
#include "sets.h"

namespace
{

#define PIECE ((size_t)THREADS * 16)

struct piece {
	size_t packed, dense, count; // where it lies, on both sides
};

__device__ piece piece_of(size_t n, size_t chunk_elems, const uint32_t *chunks)
{
	const size_t per_chunk = (chunk_elems + PIECE - 1) / PIECE;
	const size_t place = blockIdx.x / per_chunk;
	const size_t chunk = chunks ? chunks[place] : place;
	const size_t at = blockIdx.x % per_chunk * PIECE;
	size_t end = n - chunk * chunk_elems; // of the chunk
	piece p = {place * chunk_elems + at, chunk * chunk_elems + at, 0};

	if (end > chunk_elems)
		end = chunk_elems;
	if (at < end)
		p.count = end - at < PIECE ? end - at : PIECE;
	return p;
}

// Quads where both sides and the length of a chunk allow it: only the last
// piece of the last chunk can then have a rest.
template <bool Quads>
__global__ void __launch_bounds__(THREADS)
	gather(float *to, const float *from, size_t n, size_t chunk_elems,
	       const uint32_t *chunks)
{
	const piece p = piece_of(n, chunk_elems, chunks);
	float *t = to + p.packed;
	const float *f = from + p.dense;
	size_t quads = 0;
	float4 held[PIECE / THREADS / 4];

	if (Quads)
		quads = p.count / 4;
#pragma unroll
	for (unsigned u = 0; u < PIECE / THREADS / 4; u++)
		if (threadIdx.x + u * THREADS < quads)
			held[u] = load4(f + 4 * (threadIdx.x + u * THREADS));
#pragma unroll
	for (unsigned u = 0; u < PIECE / THREADS / 4; u++)
		if (threadIdx.x + u * THREADS < quads)
			store4(t + 4 * (threadIdx.x + u * THREADS), held[u]);
	for (size_t i = 4 * quads + threadIdx.x; i < p.count; i += THREADS)
		t[i] = f[i];
}

__global__ void __launch_bounds__(THREADS)
	keep(const uint32_t *skip, float *residual, const float *grad, size_t n,
	     size_t chunk_elems, const uint8_t *sent, float decay)
{
	const piece p = piece_of(n, chunk_elems, NULL);
	const bool gone = sent[p.dense / chunk_elems];

	if (skip && *skip)
		return;
#pragma unroll 4
	for (size_t i = threadIdx.x; i < p.count; i += THREADS)
		residual[p.dense + i] = gone ? 0 : decay * grad[p.dense + i];
}

// One thread to a chunk that waits, and to one that was sent.
__global__ void __launch_bounds__(THREADS) share(gf_gpu_norms o)
{
	const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
	bool bad = false;

	if (i < o.nchosen) {
		o.shared[o.chosen[i]] = (float)(o.sums[i] * o.part);
		bad = !isfinite(o.sums[i]);
	}
	if (i < o.count && !o.sent[i]) {
		o.shared[i] = (float)o.left[i];
		bad = bad || !isfinite(o.left[i]);
	}
	if (bad)
		*o.bad = INFINITY;
}

} // namespace

void gf_cuda_gather_chunks_f32(struct gf_gpu_stream *s, float *to,
			       const float *from, size_t n, size_t chunk_elems,
			       const uint32_t *chunks, size_t nchunks)
{
	const size_t blocks = nchunks * blocks_for(chunk_elems, PIECE);

	if (n == 0 || nchunks == 0)
		return;
	if (phase(to, 4) == 0 && phase(from, 4) == 0 && chunk_elems % 4 == 0)
		LAUNCH(gather<true>, blocks, s, to, from, n, chunk_elems,
		       chunks);
	else
		LAUNCH(gather<false>, blocks, s, to, from, n, chunk_elems,
		       chunks);
}

void gf_cuda_share_norms(struct gf_gpu_stream *s, const struct gf_gpu_norms *o)
{
	if (o->count)
		LAUNCH(share, blocks_for(o->count, THREADS), s, *o);
}

void gf_cuda_keep_chunks_f32(struct gf_gpu_stream *s, const uint32_t *skip,
			     float *residual, const float *grad, size_t n,
			     size_t chunk_elems, const uint8_t *sent,
			     float decay)
{
	const size_t blocks =
		blocks_for(n, chunk_elems) * blocks_for(chunk_elems, PIECE);

	if (n)
		LAUNCH(keep, blocks, s, skip, residual, grad, n, chunk_elems,
		       sent, decay);
}
