/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_TOPK_H
#define GF_KERNELS_TOPK_H

#include "bits.h"
#include "gf_kernels.h"

/*
 * Exact top-k in about one pass over the values:
 *   1. a sample says roughly how large the k-th is; go a little below that;
 *   2. collect everything of at least that size (the pass, which a set
 *      writes with its own instructions);
 *   3. find the k-th among the few collected by their bits, radix by radix;
 *   4. keep what is above it, and of its equals the first ones.
 * Should the sample mislead, 2. is repeated with a lower bound. The sample is
 * taken at fixed places: same values, same work.
 */

/* values += add (if any); scratch = indices of magnitude >= bound, ascending;
 * returns how many. */
typedef size_t gf_collect_fn(const struct gf_topk *t, uint32_t bound);

#define GF_TOPK_SAMPLE 8192

static inline uint32_t topk_key(const struct gf_topk *t, uint32_t i)
{
	return magnitude(t->add ? t->values[i] + t->add[i] : t->values[i]);
}

/* The rank-th largest key (from 1) among those at index[0..n); *equals: how
 * many of that very key belong to the first rank. */
static inline uint32_t topk_select(const struct gf_topk *t,
				   const uint32_t *index, size_t n, size_t rank,
				   size_t *equals)
{
	static const struct {
		int shift, bins;
	} digits[] = {{20, 2048}, {10, 1024}, {0, 1024}};
	uint32_t prefix = 0, mask = 0;

	for (size_t d = 0; d < sizeof(digits) / sizeof(digits[0]); d++) {
		const int shift = digits[d].shift;
		const uint32_t low = (uint32_t)digits[d].bins - 1;
		size_t histogram[2048] = {0}, above = 0;
		uint32_t bin = low;

		for (size_t i = 0; i < n; i++) {
			uint32_t key = topk_key(t, index[i]);

			if ((key & mask) == prefix)
				histogram[key >> shift & low]++;
		}
		while (above + histogram[bin] < rank)
			above += histogram[bin--];
		rank -= above;
		prefix |= bin << shift;
		mask |= low << shift;
	}
	*equals = rank;
	return prefix;
}

static inline uint32_t topk_bound(const struct gf_topk *t, size_t slack)
{
	const size_t stride = t->count / GF_TOPK_SAMPLE;
	size_t expected, equals;

	if (stride == 0)
		return 0;
	expected = (size_t)((double)t->k / (double)t->count * GF_TOPK_SAMPLE);
	expected += slack;
	if (expected >= GF_TOPK_SAMPLE)
		return 0;
	for (size_t i = 0; i < GF_TOPK_SAMPLE; i++)
		t->scratch[i] = (uint32_t)(i * stride);
	return topk_select(t, t->scratch, GF_TOPK_SAMPLE, expected, &equals);
}

static inline void topk(const struct gf_topk *given, gf_collect_fn *collect)
{
	struct gf_topk t = *given;
	size_t expected = t.k / (t.count / GF_TOPK_SAMPLE + 1);
	size_t slack = 8, found, equals, n = 0;
	uint32_t kth;

	/* Three standard deviations of the count in the sample. */
	while (slack * slack < 9 * expected)
		slack++;
	for (;;) {
		uint32_t bound = topk_bound(&t, slack);

		found = collect(&t, bound);
		t.add = NULL; /* done in the first pass */
		if (found >= t.k || bound == 0)
			break;
		slack *= 4;
	}
	kth = topk_select(&t, t.scratch, found, t.k, &equals);
	for (size_t i = 0; i < found && n < t.k; i++) {
		uint32_t key = topk_key(&t, t.scratch[i]);

		if (key < kth || (key == kth && equals == 0))
			continue;
		equals -= key == kth;
		t.index[n++] = t.scratch[i];
	}
}

#endif
