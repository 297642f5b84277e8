/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_PLOTS_H
#define GF_PLANNER_PLOTS_H

#include "planner/compare.h"

/* SVG, the caller frees: a whole plan's iteration as a Gantt chart, and a
 * comparison as bars, compute and what communication adds. */
int gf_plan_svg(const struct gf_plan *p, char **svg, struct gf_error *err);
int gf_compared_svg(const struct gf_compared *rows, size_t n, char **svg,
		    struct gf_error *err);

#endif
