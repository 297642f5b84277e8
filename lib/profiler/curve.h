/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROFILER_CURVE_H
#define GF_PROFILER_CURVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "profiler/chain.h"
#include "transport/comm.h"
#include "cost/fit.h"
#include "documents/profile.h"

/*
 * The sizes to measure, and how often, so that a straight line through them means something and the
 * whole takes no longer than there is time. Nothing is measured here.
 */

/* Fewer sizes are no basis for a fit. */
#define GF_MEASURE_FEWEST_SIZES 8

/*
 * Points are measured in rounds over all of them, not one after the other, so that what disturbs
 * the machine for a while does not fall on one size alone.
 */
#define GF_MEASURE_ROUNDS 3
struct gf_measure_budget gf_measure_round(const struct gf_measure_budget *whole);

/* Sizes from min to at least max bytes in powers of two, the last being max itself, whole f32
 * elements; the caller frees. */
size_t *gf_measure_sizes(size_t min_bytes, size_t max_bytes, size_t *count);

/* A first look: about what one message takes, and what a sitting takes besides (making the engine,
 * agreeing, waiting for each other). */
struct gf_measure_pace {
	double startup_s, per_byte_s, sitting_s;
};

/*
 * How many equal messages make a repeat: so many that how the ranks meet and wake up does not
 * count, yet no more memory than a large model's gradient, nor more time than it needs.
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
	double takes_s; /* about; more than budget_s: it cannot be done faster */
};

/*
 * The largest range of at least GF_MEASURE_FEWEST_SIZES sizes that fits, in powers of two where the
 * range is wide enough: first the upper end comes down (or, where it may not, the sizes get
 * sparser), then the rounds. The caller frees sizes.
 */
void gf_measure_sweep_choose(const struct gf_measure_limits *limits,
			     const struct gf_measure_pace *pace, struct gf_measure_sweep *sweep);

/*
 * Time by size: startup + per_byte * bytes, or several such lines. The subject is anything that can
 * be measured for a number of bytes (an all-reduce, a round on a level of the topology). Also
 * measured is how much several messages at once slow each other. Sizes and repeats are chosen so
 * that the measurement keeps to its time.
 */
struct gf_measure_sitting {
	size_t bytes; /* of each message, whole f32 */
	int messages; /* per repeat: all one after the other, or all at once */
	int lanes;    /* 1, or messages */
	struct gf_measure_budget budget;
};

struct gf_measure_subject {
	const char *name; /* in remarks */
	/* Adds the times of repeats. All ranks get the same. */
	int (*sit)(void *ctx, const struct gf_measure_sitting *sitting,
		   struct gf_measure_samples *samples, struct gf_error *err);
	void *ctx;
};

struct gf_measure_curve_config {
	struct gf_comm *comm;
	struct gf_measure_limits limits;
	int lanes;    /* contention is measured for 2..lanes at once */
	size_t lines; /* how many there may be; 1: the curve is one line */
	/* (optional) how much of this curve is done, in [0, 1] */
	void (*progress)(void *ctx, double fraction);
	void *progress_ctx;
};

/* Collective; all ranks get the same lines, fit and contention in `curve`, which has none yet, and
 * none on failure. remarks: one line, which begins with a tab, for what there was no time for. */
int gf_measure_curve(const struct gf_measure_curve_config *config,
		     const struct gf_measure_subject *subject, struct gf_allreduce_cost *curve,
		     struct gf_text *remarks, struct gf_error *err);
/* Those of them alone. */
void gf_measure_curve_release(struct gf_allreduce_cost *curve);

/* Startup, per-byte cost (up to so many lines) and quality, anew from the points in curve->fit.
 * -EINVAL as gf_fit_linear. */
int gf_measure_fit(struct gf_allreduce_cost *curve, size_t lines, struct gf_error *err);

#endif
