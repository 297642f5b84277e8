/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/plots.h"

#include <errno.h>

#include "sim/plots.h"
#include "sim/predict.h"

int gf_plan_plot(const struct gf_plan *p, struct gf_plot *plot,
		 struct gf_error *err)
{
	struct gf_sim_result r = {0};
	struct gf_fabric f = gf_plan_fabric(p);
	struct gf_timeline t;
	int rc;

	if (p->rule)
		return gf_error_set(err, -EINVAL,
				    "--plot: want a plan with messages, got a "
				    "rule");
	rc = gf_predict_plan(p, &f, &r, err); /* for the end of backward */
	if (rc < 0)
		return rc;
	t = (struct gf_timeline){
		.forward_end_s = r.forward_end_s,
		.backward_end_s = r.backward_end_s,
		.iteration_s = p->predicted->iteration_s,
		.messages = p->predicted->messages,
	};
	gf_iteration_plot(p, &t, p->ranks, "predicted", plot);
	return 0;
}

void gf_compared_plot(const struct gf_compared *rows, size_t n,
		      struct gf_plot *plot)
{
	size_t i;

	plot->script = "bars";
	gf_plot_text(plot, "title", "Predicted iteration by policy");
	gf_plot_text(plot, "ylabel", "time");
	gf_plot_text(plot, "unit", "s");
	gf_text_addf(&plot->csv, "policy,iteration,lower bound,compute\n");
	for (i = 0; i < n; i++) {
		gf_plot_label(&plot->csv, rows[i].policy->name);
		gf_plot_cell(&plot->csv, rows[i].iteration_s);
		gf_plot_cell(&plot->csv, rows[i].lower_bound_s);
		gf_plot_cell(&plot->csv, rows[i].compute_s);
		gf_text_addf(&plot->csv, "\n");
	}
}
