/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/run_report.h"

#include <math.h>
#include <stdio.h>

#include "base/heap.h"
#include "runtime/traces/rank_traces.h"
#include "simulator/predict.h"

/* Per rank; a viewer opens some hundred thousand events without effort. */
#define MAX_EVENTS 40000
#define SHOWN_S    1e-6 /* a shorter wait is none */
#define COMPUTE    0    /* thread; lane l is thread 1 + l */

struct drawing {
	const struct gf_plan *plan;
	struct gf_trace *trace;
	double *lane_free_s; /* lanes, on the trace's axis */
	/* What is drawn: one step of one process. */
	int pid;
	const struct gf_step_times *step;
	double shift_s; /* what takes its times to the axis */
};

static void slice(const struct drawing *d, const char *category, const char *name, double from_s,
		  double to_s)
{
	const double start_s = from_s - d->shift_s;

	gf_trace_slice(d->trace, d->pid, COMPUTE, category, name, start_s,
		       to_s - d->shift_s - start_s, NULL);
}

/* Forward waits for what messages of the step before bring; with shards both passes wait for
 * parameters. */
static void draw_late(const struct drawing *d)
{
	const struct gf_step_wait *w = d->step->late;
	const size_t n = d->plan->nmessages;
	char name[64];

	for (size_t i = 0; w && i < 2 * n; i++) {
		if (w[i].end_s <= w[i].start_s)
			continue;
		snprintf(name, sizeof(name), "wait for message %zu", i % n);
		slice(d, "late", name, w[i].start_s, w[i].end_s);
	}
}

static void draw_compute(const struct drawing *d)
{
	const struct gf_model_profile *m = d->plan->model;
	const struct gf_step_times *s = d->step;
	const double updated_s = s->end_s - s->outer_s;
	double from_s = s->forward_s;
	GF_FREED char *name = gf_xasprintf("step %zu", s->step);

	if (s->load_s > SHOWN_S)
		slice(d, "load", "load", s->start_s - s->load_s, s->start_s);
	slice(d, "step", name, s->start_s, s->end_s);
	slice(d, "forward", "forward", s->start_s, s->forward_s);
	draw_late(d);
	slice(d, "backward", "backward", s->forward_s, s->backward_s);
	for (size_t i = 0; i < m->ntensors; i++) {
		slice(d, "backward", m->tensors[i].name, from_s, s->gradient_s[i]);
		from_s = s->gradient_s[i];
		gf_trace_instant(d->trace, d->pid, COMPUTE, "ready", m->tensors[i].name,
				 from_s - d->shift_s);
	}
	if (s->exchanged_s > s->backward_s)
		slice(d, "wait", "wait", s->backward_s, s->exchanged_s);
	slice(d, "update", "update", s->exchanged_s, updated_s);
	if (s->outer_s > SHOWN_S)
		slice(d, "outer", "outer exchange", updated_s, s->end_s);
}

/* The first lane that is free at start_s, else the one that is free first: slices of one thread
 * must not overlap. */
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
static size_t last_with(const struct drawing *d, size_t i)
{
	const struct gf_message_times *t = d->step->messages;
	size_t last = i;

	while (gf_selection_has(&d->plan->selection, GF_SELECT_RECUTS) &&
	       last + 1 < d->plan->nmessages && t[last + 1].place == t[i].place &&
	       t[last + 1].end_s == t[i].end_s)
		last++;
	return last;
}

static size_t bytes_of(const struct drawing *d, size_t i, size_t last)
{
	double bytes = 0;

	if (d->step->messages[i].elems)
		return d->step->messages[i].elems * sizeof(float);
	for (; i <= last; i++)
		bytes += (double)gf_plan_message_bytes(d->plan, i);
	return (size_t)(gf_plan_update_share(d->plan) * bytes);
}

/* The plan's i-th, as `times` have it. */
static void draw_message(const struct drawing *d, size_t i, size_t last, size_t times)
{
	const struct gf_message *m = &d->plan->messages[i];
	const struct gf_message_times *t = &d->step->messages[times];
	const char *half = !gf_shard_is_used(&d->plan->shard) ? ""
			   : times == i                       ? " reduce-scatter"
							      : " all-gather";
	int lane = take_lane(d, t->start_s - d->shift_s);
	double start_s = fmax(t->start_s - d->shift_s, d->lane_free_s[lane]);
	double end_s = t->end_s - d->shift_s;
	GF_FREED char *name = gf_xasprintf("message %zu%s", i, half);
	GF_FREED char *args =
		gf_xasprintf("{\"message\": %zu, \"first\": %zu, \"last\": %zu, \"bytes\": "
			     "%zu, \"algorithm\": \"%s\"}",
			     i, m->first, d->plan->messages[last].last, bytes_of(d, i, last),
			     gf_plan_runs(d->plan, m->first, m->last,
					  &d->plan->messages[t->elems ? t->like : last]));

	if (end_s > start_s) {
		/* what reads traces of messages takes no gathers for them */
		gf_trace_slice(d->trace, d->pid, 1 + lane, times == i ? "message" : "gather", name,
			       start_s, end_s - start_s, args);
		gf_trace_flow(d->trace, d->pid, COMPUTE, t->ready_s - d->shift_s, 1 + lane, start_s,
			      ((size_t)d->pid << 40) + d->step->step * 3 * d->plan->nmessages +
				      times);
		d->lane_free_s[lane] = end_s;
	}
}

/* Both halves of each, by their starts. */
static void draw_halves(const struct drawing *d)
{
	const struct gf_message_times *t = d->step->messages;
	const size_t n = d->plan->nmessages;
	GF_FREED bool *drawn = gf_xcalloc(3 * n, sizeof(*drawn));
	size_t next, i;

	do {
		for (next = i = 0; i < 3 * n; i++)
			if (!drawn[i] && !isnan(t[i].end_s) &&
			    (!next || t[i].start_s < t[next - 1].start_s))
				next = i + 1;
		if (next) {
			drawn[next - 1] = true;
			draw_message(d, (next - 1) % n, (next - 1) % n, next - 1);
		}
	} while (next);
}

static void draw(struct drawing *d, int pid, const struct gf_step_times *s, double shift_s)
{
	const bool synchronous = d->plan->staleness == 1;
	size_t i, last;

	/* stale gradients travel while later steps compute */
	if (synchronous || d->pid != pid)
		for (int lane = 0; lane < d->plan->lanes; lane++)
			d->lane_free_s[lane] = synchronous ? s->start_s - shift_s : -INFINITY;
	d->pid = pid;
	d->step = s;
	d->shift_s = shift_s;
	draw_compute(d);
	if (gf_shard_is_used(&d->plan->shard)) {
		draw_halves(d);
		return;
	}
	for (i = 0; i < d->plan->nmessages && !isnan(s->messages[i].end_s); i = last + 1) {
		last = last_with(d, i);
		draw_message(d, i, last, i);
	}
}

static void draw_names(const struct drawing *d, int pid, const char *process)
{
	gf_trace_process(d->trace, pid, process);
	gf_trace_thread(d->trace, pid, COMPUTE, "compute");
	for (int lane = 0; lane < d->plan->lanes; lane++) {
		GF_FREED char *name = gf_xasprintf("lane %d", lane);

		gf_trace_thread(d->trace, pid, 1 + lane, name);
	}
}

static void draw_alone(const struct drawing *d, int rank, const struct gf_speed_pass *p,
		       double shift_s)
{
	if (p->seconds > 0)
		gf_trace_slice(d->trace, rank, COMPUTE, "alone", "without exchange",
			       p->start_s - shift_s, p->seconds, NULL);
}

/* A predicted step, from its start: compute as messages slow it; where that cannot be said, as the
 * profile has it. The caller frees the arrays. */
static struct gf_step_times step_of(const struct gf_plan *plan,
				    const struct gf_prediction *prediction)
{
	const struct gf_model_profile *m = plan->model;
	const struct gf_fabric fabric = gf_plan_fabric(plan);
	struct gf_sim_result result = {0};
	struct gf_step_times s = {
		.exchanged_s = prediction->iteration_s - gf_plan_update_s(plan),
		.end_s = prediction->iteration_s,
		.gradient_s = gf_xcalloc(m->ntensors, sizeof(double)),
		.messages = gf_xcalloc(3 * plan->nmessages, sizeof(*s.messages)),
	};
	struct gf_error ignored;

	if (gf_predict_gradients(plan, &fabric, &result, s.gradient_s, &ignored)) {
		result.forward_end_s = m->forward_s;
		result.backward_end_s = m->forward_s + m->backward_s;
		for (size_t i = 0; i < m->ntensors; i++)
			s.gradient_s[i] = m->forward_s + m->tensors[i].ready_s;
	}
	s.forward_s = result.forward_end_s;
	s.backward_s = result.backward_end_s;
	for (size_t i = plan->nmessages; i < 3 * plan->nmessages; i++)
		s.messages[i].end_s = NAN; /* a prediction has no gathers */
	for (size_t i = 0; i < plan->nmessages; i++) {
		const struct gf_predicted_message *t = &prediction->messages[i];

		s.messages[i].ready_s = t->ready_s;
		s.messages[i].start_s = t->start_s;
		s.messages[i].end_s = t->end_s;
	}
	return s;
}

static size_t first_shown(const struct gf_plan *plan, const struct gf_timeline *timeline)
{
	size_t per_step = 6 + 2 * plan->model->ntensors + 4 * plan->nmessages;
	size_t count = gf_timeline_count(timeline);
	size_t most = MAX_EVENTS / per_step;

	if (most < 1)
		most = 1;
	return count > most ? count - most : 0;
}

static void draw_rank(struct gf_comm *comm, const struct gf_plan *plan,
		      const struct gf_prediction *prediction, const struct gf_timeline *timeline,
		      const struct gf_speed *speed, double shift_s, struct gf_trace *trace)
{
	size_t i = first_shown(plan, timeline);
	struct drawing d = {
		.plan = plan,
		.trace = trace,
		.lane_free_s = gf_xcalloc((size_t)plan->lanes, sizeof(double)),
		.pid = -1,
	};
	bool predicts = comm->rank == 0 && prediction;
	double predicted_s = -INFINITY;
	struct gf_step_times predicted = {0};
	GF_FREED char *name = gf_xasprintf("rank %d", comm->rank);

	draw_names(&d, comm->rank, name);
	draw_alone(&d, comm->rank, &speed->first, shift_s);
	draw_alone(&d, comm->rank, &speed->last, shift_s);
	if (predicts) {
		draw_names(&d, comm->ranks, "predicted");
		predicted = step_of(plan, prediction);
	}
	for (; i < gf_timeline_count(timeline); i++) {
		const struct gf_step_times *s = gf_timeline_at(timeline, i);

		draw(&d, comm->rank, s, shift_s);
		if (!predicts)
			continue;
		/* where the step began, but not over the one before */
		predicted_s = fmax(predicted_s, s->start_s - shift_s);
		predicted.step = s->step;
		draw(&d, comm->ranks, &predicted, -predicted_s);
		predicted_s += prediction->iteration_s;
	}
	free(predicted.gradient_s);
	free(predicted.messages);
	free(d.lane_free_s);
}

int gf_train_trace(struct gf_comm *comm, const struct gf_plan *plan,
		   const struct gf_prediction *prediction, const struct gf_timeline *timeline,
		   const struct gf_speed *speed, const struct gf_clock_offset *offset, char **text,
		   struct gf_error *err)
{
	GF_RELEASED(gf_trace_release) struct gf_trace own = {0};

	draw_rank(comm, plan, prediction, timeline, speed, gf_trace_shift_s(offset), &own);
	return gf_trace_gather(&own, comm, offset, "gf-train", text, err);
}
