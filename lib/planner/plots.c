/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/plots.h"

#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"
#include "plot/plot.h"
#include "sim/plots.h"
#include "sim/predict.h"

int gf_plan_svg(const struct gf_plan *p, char **svg, struct gf_error *err)
{
	struct gf_sim_result r = {0};
	struct gf_fabric f = gf_plan_fabric(p);
	struct gf_plot_times times;
	char *how;
	int rc;

	if (p->rule)
		return gf_error_set(err, -EINVAL,
				    "--plot: want a plan with messages, got a "
				    "rule");
	rc = gf_predict_plan(p, &f, &r, err); /* for the end of backward */
	if (rc < 0)
		return rc;
	times = (struct gf_plot_times){
		.forward_end_s = r.forward_end_s,
		.backward_end_s = r.backward_end_s,
		.iteration_s = p->predicted->iteration_s,
		.messages = p->predicted->messages,
	};
	how = gf_xasprintf("%d rank%s, %zu message%s, predicted", p->ranks,
			   p->ranks == 1 ? "" : "s", p->nmessages,
			   p->nmessages == 1 ? "" : "s");
	rc = gf_iteration_svg(p, &times, how, svg, err);
	free(how);
	return rc;
}

int gf_compared_svg(const struct gf_compared *rows, size_t n, char **svg,
		    struct gf_error *err)
{
	const char **groups = gf_xcalloc(n, sizeof(*groups));
	double *iterations = gf_xcalloc(n, sizeof(*iterations));
	double *bounds = gf_xcalloc(n, sizeof(*bounds));
	double *compute = gf_xcalloc(n, sizeof(*compute));
	struct gf_bar_series series[] = {
		{.name = "iteration", .values = iterations},
		{.name = "lower bound", .values = bounds},
		{.name = "compute alone", .values = compute},
	};
	struct gf_bars bars = {
		.title = "Predicted iteration by policy",
		.y = {"time", GF_QUANTITY_SECONDS, GF_SCALE_LINEAR, false},
		.groups = groups,
		.ngroups = n,
		.series = series,
		.nseries = 3,
	};
	size_t i;
	int rc;

	for (i = 0; i < n; i++) {
		groups[i] = rows[i].policy->name;
		iterations[i] = rows[i].iteration_s;
		bounds[i] = rows[i].lower_bound_s;
		compute[i] = rows[i].compute_s;
	}
	rc = gf_bars_svg(&bars, svg, err);
	free(groups);
	free(iterations);
	free(bounds);
	free(compute);
	return rc;
}
