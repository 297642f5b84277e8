/* SPDX-License-Identifier: BSD-3-Clause */
// Chunks of the pool: each block works on PIECE elements of one chunk.
#include "each.h"
#include "sets.h"

namespace
{

#define HELD  2 // groups of four elements of a thread
#define PIECE ((size_t)THREADS * 4 * HELD)

struct piece {
	size_t packed, dense, count; // where it lies, on both sides
};

// per_chunk: pieces of a chunk
__device__ piece piece_of(size_t n, size_t chunk_elems, unsigned per_chunk, const uint32_t *chunks)
{
	const unsigned place = blockIdx.x / per_chunk;
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
	gather(float *to, const float *from, size_t n, size_t chunk_elems, unsigned per_chunk,
	       const uint32_t *chunks)
{
	const piece p = piece_of(n, chunk_elems, per_chunk, chunks);
	unsigned quads = 0;
	float *t = to + p.packed;
	const float *f = from + p.dense;
	float4 held[HELD];

	if (Quads)
		quads = (unsigned)(p.count / 4);
#pragma unroll
	for (unsigned u = 0; u < HELD; u++)
		if (threadIdx.x + u * THREADS < quads)
			held[u] = load4(f + 4 * (threadIdx.x + u * THREADS));
#pragma unroll
	for (unsigned u = 0; u < HELD; u++)
		if (threadIdx.x + u * THREADS < quads)
			store4(t + 4 * (threadIdx.x + u * THREADS), held[u]);
	for (size_t i = 4 * quads + threadIdx.x; i < p.count; i += THREADS)
		t[i] = f[i];
}

__device__ float4 decayed(float4 v, float decay)
{
	return make_float4(decay * v.x, decay * v.y, decay * v.z, decay * v.w);
}

template <bool Quads>
__global__ void __launch_bounds__(THREADS)
	keep(const uint32_t *skip, float *residual, const float *grad, size_t n, size_t chunk_elems,
	     unsigned per_chunk, const uint8_t *sent, float decay)
{
	const piece p = piece_of(n, chunk_elems, per_chunk, NULL);
	const bool gone = sent[blockIdx.x / per_chunk];
	unsigned quads = 0;
	float *r = residual + p.dense;
	const float *g = grad + p.dense;
	float4 held[HELD];

	if (skip && *skip)
		return;
	if (Quads)
		quads = (unsigned)(p.count / 4);
#pragma unroll
	for (unsigned u = 0; u < HELD; u++) {
		held[u] = make_float4(0, 0, 0, 0);
		if (!gone && threadIdx.x + u * THREADS < quads)
			held[u] = load4(g + 4 * (threadIdx.x + u * THREADS));
	}
#pragma unroll
	for (unsigned u = 0; u < HELD; u++)
		if (threadIdx.x + u * THREADS < quads)
			store4(r + 4 * (threadIdx.x + u * THREADS),
			       gone ? held[u] : decayed(held[u], decay));
	for (size_t i = 4 * quads + threadIdx.x; i < p.count; i += THREADS)
		r[i] = gone ? 0 : decay * g[i];
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

bool in_quads(const float *a, const float *b, size_t chunk_elems)
{
	return phase(a, 4) == 0 && phase(b, 4) == 0 && chunk_elems % 4 == 0;
}

} // namespace

void gf_cuda_gather_chunks_f32(struct gf_gpu_stream *s, float *to, const float *from, size_t n,
			       size_t chunk_elems, const uint32_t *chunks, size_t nchunks)
{
	const size_t per_chunk = blocks_for(chunk_elems, PIECE);

	if (n == 0 || nchunks == 0)
		return;
	LAUNCH((in_quads(to, from, chunk_elems) ? gather<true> : gather<false>),
	       nchunks * per_chunk, s, to, from, n, chunk_elems, (unsigned)per_chunk, chunks);
}

void gf_cuda_share_norms(struct gf_gpu_stream *s, const struct gf_gpu_norms *o)
{
	if (o->count)
		LAUNCH(share, blocks_for(o->count, THREADS), s, *o);
}

void gf_cuda_keep_chunks_f32(struct gf_gpu_stream *s, const uint32_t *skip, float *residual,
			     const float *grad, size_t n, size_t chunk_elems, const uint8_t *sent,
			     float decay)
{
	const size_t per_chunk = blocks_for(chunk_elems, PIECE);
	const size_t blocks = blocks_for(n, chunk_elems) * per_chunk;

	if (n == 0)
		return;
	LAUNCH((in_quads(residual, grad, chunk_elems) ? keep<true> : keep<false>), blocks, s, skip,
	       residual, grad, n, chunk_elems, (unsigned)per_chunk, sent, decay);
}
