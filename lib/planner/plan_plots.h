/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_PLAN_PLOTS_H
#define GF_PLANNER_PLAN_PLOTS_H

#include "cli/plot.h"
#include "planner/compare.h"

/* A whole plan's iteration as a Gantt chart; -EINVAL for a rule, which has no messages. */
int gf_plan_plot(const struct gf_plan *p, struct gf_plot *plot, struct gf_error *err);
/* A comparison as bars: compute, and on it the exposed communication; a line across each bar is its
 * lower bound. */
void gf_comparison_plot(const struct gf_request *r, const struct gf_comparison *c,
			struct gf_plot *plot);

#endif
