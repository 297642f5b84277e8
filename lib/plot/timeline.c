/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "plot/gantt.h"
#include "plot/ticks.h"

static void add(struct gf_gantt *g, double start_s, double end_s,
		enum gf_bar_kind kind, const char *name)
{
	char text[24], *label;

	if (!(end_s > start_s))
		return;
	gf_quantity_print(GF_QUANTITY_SECONDS, end_s - start_s, text);
	label = gf_xasprintf("%s %s", name, text);
	gf_gantt_bar(g,
		     &(struct gf_gantt_bar){start_s, end_s, kind, label, text});
	free(label);
}

static void mark(struct gf_gantt *g, double at_s, const char *name)
{
	char text[24], *label;

	gf_quantity_print(GF_QUANTITY_SECONDS, at_s, text);
	label = gf_xasprintf("%s %s", name, text);
	gf_gantt_mark(g, at_s, label);
	free(label);
}

static void compute_row(struct gf_gantt *g, const struct gf_model_profile *m,
			const struct gf_plot_times *t)
{
	double update_start =
		fmax(t->iteration_s - m->update_s, t->backward_end_s);

	double forward_end =
		t->forward_end_s > 0 ? t->forward_end_s : m->forward_s;

	gf_gantt_row(g, "compute");
	add(g, 0, forward_end, GF_BAR_FORWARD, "forward");
	add(g, forward_end, t->backward_end_s, GF_BAR_BACKWARD, "backward");
	add(g, t->backward_end_s, update_start, GF_BAR_WAIT, "waiting");
	add(g, update_start, t->iteration_s, GF_BAR_UPDATE, "update");
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

static void message_bar(struct gf_gantt *g, const struct gf_plan *p, size_t i,
			const struct gf_predicted_message *t)
{
	const struct gf_message *m = &p->messages[i];
	const struct gf_tensor *tensors = p->model->tensors;
	enum gf_bar_kind kind = m->half == GF_HALF_SPLIT ? GF_BAR_REDUCE_SCATTER
				: m->mode == GF_MODE_SIMULTANEOUS
					? GF_BAR_SIMULTANEOUS
					: GF_BAR_NORMAL;
	char size[24], *label, *brief;

	gf_quantity_print(GF_QUANTITY_BYTES,
			  (double)gf_plan_message_bytes(p, i), size);
	if (m->first == m->last) {
		label = gf_xasprintf("%s (%s)", tensors[m->first].name, size);
		brief = gf_xasprintf("%zu", m->first);
	} else {
		label = gf_xasprintf("%s to %s (%s)", tensors[m->first].name,
				     tensors[m->last].name, size);
		brief = gf_xasprintf("%zu-%zu", m->first, m->last);
	}
	gf_gantt_bar(g, &(struct gf_gantt_bar){t->start_s, t->end_s, kind,
					       label, brief});
	free(label);
	free(brief);
}

void gf_gantt_iteration(struct gf_gantt *g, const char *title,
			const struct gf_plan *plan,
			const struct gf_plot_times *times)
{
	size_t *lane = gf_xcalloc(plan->nmessages + 1, sizeof(*lane));
	size_t lanes = assign_lanes(times->messages, plan->nmessages, lane);
	size_t i, k;

	gf_gantt_panel(g, title);
	compute_row(g, plan->model, times);
	for (k = 0; k < lanes; k++) {
		char *name = lanes == 1 ? gf_xstrdup("network")
					: gf_xasprintf("lane %zu", k + 1);

		gf_gantt_row(g, name);
		free(name);
		for (i = 0; i < plan->nmessages; i++)
			if (lane[i] == k)
				message_bar(g, plan, i, &times->messages[i]);
	}
	mark(g, times->backward_end_s, "backward ends");
	mark(g, times->iteration_s, "iteration");
	free(lane);
}
