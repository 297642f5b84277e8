/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plots.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"

static char *title_of(const struct gf_plan *p)
{
	return gf_xasprintf("%s, policy %s", p->model->name,
			    p->policy ? p->policy : "of the plan");
}

int gf_iteration_svg(const struct gf_plan *p, const struct gf_plot_times *times,
		     const char *how, char **svg, struct gf_error *err)
{
	struct gf_gantt g = {0};
	char *title = title_of(p);
	int rc;

	gf_gantt_title(&g, title, how);
	gf_gantt_iteration(&g, NULL, p, times);
	rc = gf_gantt_svg(&g, svg, err);
	gf_gantt_release(&g);
	free(title);
	return rc;
}

static int gantt(const struct gf_plan *p, const struct gf_outcome *o,
		 char **svg, struct gf_error *err)
{
	struct gf_plot_times times = {
		.forward_end_s = o->forward_end_s,
		.backward_end_s = o->backward_end_s,
		.iteration_s = o->compute_s + o->exposed_comm_s,
		.messages = o->messages,
	};
	char *how = gf_xasprintf("%d rank%s, %zu message%s, simulated",
				 o->ranks, o->ranks == 1 ? "" : "s",
				 p->nmessages, p->nmessages == 1 ? "" : "s");
	int rc = gf_iteration_svg(p, &times, how, svg, err);

	free(how);
	return rc;
}

/* One curve: the outcomes of one bandwidth. */
struct curve {
	double bandwidth;
	char name[64];
	double *x, *y;
	size_t count;
};

static struct curve *curve_of(struct curve *curves, size_t *ncurves,
			      double bandwidth, size_t room)
{
	struct curve *c;
	size_t i;

	for (i = 0; i < *ncurves; i++)
		if (curves[i].bandwidth == bandwidth)
			return &curves[i];
	c = &curves[(*ncurves)++];
	c->bandwidth = bandwidth;
	c->x = gf_xcalloc(room, sizeof(*c->x));
	c->y = gf_xcalloc(room, sizeof(*c->y));
	if (bandwidth > 0)
		snprintf(c->name, sizeof(c->name), "%.4g Gb/s",
			 bandwidth * 8 / 1e9);
	else
		snprintf(c->name, sizeof(c->name), "simulated");
	return c;
}

/* Kept in ascending x, as a line wants it. */
static void add(struct curve *c, double x, double y)
{
	size_t i = c->count++;

	for (; i > 0 && c->x[i - 1] > x; i--) {
		c->x[i] = c->x[i - 1];
		c->y[i] = c->y[i - 1];
	}
	c->x[i] = x;
	c->y[i] = y;
}

static int scaling(const struct gf_plan *p, const struct gf_outcome *o,
		   size_t n, char **svg, struct gf_error *err)
{
	struct curve *curves = gf_xcalloc(n + 1, sizeof(*curves));
	struct gf_series *series = gf_xcalloc(n + 1, sizeof(*series));
	struct gf_chart chart = {
		.x = {"ranks", GF_QUANTITY_NUMBER, GF_SCALE_LOG2, false},
		.y = {"speed-up", GF_QUANTITY_NUMBER, GF_SCALE_LOG2, false},
		.series = series,
	};
	char *title = title_of(p);
	struct curve *ideal;
	size_t ncurves = 0, i;
	int rc;

	for (i = 0; i < n; i++)
		add(curve_of(curves, &ncurves, o[i].bandwidth_bytes_per_s, n),
		    o[i].ranks, o[i].speedup);
	ideal = curve_of(curves, &ncurves, -1, n);
	for (i = 0; i < n; i++)
		add(ideal, o[i].ranks, o[i].ranks);
	snprintf(ideal->name, sizeof(ideal->name), "linear");
	for (i = 0; i < ncurves; i++)
		series[i] = (struct gf_series){
			.name = curves[i].name,
			.style = &curves[i] == ideal ? GF_SERIES_IDEAL
						     : GF_SERIES_LINE_MARKERS,
			.x = curves[i].x,
			.y = curves[i].y,
			.count = curves[i].count,
		};
	chart.title = title;
	chart.nseries = ncurves;
	rc = gf_chart_svg(&chart, svg, err);
	for (i = 0; i < ncurves; i++) {
		free(curves[i].x);
		free(curves[i].y);
	}
	free(title);
	free(series);
	free(curves);
	return rc;
}

static int over_bandwidth(const struct gf_plan *p, const struct gf_outcome *o,
			  size_t n, char **svg, struct gf_error *err)
{
	struct curve *curves = gf_xcalloc(2, sizeof(*curves)), *c;
	char *title = title_of(p);
	size_t ncurves = 0, i;
	struct gf_series series[2];
	double compute[2], ends[2];
	struct gf_chart chart = {
		.title = title,
		.x = {"bandwidth", GF_QUANTITY_RATE, GF_SCALE_LOG10, false},
		.y = {"iteration", GF_QUANTITY_SECONDS, GF_SCALE_LINEAR, false},
		.series = series,
		.nseries = 2,
	};
	int rc;

	c = curve_of(curves, &ncurves, 0, n);
	for (i = 0; i < n; i++)
		add(c, o[i].bandwidth_bytes_per_s, o[i].iteration_s);
	series[0] = (struct gf_series){.name = c->name,
				       .style = GF_SERIES_LINE_MARKERS,
				       .x = c->x,
				       .y = c->y,
				       .count = c->count};
	compute[0] = compute[1] = o[0].compute_s;
	ends[0] = c->x[0];
	ends[1] = c->x[c->count - 1];
	series[1] = (struct gf_series){.name = "compute alone",
				       .style = GF_SERIES_IDEAL,
				       .x = ends,
				       .y = compute,
				       .count = 2};
	rc = gf_chart_svg(&chart, svg, err);
	free(c->x);
	free(c->y);
	free(curves);
	free(title);
	return rc;
}

int gf_outcomes_svg(const struct gf_plan *p, const struct gf_outcome *outcomes,
		    size_t n, char **svg, struct gf_error *err)
{
	size_t i;

	if (n == 1)
		return gantt(p, &outcomes[0], svg, err);
	for (i = 1; i < n; i++)
		if (outcomes[i].ranks != outcomes[0].ranks)
			return scaling(p, outcomes, n, svg, err);
	return over_bandwidth(p, outcomes, n, svg, err);
}
