/* SPDX-License-Identifier: BSD-3-Clause */
// Exact top-k (kernels/topk.h) in one pass over the values and some over few:
//   1. a sample gives a bound that somewhat more than k values reach;
//   2. the pass: every segment of values lists those that reach the bound;
//   3. if fewer than k reach it, all values are listed;
//   4. the k-th is found among the listed by its bits, digit by digit;
//   5. the values above it go out in order, and the first of its equals.
// Segments list in their own room and in order. So nothing is ever sorted or
// overflows, and the result does not depend on which block runs first.
#include "bits.h"
#include "each.h"
#include "reduce.h"
#include "sets.h"

namespace
{

#define SEGMENT ((size_t)4096) // values to a warp
#define SAMPLE  8192
#define RUN     4 // neighbours in the sample: they share a sector
#define BINS    2048
#define DIGITS  3
#define PER_BIN (BINS / THREADS)
#define GROUP   ((size_t)64) // segments to a block, where sums are taken

// Magnitudes have 31 bits.
__device__ int shift_of(int digit)
{
	return 20 - 10 * digit;
}

__device__ uint32_t low_of(int digit)
{
	return digit == 0 ? 2047 : 1023;
}

// What the launches hand on.
struct state {
	uint32_t bound, found; // of the pass
	uint32_t prefix, mask; // of the k-th: the digits known so far
	uint32_t rank;         // the k-th's among those with that prefix
	uint32_t tickets;      // blocks that have counted this digit
	uint32_t bins[BINS];
};

// Of a segment: how many are listed; how many of those of its group's segments
// before it are above the k-th, how many equal.
struct tally {
	uint32_t listed, above, equal;
};

// Of a group of segments.
struct total {
	uint32_t above, equal;
};

struct work {
	state *st;
	tally *tallies; // per segment
	total *totals;  // per group
	uint16_t *list; // SEGMENT of room per segment: places in it
};

struct problem {
	float *values;
	const float *add;
	size_t count, segments;
	uint32_t k;
	uint32_t *index;
	work w;
};

__device__ unsigned lanes_below()
{
	return (1u << threadIdx.x % WARP) - 1;
}

// Finds the bin of the rank-th largest (rank from 1), by one whole block.
// Thread t looks at bins from the top, PER_BIN of them. found[0]: the bin,
// found[1]: the rank within it.
__device__ void find_bin(const uint32_t *bins, uint32_t rank, uint32_t *found)
{
	const unsigned top = BINS - 1 - threadIdx.x * PER_BIN;
	uint32_t own = 0, all, above;

	for (unsigned b = 0; b < PER_BIN; b++)
		own += bins[top - b];
	above = sum_before(own, &all);
	if (above < rank && rank <= above + own) {
		unsigned b = 0;

		while (above + bins[top - b] < rank)
			above += bins[top - b++];
		found[0] = top - b;
		found[1] = rank - above;
	}
	__syncthreads();
}

__device__ float value_at(const problem &p, size_t i)
{
	return p.add ? p.values[i] + p.add[i] : p.values[i];
}

// One block. sample_rank 0: no sample, everything is listed.
__global__ void __launch_bounds__(THREADS) begin(problem p, uint32_t sample_rank)
{
	__shared__ uint32_t keys[SAMPLE], bins[BINS], found[2];
	state *st = p.w.st;
	uint32_t prefix = 0, mask = 0, rank = sample_rank;

	for (unsigned b = threadIdx.x; b < BINS; b += THREADS)
		st->bins[b] = 0;
	if (rank > 0) {
		const size_t stride = p.count / (SAMPLE / RUN);

		for (unsigned i = threadIdx.x; i < SAMPLE; i += 8 * THREADS) {
			float v[8];

#pragma unroll
			for (unsigned u = 0; u < 8; u++) {
				const size_t at = i + u * THREADS;

				v[u] = value_at(p, at / RUN * stride + at % RUN);
			}
#pragma unroll
			for (unsigned u = 0; u < 8; u++)
				keys[i + u * THREADS] = magnitude(v[u]);
		}
		for (int d = 0; d < DIGITS; d++) {
			for (unsigned b = threadIdx.x; b < BINS; b += THREADS)
				bins[b] = 0;
			__syncthreads();
			for (unsigned i = threadIdx.x; i < SAMPLE; i += THREADS)
				if ((keys[i] & mask) == prefix)
					atomicAdd(&bins[keys[i] >> shift_of(d) & low_of(d)], 1u);
			__syncthreads();
			find_bin(bins, rank, found);
			prefix |= found[0] << shift_of(d);
			mask |= low_of(d) << shift_of(d);
			rank = found[1];
			__syncthreads();
		}
	}
	if (threadIdx.x != 0)
		return;
	st->bound = prefix;
	st->found = st->prefix = st->mask = st->tickets = 0;
	st->rank = p.k;
}

#define AHEAD 4 // groups of four that a lane loads before it looks at them
#define BATCH ((size_t)AHEAD * 4 * WARP)

// A batch of the segment that is there as a whole. A lane loads all its values
// before the first store, so that enough loads are under way.
__device__ void read_batch(const problem &p, size_t at, float4 *v)
{
	float4 a[AHEAD];

#pragma unroll
	for (unsigned u = 0; u < AHEAD; u++)
		v[u] = load4(p.values + at + 4 * u * WARP);
	if (!p.add)
		return;
#pragma unroll
	for (unsigned u = 0; u < AHEAD; u++)
		a[u] = load4(p.add + at + 4 * u * WARP);
#pragma unroll
	for (unsigned u = 0; u < AHEAD; u++) {
		v[u] = make_float4(v[u].x + a[u].x, v[u].y + a[u].y, v[u].z + a[u].z,
				   v[u].w + a[u].w);
		store4(p.values + at + 4 * u * WARP, v[u]);
	}
}

// The same of one group at the end of all values, or of any that is not
// aligned; returns how many values are there.
__device__ unsigned read_rest(const problem &p, size_t at, float4 *q)
{
	float v[4] = {0, 0, 0, 0};
	unsigned n = 0;

	for (; n < 4 && at + n < p.count; n++) {
		v[n] = value_at(p, at + n);
		if (p.add)
			p.values[at + n] = v[n];
	}
	*q = make_float4(v[0], v[1], v[2], v[3]);
	return n;
}

// Lists those of a warp's groups that reach the bound, by lane and then by
// place; the lane's group begins at `at` of the segment and has n values.
// Returns how many are listed then. Most warps find none.
__device__ uint32_t list_groups(const float4 &q, unsigned n, unsigned at, uint32_t bound,
				uint16_t *list, uint32_t listed)
{
	const bool in[4] = {
		n > 0 && magnitude(q.x) >= bound,
		n > 1 && magnitude(q.y) >= bound,
		n > 2 && magnitude(q.z) >= bound,
		n > 3 && magnitude(q.w) >= bound,
	};
	unsigned before = 0, all = 0;

	if (!__ballot_sync(ALL, in[0] || in[1] || in[2] || in[3]))
		return listed;
	for (unsigned j = 0; j < 4; j++) {
		const unsigned votes = __ballot_sync(ALL, in[j]);

		before += __popc(votes & lanes_below());
		all += __popc(votes);
	}
	for (unsigned j = 0; j < 4; j++)
		if (in[j])
			list[listed + before++] = (uint16_t)(at + j);
	return listed + all;
}

// Lists the values that reach the bound; a warp to each segment.
template <bool Quads>
__device__ uint32_t list_segment(const problem &p, size_t segment, uint32_t bound)
{
	const unsigned lane = threadIdx.x % WARP;
	const size_t from = segment * SEGMENT;
	const size_t end = from + SEGMENT < p.count ? from + SEGMENT : p.count;
	uint16_t *list = p.w.list + from;
	uint32_t listed = 0;
	size_t at = from + 4 * lane;

	for (; Quads && at - 4 * lane + BATCH <= end; at += BATCH) {
		float4 v[AHEAD];

		read_batch(p, at, v);
#pragma unroll
		for (unsigned u = 0; u < AHEAD; u++)
			listed = list_groups(v[u], 4, (unsigned)(at - from) + 4 * u * WARP, bound,
					     list, listed);
	}
	for (; at - 4 * lane < end; at += 4 * WARP) {
		float4 q;
		const unsigned n = read_rest(p, at, &q);

		listed = list_groups(q, n, (unsigned)(at - from), bound, list, listed);
	}
	return listed;
}

template <bool Quads> __global__ void __launch_bounds__(THREADS) collect(problem p)
{
	const size_t segment = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP;
	uint32_t listed;

	if (segment >= p.segments) // the whole warp
		return;
	listed = list_segment<Quads>(p, segment, p.w.st->bound);
	if (threadIdx.x % WARP == 0) {
		p.w.tallies[segment].listed = listed;
		atomicAdd(&p.w.st->found, listed);
	}
}

// The sample promised too much: list everything. Nothing is added again.
__global__ void __launch_bounds__(THREADS) collect_all(problem p)
{
	const unsigned lane = threadIdx.x % WARP;
	const size_t walkers = (size_t)gridDim.x * WARPS;

	if (p.w.st->found >= p.k)
		return;
	for (size_t segment = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP; segment < p.segments;
	     segment += walkers) {
		const size_t from = segment * SEGMENT;
		const size_t rest = p.count - from;
		const uint32_t n = (uint32_t)(rest < SEGMENT ? rest : SEGMENT);

		for (uint32_t i = lane; i < n; i += WARP)
			p.w.list[from + i] = (uint16_t)i;
		if (lane == 0)
			p.w.tallies[segment].listed = n;
	}
}

__device__ uint32_t listed_key(const problem &p, size_t segment, uint32_t i)
{
	const size_t from = segment * SEGMENT;

	return magnitude(p.values[from + p.w.list[from + i]]);
}

// Counts one digit of the listed values that have the known prefix. The block
// that comes last finds the next digit and clears up for the following launch.
__global__ void __launch_bounds__(THREADS) count_digit(problem p, int digit)
{
	__shared__ uint32_t bins[BINS], found[2], ticket;
	const size_t walkers = (size_t)gridDim.x * WARPS;
	const int shift = shift_of(digit);
	const uint32_t low = low_of(digit);
	state *st = p.w.st;
	const uint32_t prefix = st->prefix, mask = st->mask, rank = st->rank;

	for (unsigned b = threadIdx.x; b < BINS; b += THREADS)
		bins[b] = 0;
	__syncthreads();
	for (size_t segment = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP; segment < p.segments;
	     segment += walkers) {
		const uint32_t n = p.w.tallies[segment].listed;

		for (uint32_t i = threadIdx.x % WARP; i < n; i += WARP) {
			const uint32_t key = listed_key(p, segment, i);

			if ((key & mask) == prefix)
				atomicAdd(&bins[key >> shift & low], 1u);
		}
	}
	__syncthreads();
	for (unsigned b = threadIdx.x; b < BINS; b += THREADS)
		if (bins[b])
			atomicAdd(&st->bins[b], bins[b]);
	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0)
		ticket = atomicAdd(&st->tickets, 1u);
	__syncthreads();
	if (ticket != gridDim.x - 1)
		return;
	__threadfence();
	for (unsigned b = threadIdx.x; b < BINS; b += THREADS) {
		bins[b] = atomicAdd(&st->bins[b], 0u); // past the L1 cache
		st->bins[b] = 0;
	}
	__syncthreads();
	find_bin(bins, rank, found);
	if (threadIdx.x != 0)
		return;
	st->prefix = prefix | found[0] << shift;
	st->mask = mask | low << shift;
	st->rank = found[1];
	st->tickets = 0;
}

// How many of each segment are above the k-th, how many equal to it; and the
// sums of them in the group, which is the block's.
__global__ void __launch_bounds__(THREADS) count_above(problem p)
{
	__shared__ uint32_t aboves[GROUP], equals[GROUP];
	const unsigned lane = threadIdx.x % WARP;
	const uint32_t kth = p.w.st->prefix;
	const size_t first = blockIdx.x * GROUP;
	const bool mine = threadIdx.x < GROUP && first + threadIdx.x < p.segments;
	uint32_t above, equal, all_above, all_equal;

	for (size_t g = threadIdx.x / WARP; g < GROUP && first + g < p.segments; g += WARPS) {
		const uint32_t n = p.w.tallies[first + g].listed;

		above = equal = 0;
		for (uint32_t i = 0; i < n; i += WARP) {
			const bool in = i + lane < n;
			const uint32_t key = in ? listed_key(p, first + g, i + lane) : 0;

			above += __popc(__ballot_sync(ALL, in && key > kth));
			equal += __popc(__ballot_sync(ALL, in && key == kth));
		}
		if (lane == 0) {
			aboves[g] = above;
			equals[g] = equal;
		}
	}
	__syncthreads();
	above = sum_before(mine ? aboves[threadIdx.x] : 0, &all_above);
	equal = sum_before(mine ? equals[threadIdx.x] : 0, &all_equal);
	if (mine) {
		p.w.tallies[first + threadIdx.x].above = above;
		p.w.tallies[first + threadIdx.x].equal = equal;
	}
	if (threadIdx.x == 0)
		p.w.totals[blockIdx.x] = total{all_above, all_equal};
}

// The sums of the groups before the block's own.
__device__ total groups_before(const problem &p)
{
	total own = {0, 0}, all;

	for (size_t g = threadIdx.x; g < blockIdx.x; g += THREADS) {
		own.above += p.w.totals[g].above;
		own.equal += p.w.totals[g].equal;
	}
	(void)sum_before(own.above, &all.above);
	(void)sum_before(own.equal, &all.equal);
	return all;
}

// An element's place: those above the k-th before it, and the equals before it
// as far as they go out at all (the first `rank` of them).
__global__ void __launch_bounds__(THREADS) emit(problem p)
{
	const unsigned lane = threadIdx.x % WARP;
	const uint32_t kth = p.w.st->prefix, equals = p.w.st->rank;
	const size_t first = blockIdx.x * GROUP;
	const total before = groups_before(p);

	for (size_t g = threadIdx.x / WARP; g < GROUP && first + g < p.segments; g += WARPS) {
		const size_t segment = first + g, from = segment * SEGMENT;
		const tally t = p.w.tallies[segment];
		uint32_t above = before.above + t.above;
		uint32_t equal = before.equal + t.equal;

		for (uint32_t i = 0; i < t.listed; i += WARP) {
			const bool in = i + lane < t.listed;
			const uint32_t key = in ? listed_key(p, segment, i + lane) : 0;
			const unsigned larger = __ballot_sync(ALL, in && key > kth);
			const unsigned same = __ballot_sync(ALL, in && key == kth);
			const uint32_t a = above + __popc(larger & lanes_below());
			const uint32_t e = equal + __popc(same & lanes_below());

			if (in && (key > kth || (key == kth && e < equals)))
				p.index[a + (e < equals ? e : equals)] =
					(uint32_t)(from + p.w.list[from + i + lane]);
			above += __popc(larger);
			equal += __popc(same);
		}
	}
}

size_t segments_of(size_t count)
{
	return blocks_for(count, SEGMENT);
}

// As topk.h: three standard deviations above the expected rank; 0 where the
// sample is no help.
uint32_t rank_in_sample(size_t count, size_t k)
{
	const double expected = (double)k / (double)count * SAMPLE;
	size_t slack = 8, rank;

	while ((double)(slack * slack) < 9 * expected)
		slack++;
	rank = (size_t)expected + slack;
	return count < SAMPLE || rank >= SAMPLE ? 0 : (uint32_t)rank;
}

problem problem_of(const struct gf_gpu_topk *t)
{
	problem p;

	p.values = t->values;
	p.add = t->add;
	p.count = t->count;
	p.segments = segments_of(t->count);
	p.k = (uint32_t)t->k;
	p.index = t->index;
	p.w.st = static_cast<state *>(t->work);
	p.w.tallies = reinterpret_cast<tally *>(p.w.st + 1);
	p.w.totals = reinterpret_cast<total *>(p.w.tallies + p.segments);
	p.w.list = reinterpret_cast<uint16_t *>(p.w.totals + blocks_for(p.segments, GROUP));
	return p;
}

} // namespace

size_t gf_gpu_topk_work_bytes(size_t count)
{
	const size_t segments = segments_of(count);

	return sizeof(state) + segments * sizeof(tally) +
	       blocks_for(segments, GROUP) * sizeof(total) + segments * SEGMENT * sizeof(uint16_t);
}

void gf_cuda_topk_f32(struct gf_gpu_stream *s, const struct gf_gpu_topk *t)
{
	const problem p = problem_of(t);
	const size_t all = blocks_for(p.segments, WARPS);
	const size_t few = walking_blocks(p.segments, WARPS);
	const bool quads = phase(p.values, 4) == 0 && (!p.add || phase(p.add, 4) == 0);

	LAUNCH(begin, 1, s, p, rank_in_sample(t->count, t->k));
	LAUNCH((quads ? collect<true> : collect<false>), all, s, p);
	LAUNCH(collect_all, few, s, p);
	for (int digit = 0; digit < DIGITS; digit++)
		LAUNCH(count_digit, few, s, p, digit);
	LAUNCH(count_above, blocks_for(p.segments, GROUP), s, p);
	LAUNCH(emit, blocks_for(p.segments, GROUP), s, p);
}
