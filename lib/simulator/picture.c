/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/step_listing.h"

#include <math.h>
#include <stdlib.h>

#include "base/heap.h"

#define COMPUTE 0 /* thread; lane l is thread 1 + l */

static void slice(struct gf_trace *t, int pid, const char *name, double from_s, double to_s)
{
	if (to_s > from_s)
		gf_trace_slice(t, pid, COMPUTE, name, name, from_s, to_s - from_s, NULL);
}

/* If overlap slows backward, the delay is spread evenly over it, because the step model keeps the
 * messages' times only. */
static double ready_s(const struct gf_plan *p, const struct gf_outcome *o, size_t tensor)
{
	double work = p->model->backward_s, done;

	if (work <= 0)
		return o->forward_end_s;
	done = p->model->tensors[tensor].ready_s / work;
	return o->forward_end_s + done * (o->backward_end_s - o->forward_end_s);
}

/* How long forward takes where it waits for nothing, on the slowest rank. */
static double forward_s(const struct gf_plan *p, const struct gf_outcome *o)
{
	const struct gf_model_profile *m = p->model;
	double passes = m->forward_s + m->backward_s, factor = 1;

	if (passes > 0 && o->slowest_s > 0)
		factor = (o->slowest_s - gf_plan_update_s(p)) / passes;
	return fmin(factor * m->forward_s, o->forward_end_s);
}

static void draw_compute(const struct gf_plan *p, const struct gf_outcome *o, int pid,
			 struct gf_trace *t)
{
	double update_s = o->iteration_s - gf_plan_update_s(p);
	size_t i;

	slice(t, pid, "forward", 0, o->forward_end_s);
	/* for what messages of the step before bring; where, is not known */
	slice(t, pid, "late", forward_s(p, o), o->forward_end_s);
	slice(t, pid, "backward", o->forward_end_s, o->backward_end_s);
	slice(t, pid, "wait", o->backward_end_s, update_s);
	slice(t, pid, "update", update_s, o->iteration_s);
	for (i = 0; i < p->model->ntensors; i++)
		gf_trace_instant(t, pid, COMPUTE, "ready", p->model->tensors[i].name,
				 ready_s(p, o, i));
}

static void draw_messages(const struct gf_plan *p, const struct gf_outcome *o, int pid,
			  struct gf_trace *t)
{
	size_t *lane = gf_xcalloc(p->nmessages + 1, sizeof(*lane));
	size_t lanes = gf_lanes_assign(o->messages, p->nmessages, lane), i;

	for (i = 0; i < lanes; i++) {
		char *row = gf_xasprintf("lane %zu", i);

		gf_trace_thread(t, pid, (int)i + 1, row);
		free(row);
	}
	for (i = 0; i < p->nmessages; i++) {
		const struct gf_message *m = &p->messages[i];
		const struct gf_predicted_message *at = &o->messages[i];
		char *name = gf_xasprintf("message %zu", i);
		char *args = gf_xasprintf("{\"message\": %zu, \"first\": %zu, \"last\": %zu, "
					  "\"bytes\": %zu, \"algorithm\": \"%s\"}",
					  i, m->first, m->last, gf_plan_message_bytes(p, i),
					  gf_plan_runs(p, m->first, m->last, m));

		gf_trace_slice(t, pid, (int)lane[i] + 1, "message", name, at->start_s,
			       at->end_s - at->start_s, args);
		free(name);
		free(args);
	}
	free(lane);
}

void gf_outcome_trace(const struct gf_plan *p, const struct gf_outcome *o, int pid,
		      const char *name, struct gf_trace *trace)
{
	gf_trace_process(trace, pid, name);
	gf_trace_thread(trace, pid, COMPUTE, "compute");
	draw_compute(p, o, pid, trace);
	draw_messages(p, o, pid, trace);
}

char *gf_outcome_trace_text(const struct gf_plan *p, const struct gf_outcome *o)
{
	struct gf_trace trace = {0};
	char *text;

	gf_outcome_trace(p, o, 0, "simulated", &trace);
	text = gf_trace_finish(&trace, "{\"producer\": \"gf-sim " GF_VERSION "\"}");
	gf_trace_release(&trace);
	return text;
}
