/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_DOUBT_LINES_H
#define GF_SIM_DOUBT_LINES_H

#include <stdbool.h>

#include "doc/profile.h"

/*
 * The lines of a cost at one end of its doubt (sim/doubt.h). At either end
 * costs do not fall as messages grow.
 *
 * Between the sizes that were measured, the end is 1 + d times the lines, or
 * one by that; where a measured time is farther from them, it is as far as that
 * from the sizes before to the sizes after.
 *
 * A smaller message costs no more than the smallest that was measured. It costs
 * no less than lies between that and the least startup. A larger one costs no
 * more per byte than the largest that was measured, and no less than that with
 * the least slope. Least is two standard errors below a line through the first
 * and the last size, of times that are off by d, or by GF_DOUBT_RUNS if that is
 * more.
 */

/* The share d of a fit by so many lines; 0 without points. Lines of two points
 * each leave no residual: then it is GF_DOUBT_RUNS at least. */
double gf_doubt_of_fit(const struct gf_fit *fit, size_t nlines);

/* Puts a fit's lines at that end; its sizes rise. Sizes are taken together,
 * into parts_most parts or a few more. Without points nothing changes. */
void gf_doubt_lines(const struct gf_fit *fit, struct gf_cost_line *first,
		    struct gf_cost_line **larger, size_t *nlarger,
		    size_t parts_most, bool high);

#endif
