/* SPDX-License-Identifier: BSD-3-Clause */
// Sparse gradients: out of dense arrays, back into them, and the sum of two.
#include "each.h"
#include "reduce.h"
#include "sets.h"

namespace
{

// Elements that lie anywhere: one at a time.
struct singly {
	struct quad {
	};
	size_t phase() const
	{
		return MIXED;
	}
	__device__ void load(size_t, quad &) const
	{
	}
	__device__ void store(size_t, const quad &) const
	{
	}
};

struct take : singly {
	float *to, *from;
	const uint32_t *index;

	__device__ void one(size_t i) const
	{
		const uint32_t at = index[i];

		if (at == GF_GPU_NO_INDEX) {
			to[i] = 0;
			return;
		}
		to[i] = from[at];
		from[at] = 0;
	}
};

struct scatter_add : singly {
	float *to;
	const float *from;
	const uint32_t *index;

	__device__ void one(size_t i) const
	{
		if (index[i] != GF_GPU_NO_INDEX)
			to[index[i]] += from[i];
	}
};

// A merge: an entry's place in the sum is how many entries of both lists come
// before it, less how many of those came as a pair. So the pairs among a's
// entries are counted first, tile by tile.
struct merge {
	const uint32_t *a_index, *b_index;
	const float *a_value, *b_value;
	uint32_t *out_index;
	float *out_value;
	size_t a_room, b_room;
	uint32_t *pairs; // per entry of a: pairs before it in its tile
	uint32_t *tiles; // per tile of a: pairs in the tiles before it
};

// How many of the ascending list are below x.
__device__ size_t below(const uint32_t *list, size_t n, uint32_t x)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (list[middle] < x)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// A tile is THREADS entries of a. Clears out's indices on the way.
__global__ void __launch_bounds__(THREADS) find_pairs(merge m)
{
	const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
	const size_t out_room = m.a_room + m.b_room;
	bool pair = false;
	uint32_t before, all;

	if (i < m.a_room && m.a_index[i] != GF_GPU_NO_INDEX) {
		const size_t j = below(m.b_index, m.b_room, m.a_index[i]);

		pair = j < m.b_room && m.b_index[j] == m.a_index[i];
	}
	before = sum_before(pair, &all);
	if (i < m.a_room)
		m.pairs[i] = before;
	if (threadIdx.x == 0 && (size_t)blockIdx.x * THREADS < m.a_room)
		m.tiles[blockIdx.x] = all;
	for (size_t o = i; o < out_room; o += (size_t)gridDim.x * THREADS) {
		m.out_index[o] = GF_GPU_NO_INDEX;
		m.out_value[o] = 0;
	}
}

// One block. The tiles are few: 400 for 100,000 entries.
__global__ void __launch_bounds__(THREADS) sum_tiles(merge m, size_t ntiles)
{
	uint32_t base = 0, all;

	for (size_t from = 0; from < ntiles; from += THREADS) {
		const size_t i = from + threadIdx.x;
		const uint32_t before = sum_before(i < ntiles ? m.tiles[i] : 0, &all);

		if (i < ntiles)
			m.tiles[i] = base + before;
		base += all;
	}
}

// As in ref, an entry without a partner gains a zero as long as the other list
// has entries left: -0 becomes 0 before the other list's end, and stays -0
// after.
__device__ float alone(float value, size_t other, const uint32_t *index, size_t room)
{
	return other < room && index[other] != GF_GPU_NO_INDEX ? value + 0.0f : value;
}

__global__ void __launch_bounds__(THREADS) place(merge m)
{
	const size_t t = (size_t)blockIdx.x * THREADS + threadIdx.x;
	uint32_t index;

	if (t < m.a_room && (index = m.a_index[t]) != GF_GPU_NO_INDEX) {
		const size_t j = below(m.b_index, m.b_room, index);
		const size_t to = t + j - m.tiles[t / THREADS] - m.pairs[t];

		m.out_index[to] = index;
		m.out_value[to] = j < m.b_room && m.b_index[j] == index
					  ? m.a_value[t] + m.b_value[j]
					  : alone(m.a_value[t], j, m.b_index, m.b_room);
	}
	if (t < m.b_room && (index = m.b_index[t]) != GF_GPU_NO_INDEX) {
		const size_t i = below(m.a_index, m.a_room, index);
		size_t pairs_before;

		if (i < m.a_room && m.a_index[i] == index)
			return; // a's entry has it
		// The pairs before a's entry i; after the last entry, all
		// pairs.
		if (i < m.a_room) {
			pairs_before = m.tiles[i / THREADS] + m.pairs[i];
		} else if (i > 0) {
			const size_t j = below(m.b_index, m.b_room, m.a_index[i - 1]);

			pairs_before = m.tiles[(i - 1) / THREADS] + m.pairs[i - 1] +
				       (j < m.b_room && m.b_index[j] == m.a_index[i - 1]);
		} else {
			pairs_before = 0;
		}
		m.out_index[t + i - pairs_before] = index;
		m.out_value[t + i - pairs_before] = alone(m.b_value[t], i, m.a_index, m.a_room);
	}
}

struct move : singly {
	uint32_t *index, *to_index;
	float *value, *to_value;
	const uint32_t *at;
	size_t k;

	__device__ void one(size_t i) const
	{
		const size_t place = below(at, k, (uint32_t)i);

		if (place < k && at[place] == i) {
			to_index[place] = index[i];
			to_value[place] = value[i];
			index[i] = GF_GPU_NO_INDEX;
		} else if (value[i] == 0) {
			index[i] = GF_GPU_NO_INDEX;
		}
	}
};

struct leave_out : singly {
	uint32_t *index;
	const uint32_t *in;
	size_t room;

	__device__ void one(size_t i) const
	{
		const size_t place = below(in, room, index[i]);

		if (place < room && in[place] == index[i])
			index[i] = GF_GPU_NO_INDEX;
	}
};

struct spoil : singly {
	const uint32_t *flag;
	float *y;

	__device__ void one(size_t i) const
	{
		if (*flag)
			y[i] = NAN;
	}
};

struct copy {
	const uint32_t *skip;
	float *to;
	const float *from;

	struct quad {
		float4 x;
		uint32_t skip;
	};
	size_t phase() const
	{
		return same_phase(::phase(to, 4), ::phase(from, 4));
	}
	__device__ void load(size_t i, quad &q) const
	{
		q.skip = *skip;
		if (!q.skip)
			q.x = load4(from + i);
	}
	__device__ void store(size_t i, const quad &q) const
	{
		if (!q.skip)
			store4(to + i, q.x);
	}
	__device__ void one(size_t i) const
	{
		if (!*skip)
			to[i] = from[i];
	}
};

} // namespace

void gf_cuda_take_f32(struct gf_gpu_stream *s, float *to, float *from, const uint32_t *index,
		      size_t n)
{
	each(s, take{{}, to, from, index}, n);
}

void gf_cuda_scatter_add_f32(struct gf_gpu_stream *s, float *to, const float *from,
			     const uint32_t *index, size_t n)
{
	each(s, scatter_add{{}, to, from, index}, n);
}

size_t gf_gpu_merge_work_bytes(size_t room)
{
	return (room + blocks_for(room, THREADS)) * sizeof(uint32_t);
}

void gf_cuda_merge_f32(struct gf_gpu_stream *s, const struct gf_gpu_sparse *a,
		       const struct gf_gpu_sparse *b, const struct gf_gpu_sparse *out, void *work)
{
	const size_t ntiles = blocks_for(a->room, THREADS);
	const size_t longer = a->room > b->room ? a->room : b->room;
	merge m;

	if (longer == 0)
		return;
	m.a_index = a->index;
	m.b_index = b->index;
	m.a_value = a->value;
	m.b_value = b->value;
	m.out_index = out->index;
	m.out_value = out->value;
	m.a_room = a->room;
	m.b_room = b->room;
	m.pairs = static_cast<uint32_t *>(work);
	m.tiles = m.pairs + a->room;
	LAUNCH(find_pairs, blocks_for(longer, THREADS), s, m);
	LAUNCH(sum_tiles, 1, s, m, ntiles);
	LAUNCH(place, blocks_for(longer, THREADS), s, m);
}

void gf_cuda_move_f32(struct gf_gpu_stream *s, const struct gf_gpu_sparse *from, const uint32_t *at,
		      size_t k, const struct gf_gpu_sparse *to)
{
	each(s, move{{}, from->index, to->index, from->value, to->value, at, k}, from->room);
}

void gf_cuda_leave_out(struct gf_gpu_stream *s, const struct gf_gpu_sparse *list,
		       const struct gf_gpu_sparse *in)
{
	each(s, leave_out{{}, list->index, in->index, in->room}, list->room);
}

void gf_cuda_copy_f32(struct gf_gpu_stream *s, const uint32_t *skip, float *to, const float *from,
		      size_t n)
{
	each(s, copy{skip, to, from}, n);
}

void gf_cuda_spoil_f32(struct gf_gpu_stream *s, const uint32_t *flag, float *y, size_t n)
{
	each(s, spoil{{}, flag, y}, n);
}
