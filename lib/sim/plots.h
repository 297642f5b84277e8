/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_PLOTS_H
#define GF_SIM_PLOTS_H

#include "sim/whatif.h"

/*
 * Outcomes as SVG, the caller frees: one as a Gantt chart, several as curves,
 * speed-up over ranks (a curve per bandwidth, and the ideal) or, where only the
 * bandwidth varies, iteration time over it.
 */
int gf_outcomes_svg(const struct gf_plan *p, const struct gf_outcome *outcomes,
		    size_t n, char **svg, struct gf_error *err);

#endif
