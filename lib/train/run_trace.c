/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/run_log.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/heap.h"
#include "trace/rank_traces.h"
#include "sim/predict.h"

/* Per rank; a viewer opens some hundred thousand events without effort. */
#define MAX_EVENTS 40000
#define SHOWN_S    1e-6 /* a shorter wait is none */
#define COMPUTE    0    /* thread; lane l is thread 1 + l */

/* One step of one process, times on the trace's axis. */
struct picture {
	int pid;
	size_t step;
	double load_s, start_s, forward_s, backward_s, exchanged_s, end_s;
	double outer_s; /* of the end: an outer exchange */
	const double *gradient_s;
	const struct gf_message_times *messages;
	const struct gf_step_wait *late; /* nmessages, or NULL */
	double late_shift_s;             /* what takes its times to the axis */
};

struct drawing {
	const struct gf_plan *plan;
	struct gf_trace *trace;
	double *lane_free_s; /* lanes */
	int *lanes_of;       /* the process that they were last drawn for */
};

/* Forward waits for what messages of the step before bring. */
static void draw_late(const struct drawing *d, const struct picture *p)
{
	char name[64];
	size_t i;

	for (i = 0; p->late && i < d->plan->nmessages; i++) {
		const struct gf_step_wait *w = &p->late[i];

		if (w->end_s <= w->start_s)
			continue;
		snprintf(name, sizeof(name), "wait for message %zu", i);
		gf_trace_slice(d->trace, p->pid, COMPUTE, "late", name,
			       w->start_s - p->late_shift_s,
			       w->end_s - w->start_s, NULL);
	}
}

static void draw_compute(const struct drawing *d, const struct picture *p)
{
	const struct gf_model_profile *m = d->plan->model;
	double from = p->forward_s;
	char *name = gf_xasprintf("step %zu", p->step);
	size_t i;

	if (p->load_s > SHOWN_S)
		gf_trace_slice(d->trace, p->pid, COMPUTE, "load", "load",
			       p->start_s - p->load_s, p->load_s, NULL);
	gf_trace_slice(d->trace, p->pid, COMPUTE, "step", name, p->start_s,
		       p->end_s - p->start_s, NULL);
	free(name);
	gf_trace_slice(d->trace, p->pid, COMPUTE, "forward", "forward",
		       p->start_s, p->forward_s - p->start_s, NULL);
	draw_late(d, p);
	gf_trace_slice(d->trace, p->pid, COMPUTE, "backward", "backward",
		       p->forward_s, p->backward_s - p->forward_s, NULL);
	for (i = 0; i < m->ntensors; i++) {
		gf_trace_slice(d->trace, p->pid, COMPUTE, "backward",
			       m->tensors[i].name, from,
			       p->gradient_s[i] - from, NULL);
		gf_trace_instant(d->trace, p->pid, COMPUTE, "ready",
				 m->tensors[i].name, p->gradient_s[i]);
		from = p->gradient_s[i];
	}
	if (p->exchanged_s > p->backward_s)
		gf_trace_slice(d->trace, p->pid, COMPUTE, "wait", "wait",
			       p->backward_s, p->exchanged_s - p->backward_s,
			       NULL);
	gf_trace_slice(d->trace, p->pid, COMPUTE, "update", "update",
		       p->exchanged_s, p->end_s - p->outer_s - p->exchanged_s,
		       NULL);
	if (p->outer_s > SHOWN_S)
		gf_trace_slice(d->trace, p->pid, COMPUTE, "outer",
			       "outer exchange", p->end_s - p->outer_s,
			       p->outer_s, NULL);
}

/* The first lane that is free at start_s, else the one that is free first:
 * slices of one thread must not overlap. */
static int take_lane(const struct drawing *d, double start_s)
{
	int lane, best = 0;

	for (lane = 0; lane < d->plan->lanes; lane++) {
		if (d->lane_free_s[lane] <= start_s)
			return lane;
		if (d->lane_free_s[lane] < d->lane_free_s[best])
			best = lane;
	}
	return best;
}

/* Messages that are cut anew: the last of the plan that went with the i-th. */
static size_t last_with(const struct drawing *d, const struct picture *p,
			size_t i)
{
	const struct gf_message_times *t = p->messages;
	size_t last = i;

	while (gf_selection_has(&d->plan->selection, GF_SELECT_RECUTS) &&
	       last + 1 < d->plan->nmessages &&
	       t[last + 1].place == t[i].place &&
	       t[last + 1].end_s == t[i].end_s)
		last++;
	return last;
}

static size_t bytes_of(const struct drawing *d, const struct picture *p,
		       size_t i, size_t last)
{
	double bytes = 0;

	if (p->messages[i].elems)
		return p->messages[i].elems * sizeof(float);
	for (; i <= last; i++)
		bytes += (double)gf_plan_message_bytes(d->plan, i);
	return (size_t)(gf_plan_update_share(d->plan) * bytes);
}

static void draw_message(const struct drawing *d, const struct picture *p,
			 size_t i, size_t last)
{
	const struct gf_message *m = &d->plan->messages[i];
	const struct gf_message_times *t = &p->messages[i];
	int lane = take_lane(d, t->start_s);
	double start_s = t->start_s > d->lane_free_s[lane]
				 ? t->start_s
				 : d->lane_free_s[lane];
	char *name = gf_xasprintf("message %zu", i);
	char *args = gf_xasprintf(
		"{\"message\": %zu, \"first\": %zu, \"last\":"
		" %zu, \"bytes\": %zu, \"algorithm\": \"%s\"}",
		i, m->first, d->plan->messages[last].last,
		bytes_of(d, p, i, last),
		gf_plan_runs(d->plan, m->first, m->last,
			     &d->plan->messages[t->elems ? t->like : last]));

	if (t->end_s > start_s) {
		gf_trace_slice(d->trace, p->pid, 1 + lane, "message", name,
			       start_s, t->end_s - start_s, args);
		gf_trace_flow(d->trace, p->pid, COMPUTE, t->ready_s, 1 + lane,
			      start_s,
			      ((size_t)p->pid << 40) +
				      p->step * d->plan->nmessages + i);
		d->lane_free_s[lane] = t->end_s;
	}
	free(name);
	free(args);
}

static void draw(const struct drawing *d, const struct picture *p)
{
	size_t i, last;
	int lane;

	/* stale gradients travel while later steps compute */
	if (*d->lanes_of != p->pid || d->plan->staleness == 1)
		for (lane = 0; lane < d->plan->lanes; lane++)
			d->lane_free_s[lane] = d->plan->staleness == 1
						       ? p->start_s
						       : -INFINITY;
	*d->lanes_of = p->pid;
	draw_compute(d, p);
	for (i = 0; i < d->plan->nmessages && !isnan(p->messages[i].end_s);
	     i = last + 1) {
		last = last_with(d, p, i);
		draw_message(d, p, i, last);
	}
}

static void draw_names(const struct drawing *d, int pid, const char *process)
{
	int lane;

	gf_trace_process(d->trace, pid, process);
	gf_trace_thread(d->trace, pid, COMPUTE, "compute");
	for (lane = 0; lane < d->plan->lanes; lane++) {
		char *name = gf_xasprintf("lane %d", lane);

		gf_trace_thread(d->trace, pid, 1 + lane, name);
		free(name);
	}
}

/* --- measured ------------------------------------------------------------- */

static void draw_measured(const struct drawing *d, int rank,
			  const struct gf_step_times *s, double shift_s)
{
	size_t ntensors = d->plan->model->ntensors, i;
	double *gradient_s = gf_xcalloc(ntensors, sizeof(double));
	struct gf_message_times *messages =
		gf_xcalloc(d->plan->nmessages, sizeof(*messages));
	struct picture p = {
		.pid = rank,
		.step = s->step,
		.load_s = s->load_s,
		.start_s = s->start_s - shift_s,
		.forward_s = s->forward_s - shift_s,
		.backward_s = s->backward_s - shift_s,
		.exchanged_s = s->exchanged_s - shift_s,
		.outer_s = s->outer_s,
		.end_s = s->end_s - shift_s,
		.gradient_s = gradient_s,
		.messages = messages,
		.late = s->late,
		.late_shift_s = shift_s,
	};

	for (i = 0; i < ntensors; i++)
		gradient_s[i] = s->gradient_s[i] - shift_s;
	for (i = 0; i < d->plan->nmessages; i++) {
		messages[i].ready_s = s->messages[i].ready_s - shift_s;
		messages[i].start_s = s->messages[i].start_s - shift_s;
		messages[i].end_s = s->messages[i].end_s - shift_s;
		messages[i].elems = s->messages[i].elems;
		messages[i].like = s->messages[i].like;
		messages[i].place = s->messages[i].place;
	}
	draw(d, &p);
	free(gradient_s);
	free(messages);
}

static void draw_alone(const struct drawing *d, int rank,
		       const struct gf_speed_pass *p, double shift_s)
{
	if (p->seconds > 0)
		gf_trace_slice(d->trace, rank, COMPUTE, "alone",
			       "without exchange", p->start_s - shift_s,
			       p->seconds, NULL);
}

/* --- predicted ------------------------------------------------------------ */

/* A predicted step's compute, from the step's start. */
struct computed {
	double forward_end_s, backward_end_s;
	double *gradient_s; /* owned */
};

/* As messages slow it; where that cannot be said, as the profile has it. */
static struct computed compute_of(const struct gf_plan *plan)
{
	const struct gf_model_profile *m = plan->model;
	const struct gf_fabric fabric = gf_plan_fabric(plan);
	struct gf_sim_result result = {0};
	struct computed c = {.gradient_s =
				     gf_xcalloc(m->ntensors, sizeof(double))};
	struct gf_error ignored;
	size_t i;

	if (gf_predict_gradients(plan, &fabric, &result, c.gradient_s,
				 &ignored) == 0) {
		c.forward_end_s = result.forward_end_s;
		c.backward_end_s = result.backward_end_s;
		return c;
	}
	c.forward_end_s = m->forward_s;
	c.backward_end_s = m->forward_s + m->backward_s;
	for (i = 0; i < m->ntensors; i++)
		c.gradient_s[i] = m->forward_s + m->tensors[i].ready_s;
	return c;
}

static void draw_predicted(const struct drawing *d, int pid,
			   const struct gf_prediction *prediction,
			   const struct computed *c, size_t step, double at_s)
{
	const struct gf_model_profile *m = d->plan->model;
	size_t i;
	double *gradient_s = gf_xcalloc(m->ntensors, sizeof(double));
	struct gf_message_times *messages =
		gf_xcalloc(d->plan->nmessages, sizeof(*messages));
	struct picture p = {
		.pid = pid,
		.step = step,
		.start_s = at_s,
		.forward_s = at_s + c->forward_end_s,
		.backward_s = at_s + c->backward_end_s,
		.exchanged_s = at_s + prediction->iteration_s -
			       gf_plan_update_s(d->plan),
		.end_s = at_s + prediction->iteration_s,
		.gradient_s = gradient_s,
		.messages = messages,
	};

	for (i = 0; i < m->ntensors; i++)
		gradient_s[i] = at_s + c->gradient_s[i];
	for (i = 0; i < d->plan->nmessages; i++) {
		const struct gf_predicted_message *t = &prediction->messages[i];

		messages[i].ready_s = at_s + t->ready_s;
		messages[i].start_s = at_s + t->start_s;
		messages[i].end_s = at_s + t->end_s;
	}
	draw(d, &p);
	free(gradient_s);
	free(messages);
}

/* --- all together --------------------------------------------------------- */

static size_t first_shown(const struct gf_plan *plan,
			  const struct gf_timeline *timeline)
{
	size_t per_step = 6 + 2 * plan->model->ntensors + 4 * plan->nmessages;
	size_t count = gf_timeline_count(timeline);
	size_t most = MAX_EVENTS / per_step;

	if (most < 1)
		most = 1;
	return count > most ? count - most : 0;
}

static void draw_rank(struct gf_comm *comm, const struct gf_plan *plan,
		      const struct gf_prediction *prediction,
		      const struct gf_timeline *timeline,
		      const struct gf_speed *speed, double shift_s,
		      struct gf_trace *trace)
{
	size_t i = first_shown(plan, timeline);
	int lanes_of = -1;
	struct drawing d = {
		.plan = plan,
		.trace = trace,
		.lane_free_s = gf_xcalloc((size_t)plan->lanes, sizeof(double)),
		.lanes_of = &lanes_of,
	};
	bool predicts = comm->rank == 0 && prediction;
	double predicted_s = -INFINITY;
	struct computed computed = {0};
	char *name = gf_xasprintf("rank %d", comm->rank);

	draw_names(&d, comm->rank, name);
	draw_alone(&d, comm->rank, &speed->first, shift_s);
	draw_alone(&d, comm->rank, &speed->last, shift_s);
	if (predicts) {
		draw_names(&d, comm->ranks, "predicted");
		computed = compute_of(plan);
	}
	for (; i < gf_timeline_count(timeline); i++) {
		const struct gf_step_times *s = gf_timeline_at(timeline, i);

		draw_measured(&d, comm->rank, s, shift_s);
		if (!predicts)
			continue;
		/* where the step began, but not over the one before */
		predicted_s = fmax(predicted_s, s->start_s - shift_s);
		draw_predicted(&d, comm->ranks, prediction, &computed, s->step,
			       predicted_s);
		predicted_s += prediction->iteration_s;
	}
	free(name);
	free(computed.gradient_s);
	free(d.lane_free_s);
}

int gf_train_trace(struct gf_comm *comm, const struct gf_plan *plan,
		   const struct gf_prediction *prediction,
		   const struct gf_timeline *timeline,
		   const struct gf_speed *speed,
		   const struct gf_clock_offset *offset, char **text,
		   struct gf_error *err)
{
	struct gf_trace own = {0};
	int rc;

	draw_rank(comm, plan, prediction, timeline, speed,
		  gf_trace_shift_s(offset), &own);
	rc = gf_trace_gather(&own, comm, offset, "gf-train", text, err);
	gf_trace_release(&own);
	return rc;
}
