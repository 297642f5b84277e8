/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIMULATOR_SWEEP_PLOTS_H
#define GF_SIMULATOR_SWEEP_PLOTS_H

#include "cli/plot.h"
#include "simulator/replay/replay_plan.h"
#include "simulator/rows.h"

/*
 * One row, whose timeline was asked for, becomes a Gantt chart: compute in the first row, one row
 * for each lane that was used, marks where backward and steps end. Several become curves:
 * efficiency over ranks (a curve per plan and bandwidth), or iteration time over the bandwidth if
 * nothing else varies. The CSV of curves is gf_rows_csv's. Titles say the model, the ranks, the
 * system or policy, and the network: w is what they were simulated in.
 */
void gf_rows_plot(const struct gf_row *rows, size_t n, const struct gf_what_if *w,
		  struct gf_plot *plot);

/* A whole plan's iteration as a Gantt chart; -EINVAL for a rule, which has no messages. */
int gf_plan_plot(const struct gf_plan *p, struct gf_plot *plot, struct gf_error *err);

/*
 * The exchange of a replay: each rank's sends and receives, with the rank at the other end, in the
 * colour of the level where the two meet. What is posted and does not move yet is drawn as waiting.
 * Of many ranks it has the first ones of each group, and of many messages the first ones.
 */
void gf_steps_plot(const struct gf_plan *p, const struct gf_what_if *w, const struct gf_replayed *r,
		   struct gf_plot *plot);

/* The title and the subtitle of a plan's iteration under w. end: how it was found, and what else
 * there is to say. For the pictures of lib/simulator alone. */
void gf_iteration_titles(const struct gf_plan *p, const struct gf_what_if *w, int ranks,
			 const char *end, struct gf_plot *plot);

/* What a title says of a network. */
struct gf_network_view {
	const struct gf_level *levels;
	size_t nlevels;
	int ranks; /* levels that make others are left out; 0: several */
	bool measured;
	double rate; /* bytes per second of the outermost level; 0: several */
};
/* "8 x 4 ranks, ethernet 10 Gb/s, " */
void gf_network_text(const struct gf_network_view *v, struct gf_text *out);

#endif
