/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_CURVE_H
#define GF_MEASURE_CURVE_H

#include "base/error.h"
#include "base/text.h"
#include "measure/chain.h"
#include "measure/sizes.h"
#include "comm/comm.h"
#include "cost/fit_lines.h"
#include "doc/profile.h"

/*
 * Time by size: startup + per_byte * bytes, or several such lines. The subject
 * is anything that can be measured for a number of bytes (an all-reduce, a
 * round on a level of the topology). Also measured is how much several messages
 * at once slow each other. Sizes and repeats are chosen so that the measurement
 * keeps to its time.
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

struct gf_measure_curve {
	double startup_s, per_byte_s;
	struct gf_cost_line *larger;
	size_t nlarger;
	struct gf_fit fit;
	struct gf_contention contention;
};

/* Collective; all ranks get the same in a zeroed curve, which is empty on
 * failure. remarks: one line, which begins with a tab, for what there was no
 * time for. */
int gf_measure_curve(const struct gf_measure_curve_config *config,
		     const struct gf_measure_subject *subject,
		     struct gf_measure_curve *curve, struct gf_text *remarks,
		     struct gf_error *err);
void gf_measure_curve_release(struct gf_measure_curve *curve);

/* Its lines, borrowed. */
struct gf_cost_lines
gf_measure_curve_lines(const struct gf_measure_curve *curve);

/* Startup, per-byte cost (up to so many lines) and quality from the points in
 * curve->fit. -EINVAL as gf_fit_linear. */
int gf_measure_fit(struct gf_measure_curve *curve, size_t lines,
		   struct gf_error *err);

#endif
