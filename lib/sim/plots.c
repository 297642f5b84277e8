/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plots.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/heap.h"
#include "sim/rows.h"

static void title(const struct gf_plan *p, struct gf_plot *plot)
{
	gf_plot_text(plot, "title", "%s, policy %s", p->model->name,
		     p->policy ? p->policy : "of the plan");
}

/* A bar of one row; the messages' own columns stay empty. */
static void bar(struct gf_text *csv, const char *row, const char *kind,
		double start_s, double end_s)
{
	if (!(end_s > start_s))
		return;
	gf_text_addf(csv, "%s,%s,%s,,", row, kind, kind);
	gf_plot_cell(csv, start_s);
	gf_plot_cell(csv, end_s);
	gf_text_addf(csv, "\n");
}

static void mark(struct gf_text *csv, const char *name, double at_s)
{
	gf_text_addf(csv, ",mark,%s,,", name);
	gf_plot_cell(csv, at_s);
	gf_plot_cell(csv, at_s);
	gf_text_addf(csv, "\n");
}

/* The lowest lane that is free when each message starts; messages start in
 * plan order. Returns how many lanes that takes. */
static size_t assign_lanes(const struct gf_predicted_message *m, size_t count,
			   size_t *lane)
{
	double *free_at = gf_xcalloc(count + 1, sizeof(*free_at));
	size_t i, k, lanes = 0;

	for (i = 0; i < count; i++) {
		/* ends and starts that meet differ by rounding */
		double start = m[i].start_s * (1 + 1e-12);

		for (k = 0; k < lanes && free_at[k] > start; k++)
			;
		lanes += k == lanes;
		lane[i] = k;
		free_at[k] = m[i].end_s;
	}
	free(free_at);
	return lanes;
}

static void message(struct gf_text *csv, const struct gf_plan *p, size_t i,
		    const struct gf_predicted_message *at)
{
	const struct gf_message *m = &p->messages[i];
	const struct gf_tensor *tensors = p->model->tensors;
	const char *kind = m->half == GF_HALF_SPLIT          ? "halves"
			   : m->mode == GF_MODE_SIMULTANEOUS ? "simultaneous"
							     : "message";
	char *name = m->first == m->last
			     ? gf_xstrdup(tensors[m->first].name)
			     : gf_xasprintf("%s to %s", tensors[m->first].name,
					    tensors[m->last].name);

	gf_text_addf(csv, ",%s,", kind);
	gf_plot_label(csv, name);
	if (m->first == m->last)
		gf_text_addf(csv, ",%zu", m->first);
	else
		gf_text_addf(csv, ",%zu-%zu", m->first, m->last);
	gf_text_addf(csv, ",%zu", gf_plan_message_bytes(p, i));
	gf_plot_cell(csv, at->start_s);
	gf_plot_cell(csv, at->end_s);
	gf_text_addf(csv, "\n");
	free(name);
}

static void timeline(const struct gf_plan *p, const struct gf_timeline *t,
		     struct gf_text *csv)
{
	size_t *lane = gf_xcalloc(p->nmessages + 1, sizeof(*lane));
	size_t lanes = assign_lanes(t->messages, p->nmessages, lane), i, k;
	const struct gf_model_profile *m = p->model;
	double update_s = fmax(t->iteration_s - m->update_s, t->backward_end_s);
	double forward_end_s =
		t->forward_end_s > 0 ? t->forward_end_s : m->forward_s;

	gf_text_addf(csv, "row,kind,name,tensors,bytes,start_s,end_s\n");
	bar(csv, "compute", "forward", 0, forward_end_s);
	bar(csv, "compute", "backward", forward_end_s, t->backward_end_s);
	bar(csv, "compute", "waiting", t->backward_end_s, update_s);
	bar(csv, "compute", "update", update_s, t->iteration_s);
	for (k = 0; k < lanes; k++)
		for (i = 0; i < p->nmessages; i++) {
			if (lane[i] != k)
				continue;
			if (lanes == 1)
				gf_text_addf(csv, "network");
			else
				gf_text_addf(csv, "lane %zu", k + 1);
			message(csv, p, i, &t->messages[i]);
		}
	mark(csv, "backward ends", t->backward_end_s);
	mark(csv, "iteration", t->iteration_s);
	free(lane);
}

void gf_iteration_plot(const struct gf_plan *p, const struct gf_timeline *t,
		       int ranks, const char *how, struct gf_plot *plot)
{
	plot->script = "gantt";
	title(p, plot);
	gf_plot_text(plot, "subtitle", "%d rank%s, %zu message%s, %s", ranks,
		     ranks == 1 ? "" : "s", p->nmessages,
		     p->nmessages == 1 ? "" : "s", how);
	timeline(p, t, &plot->csv);
}

static void speedups(const struct gf_outcome *o, struct gf_plot *plot)
{
	gf_plot_text(plot, "x", "ranks");
	gf_plot_text(plot, "y", "speedup");
	gf_plot_text(plot, "ylabel", "speed-up");
	gf_plot_number(plot, "xlog", 2);
	gf_plot_number(plot, "ylog", 2);
	gf_plot_text(plot, "reference", "linear");
	gf_plot_number(plot, "slope", 1);
	if (o->bandwidth_bytes_per_s > 0) {
		gf_plot_text(plot, "series", "bandwidth_bytes_per_s");
		gf_plot_text(plot, "series_unit", "b/s");
	}
}

static void over_bandwidth(const struct gf_outcome *o, struct gf_plot *plot)
{
	gf_plot_text(plot, "x", "bandwidth_bytes_per_s");
	gf_plot_text(plot, "xlabel", "bandwidth");
	gf_plot_text(plot, "xunit", "b/s");
	gf_plot_number(plot, "xlog", 10);
	gf_plot_text(plot, "y", "iteration_s");
	gf_plot_text(plot, "ylabel", "iteration");
	gf_plot_text(plot, "yunit", "s");
	gf_plot_text(plot, "reference", "compute alone");
	gf_plot_number(plot, "level", o->compute_s);
}

void gf_outcomes_plot(const struct gf_plan *p,
		      const struct gf_outcome *outcomes, size_t n,
		      struct gf_plot *plot)
{
	const struct gf_outcome *o = outcomes;
	struct gf_row_choice choice = {.bandwidth =
					       o->bandwidth_bytes_per_s > 0};
	bool ranks_vary = false;
	size_t i;

	if (n == 1) {
		struct gf_timeline t = {
			.forward_end_s = o->forward_end_s,
			.backward_end_s = o->backward_end_s,
			.iteration_s = o->compute_s + o->exposed_comm_s,
			.messages = o->messages,
		};

		gf_iteration_plot(p, &t, o->ranks, "simulated", plot);
		return;
	}
	for (i = 1; i < n; i++)
		ranks_vary |= o[i].ranks != o->ranks;
	plot->script = "curves";
	title(p, plot);
	if (ranks_vary)
		speedups(o, plot);
	else
		over_bandwidth(o, plot);
	gf_outcomes_csv(p, outcomes, n, &choice, &plot->csv);
}
