/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_PLOTS_H
#define GF_SIM_PLOTS_H

#include "plot/plot.h"
#include "sim/whatif.h"

/*
 * Outcomes as SVG, the caller frees: one as a Gantt chart, several as curves,
 * speed-up over ranks (a curve per bandwidth, and the ideal) or, where only the
 * bandwidth varies, iteration time over it.
 */
int gf_outcomes_svg(const struct gf_plan *p, const struct gf_outcome *outcomes,
		    size_t n, char **svg, struct gf_error *err);

/* One iteration of a plan as a Gantt chart: how it was come by ("predicted",
 * "replayed") is told below the title. The caller frees. */
int gf_iteration_svg(const struct gf_plan *p, const struct gf_plot_times *times,
		     const char *how, char **svg, struct gf_error *err);

#endif
