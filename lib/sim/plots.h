/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_PLOTS_H
#define GF_SIM_PLOTS_H

#include "cli/plot.h"
#include "sim/whatif.h"

/*
 * One outcome becomes a Gantt chart. Several become curves: speed-up over ranks
 * (a curve per bandwidth, and the ideal), or iteration time over the bandwidth
 * if nothing else varies. The CSV of curves is gf_outcomes_csv's.
 */
void gf_outcomes_plot(const struct gf_plan *p,
		      const struct gf_outcome *outcomes, size_t n,
		      struct gf_plot *plot);

/* When the parts of one iteration run, from the start of forward. */
struct gf_timeline {
	double forward_end_s, backward_end_s, iteration_s;
	const struct gf_predicted_message *messages; /* the plan's nmessages */
};

/* One iteration of a plan as a Gantt chart: compute in the first row, one row
 * for each lane that was used, marks where backward and the iteration end. The
 * subtitle says how the times were found ("predicted", "simulated"). */
void gf_iteration_plot(const struct gf_plan *p, const struct gf_timeline *t,
		       int ranks, const char *how, struct gf_plot *plot);

#endif
