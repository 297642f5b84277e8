/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_SIZES_H
#define GF_MEASURE_SIZES_H

#include <stdbool.h>
#include <stddef.h>

#include "measure/chain.h"

/*
 * The sizes to measure, and how often, so that a straight line through them
 * means something and the whole takes no longer than there is time. Nothing is
 * measured here.
 */

/* Fewer sizes are no basis for a fit. */
#define GF_MEASURE_FEWEST_SIZES 8

/*
 * Points are measured in rounds over all of them, not one after the other, so
 * that what disturbs the machine for a while does not fall on one size alone.
 */
#define GF_MEASURE_ROUNDS 3
struct gf_measure_budget
gf_measure_round(const struct gf_measure_budget *whole);

/* Sizes from min to at least max bytes in powers of two, the last being max
 * itself, whole f32 elements; the caller frees. */
size_t *gf_measure_sizes(size_t min_bytes, size_t max_bytes, size_t *count);

/* A first look: about what one message takes, and what a sitting takes besides
 * (making the engine, agreeing, waiting for each other). */
struct gf_measure_pace {
	double startup_s, per_byte_s, sitting_s;
};

/*
 * How many equal messages make a repeat: so many that how the ranks meet and
 * wake up does not count, yet no more memory than a large model's gradient,
 * nor more time than it needs.
 */
int gf_measure_chain(const struct gf_measure_pace *pace, size_t bytes);

struct gf_measure_limits {
	size_t min_bytes, max_bytes;
	bool whole;                     /* max_bytes was asked for: keep it */
	double budget_s;                /* for everything */
	struct gf_measure_budget point; /* of one size, at most */
};

struct gf_measure_sweep {
	size_t *sizes;
	size_t count;
	int rounds;
	struct gf_measure_budget sitting;
	double takes_s; /* about; more than budget_s: it cannot be done faster
			 */
};

/*
 * The largest range of at least GF_MEASURE_FEWEST_SIZES sizes that fits, in
 * powers of two where the range is wide enough: first the upper end comes down
 * (or, where it may not, the sizes get sparser), then the rounds. The caller
 * frees sizes.
 */
void gf_measure_sweep_choose(const struct gf_measure_limits *limits,
			     const struct gf_measure_pace *pace,
			     struct gf_measure_sweep *sweep);

#endif
