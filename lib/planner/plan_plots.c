/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/plan_plots.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "simulator/sweep_plots.h"

int gf_plan_plot(const struct gf_plan *p, struct gf_plot *plot, struct gf_error *err)
{
	struct gf_what_if as_it_is = {.timeline = true};
	struct gf_outcome o;
	int rc;

	if (p->rule)
		return gf_error_set(err, -EINVAL, "--plot: want a plan with messages, got a rule");
	rc = gf_what_if(p, &as_it_is, &o, err);
	if (rc < 0)
		return rc;
	gf_gantt_plot(p, &as_it_is, &o, "predicted", plot);
	gf_outcome_release(&o);
	return 0;
}

/* "policies, codecs", "lanes by codecs": what is compared. */
static void add_axes(const struct gf_compare_over *over, struct gf_text *out)
{
	unsigned axes = over->axes, axis;

	if (over->grid)
		gf_text_addf(out, "%s by %s", gf_compare_names[over->down],
			     gf_compare_names[over->across]);
	for (axis = 0; axis < GF_COMPARE_AXES && !over->grid; axis++)
		if (axes >> axis & 1)
			gf_text_addf(out, "%s%s", out->length ? ", " : "", gf_compare_names[axis]);
}

/* A group for each value of one axis, a bar for each of the other; gnuplot wants none without a
 * number. */
static void plot_grid(const struct gf_comparison *c, struct gf_plot *plot)
{
	const char *down, *across;
	size_t i, k;

	gf_text_addf(&plot->csv, "%s", gf_compare_names[c->over.down]);
	for (k = 0; (across = gf_compare_value(c->over.across, k)); k++)
		if (gf_comparison_at(c, NULL, across)) {
			gf_text_addf(&plot->csv, ",");
			gf_plot_label(&plot->csv, across);
		}
	gf_text_addf(&plot->csv, "\n");
	for (i = 0; (down = gf_compare_value(c->over.down, i)); i++) {
		if (!gf_comparison_at(c, down, NULL))
			continue;
		gf_plot_label(&plot->csv, down);
		for (k = 0; (across = gf_compare_value(c->over.across, k)); k++) {
			const struct gf_compared *row = gf_comparison_at(c, down, across);

			if (row)
				gf_plot_cell(&plot->csv, row->iteration_s);
			else if (gf_comparison_at(c, NULL, across))
				gf_text_addf(&plot->csv, ",");
		}
		gf_text_addf(&plot->csv, "\n");
	}
}

void gf_comparison_plot(const struct gf_request *r, const struct gf_comparison *c,
			struct gf_plot *plot)
{
	struct gf_network_view network = {
		.levels = r->fabric.levels,
		.nlevels = r->fabric.nlevels,
		.ranks = r->fabric.ranks,
		.measured = r->fabric.network != NULL,
	};
	bool doubted = c->rows[0].iteration_high_s > 0;
	struct gf_text under = {0}, axes = {0};
	size_t i;

	if (r->fabric.nlevels > 0)
		network.rate = r->fabric.levels[r->fabric.nlevels - 1].bandwidth_bytes_per_s;
	gf_network_text(&network, &under);
	plot->script = "bars";
	add_axes(&c->over, &axes);
	gf_plot_text(plot, "title", "%s on %d ranks: %s", r->model->name, r->fabric.ranks,
		     axes.data);
	gf_text_release(&axes);
	gf_plot_text(plot, "subtitle", "%spredicted", under.data ? under.data : "");
	gf_text_release(&under);
	gf_plot_text(plot, "ylabel", "iteration");
	gf_plot_text(plot, "unit", "s");
	if (c->over.grid) {
		plot_grid(c, plot);
		return;
	}
	gf_plot_number(plot, "stacked", 1);
	gf_plot_text(plot, "level", "lower bound");
	gf_plot_number(plot, "doubt", doubted);
	gf_text_addf(&plot->csv, "policy,compute,exposed%s,lower bound\n",
		     doubted ? ",low,high" : "");
	for (i = 0; i < c->nrows; i++) {
		gf_plot_label(&plot->csv, c->rows[i].name);
		gf_plot_cell(&plot->csv, c->rows[i].compute_s);
		gf_plot_cell(&plot->csv, c->rows[i].exposed_comm_s);
		if (doubted) {
			gf_plot_cell(&plot->csv, c->rows[i].iteration_low_s);
			gf_plot_cell(&plot->csv, c->rows[i].iteration_high_s);
		}
		gf_plot_cell(&plot->csv, c->rows[i].lower_bound_s);
		gf_text_addf(&plot->csv, "\n");
	}
}
