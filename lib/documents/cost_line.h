/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_COST_LINE_H
#define GF_DOCUMENTS_COST_LINE_H

#include <stddef.h>

#include "base/error.h"
#include "json/json.h"
#include "json/record.h"

/*
 * A cost by size as straight lines. The first line is the record's own startup and per-byte cost.
 * One line is not enough for a library that changes its protocol at some size, or for a shaper that
 * lets the first bytes pass at once: `larger` then holds further lines, each from its size up to
 * the next one's. A cost may fall from one line to the next: a library that changes its algorithm
 * too late takes longer for the messages before.
 */
struct gf_cost_line {
	size_t from_bytes; /* >= 1, rising */
	double startup_s, per_byte_s;
	char *extra;
};

/* Searches look at every line. */
#define GF_COST_LINES_MOST 101 /* in all */

extern const struct gf_record gf_cost_line_record;
/* The record of a line under the names of a level's cost: alpha_s, beta_s_per_byte. */
extern const struct gf_record gf_level_line_record;

/*
 * The line for messages of the given bytes. The sizes from which lines hold are multiplied by
 * `scale` (1: as written). *below_bytes is the size from which the next line holds (INFINITY:
 * none); it may be NULL.
 */
struct gf_cost_lines {
	struct gf_cost_line first;
	const struct gf_cost_line *larger;
	size_t nlarger;
};
struct gf_cost_line gf_cost_line_at(const struct gf_cost_lines *lines, double bytes, double scale,
				    double *below_bytes);
/* The cost of a message of the given bytes. */
double gf_cost_lines_s(const struct gf_cost_lines *lines, double bytes);

void gf_cost_line_add(struct gf_cost_line **larger, size_t *nlarger, struct gf_cost_line line);

/* Checks that sizes rise and that costs are above 0; called by a record's finish. */
int gf_cost_lines_check(const struct gf_json_at *at, const struct gf_cost_lines *lines,
			struct gf_error *err);

/* Quality of a least-squares fit. */
struct gf_fit {
	double r_squared;
	double residual_rms; /* relative: (measured - fitted) / fitted */
	double residual_max; /* relative, absolute value */
	size_t npoints;      /* 0: no fit is recorded */
	size_t *size_bytes;  /* npoints */
	double *time_s;      /* npoints, medians */
	double *spread_s;    /* npoints, interquartile range; or NULL */
	char *extra;
};

extern const struct gf_record gf_fit_record;

#endif
