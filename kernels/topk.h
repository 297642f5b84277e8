/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_TOPK_H
#define GF_KERNELS_TOPK_H

#include "bits.h"
#include "gf_kernels.h"

/*
 * Exact top-k in about one pass over the values:
 *   1. a sample shows roughly how large the k-th is; go a little below that;
 *   2. collect everything of at least that size (the pass, which a set
 *      writes with its own instructions);
 *   3. find the k-th among the few collected by their bits, radix by radix;
 *   4. keep the values above it, and the first of its equals.
 * Should the sample mislead, 2. is repeated with a lower bound. The sample is taken at fixed
 * places: same values, same work.
 */

/* values += add (if any); scratch = indices of magnitude >= bound, ascending; returns how many. */
typedef size_t gf_collect_fn(const struct gf_topk *t, uint32_t bound);

#define GF_TOPK_SAMPLE 8192
#define GF_TOPK_RUN    4 /* neighbours in the sample: they share a cache line */

/* The rank-th largest of the keys (from 1); *equals: how many of that very key belong to the first
 * rank. */
static inline uint32_t topk_select(const uint32_t *keys, size_t n, size_t rank, size_t *equals)
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

		for (size_t i = 0; i < n; i++)
			if ((keys[i] & mask) == prefix)
				histogram[keys[i] >> shift & low]++;
		while (above + histogram[bin] < rank)
			above += histogram[bin--];
		rank -= above;
		prefix |= bin << shift;
		mask |= low << shift;
	}
	*equals = rank;
	return prefix;
}

/* A bound that about k + slack*count/SAMPLE values reach. */
static inline uint32_t topk_bound(const struct gf_topk *t, size_t slack)
{
	const size_t runs = GF_TOPK_SAMPLE / GF_TOPK_RUN;
	const double share = (double)t->k / (double)t->count;
	size_t rank = (size_t)(share * GF_TOPK_SAMPLE) + slack, equals;

	if (t->count < GF_TOPK_SAMPLE || rank >= GF_TOPK_SAMPLE)
		return 0;
	for (size_t i = 0; i < GF_TOPK_SAMPLE; i++) {
		size_t at = i / GF_TOPK_RUN * (t->count / runs) + i % GF_TOPK_RUN;
		float x = t->values[at];

		t->scratch[i] = magnitude(t->add ? x + t->add[at] : x);
	}
	return topk_select(t->scratch, GF_TOPK_SAMPLE, rank, &equals);
}

static inline void topk(const struct gf_topk *given, gf_collect_fn *collect)
{
	struct gf_topk t = *given;
	const double share = (double)t.k / (double)t.count;
	size_t slack = 8, found, equals, n = 0;
	uint32_t kth, *keys;

	/* Three standard deviations of the count in the sample. */
	while ((double)(slack * slack) < 9 * share * GF_TOPK_SAMPLE)
		slack++;
	for (;;) {
		uint32_t bound = topk_bound(&t, slack);

		found = collect(&t, bound);
		t.add = NULL; /* done in the first pass */
		if (found >= t.k || bound == 0)
			break;
		slack *= 4;
	}
	keys = t.scratch + found;
	for (size_t i = 0; i < found; i++)
		keys[i] = magnitude(t.values[t.scratch[i]]);
	kth = topk_select(keys, found, t.k, &equals);
	for (size_t i = 0; i < found && n < t.k; i++) {
		if (keys[i] < kth || (keys[i] == kth && equals == 0))
			continue;
		equals -= keys[i] == kth;
		t.index[n++] = t.scratch[i];
	}
}

#endif
