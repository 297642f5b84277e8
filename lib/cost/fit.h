/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COST_FIT_H
#define GF_COST_FIT_H

#include <stddef.h>

#include "base/error.h"
#include "documents/cost_line.h"

/*
 * Weighted least squares of time = startup + per_byte * size, weights 1/time^2 (relative residuals:
 * small and large messages count alike).
 * Unphysical results (a negative startup or slope) are clamped to the best fit with that
 * coefficient 0, and flagged.
 */
struct gf_linear_fit {
	double startup_s, per_byte_s;
	int clamped_startup, clamped_slope;
};

/* -EINVAL: fewer than 2 distinct sizes, or a time that is not > 0. */
int gf_fit_linear(const double *size_bytes, const double *time_s, size_t count,
		  struct gf_linear_fit *fit, struct gf_error *err);

/*
 * Fits one line if one is enough, else several, each for a range of sizes. One line cannot describe
 * a library that changes its protocol at some size (Open MPI's TCP asks before it sends 64 KiB), or
 * a shaper that lets the first bytes pass.
 *
 * A range is cut in two if one line is off by 5 % (root mean square) or more on one side, if the
 * improvement is unlikely to be chance, if both parts have three points or more, and if the cost
 * does not fall at the cut. It is cut in three if that is better still by as much: two lines do no
 * better than one where a curve is steep in its middle. The improvement is judged by how well the
 * lines fit, and by the spread of the repeats.
 *
 * The cut lies where the two lines cross between two sizes. If the cost jumps up between them, all
 * sizes above the smaller cost as the larger: nothing is known of them, and a plan must not bet on
 * the cheap line. If only the lines fall there, and the two sizes do not, a line of its own joins
 * the two. Else the cut lies halfway on a logarithmic scale.
 *
 * Before that, the points are cut where the cost falls, as it does where a library changes its
 * algorithm too late: a size takes less than the one before by 30 % or more and by more than the
 * spread of both, the three sizes before the fall lie within a quarter of one line, and so do the
 * three from it on. So one slow sample is no fall. The cheap line begins at the larger size, for
 * the reason given above.
 */
#define GF_FIT_LINES_MOST 4

struct gf_lines_fit {
	size_t nlines;
	double from_bytes[GF_FIT_LINES_MOST]; /* 0, then rising, whole */
	struct gf_linear_fit lines[GF_FIT_LINES_MOST];
	double r_squared;    /* of the unweighted times */
	double residual_rms; /* relative */
	double residual_max; /* relative, absolute value */
};

struct gf_fit_points {
	const double *size_bytes, *time_s;
	size_t count;
	const double *spread_s; /* of repeats, interquartile range; NULL: unknown */
};

/* Up to lines_most lines (GF_FIT_LINES_MOST at most), but only one where sizes do not ascend.
 * -EINVAL as gf_fit_linear. */
int gf_fit_lines(const struct gf_fit_points *points, size_t lines_most, struct gf_lines_fit *fit,
		 struct gf_error *err);
/* The lines as a document has them. Appends those after the first one to *larger, which the caller
 * frees. */
void gf_fit_take_lines(const struct gf_lines_fit *fit, struct gf_cost_line *first,
		       struct gf_cost_line **larger, size_t *nlarger);

#endif
