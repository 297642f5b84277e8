/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/step_listing.h"

#include <math.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/human.h"
#include "cli/table.h"
#include "collectives/way.h"

/* --- pictures -------------------------------------------------------------- */

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

	slice(t, pid, "forward", 0, o->forward_end_s);
	/* for what messages of the step before bring; where, is not known */
	slice(t, pid, "late", forward_s(p, o), o->forward_end_s);
	slice(t, pid, "backward", o->forward_end_s, o->backward_end_s);
	slice(t, pid, "wait", o->backward_end_s, update_s);
	slice(t, pid, "update", update_s, o->iteration_s);
	for (size_t i = 0; i < p->model->ntensors; i++)
		gf_trace_instant(t, pid, COMPUTE, "ready", p->model->tensors[i].name,
				 ready_s(p, o, i));
}

static void draw_messages(const struct gf_plan *p, const struct gf_outcome *o, int pid,
			  struct gf_trace *t)
{
	GF_FREED size_t *lane = gf_xcalloc(p->nmessages + 1, sizeof(*lane));
	size_t lanes = gf_lanes_assign(o->messages, p->nmessages, lane), i;

	for (i = 0; i < lanes; i++) {
		GF_FREED char *row = gf_xasprintf("lane %zu", i);

		gf_trace_thread(t, pid, (int)i + 1, row);
	}
	for (i = 0; i < p->nmessages; i++) {
		const struct gf_message *m = &p->messages[i];
		const struct gf_predicted_message *at = &o->messages[i];
		GF_FREED char *name = gf_xasprintf("message %zu", i);
		GF_FREED char *args =
			gf_xasprintf("{\"message\": %zu, \"first\": %zu, \"last\": %zu, "
				     "\"bytes\": %zu, \"algorithm\": \"%s\"}",
				     i, m->first, m->last, gf_plan_message_bytes(p, i),
				     gf_plan_runs(p, m->first, m->last, m));

		gf_trace_slice(t, pid, (int)lane[i] + 1, "message", name, at->start_s,
			       at->end_s - at->start_s, args);
	}
}

/* One simulated iteration, drawn as gf-train draws measured ones: compute is on thread 0. Message
 * slices are on the lanes' threads. An instant marks when each tensor is ready. */
static void draw_outcome(const struct gf_plan *p, const struct gf_outcome *o, int pid,
			 const char *name, struct gf_trace *trace)
{
	gf_trace_process(trace, pid, name);
	gf_trace_thread(trace, pid, COMPUTE, "compute");
	draw_compute(p, o, pid, trace);
	draw_messages(p, o, pid, trace);
}

/* A table for people has no more rows of steps than that. */
enum { STEP_ROWS = 200 };

static const char *const op_names[] = {
	[GF_STEP_SEND] = "send",   [GF_STEP_RECV] = "recv",
	[GF_STEP_COPY] = "copy",   [GF_STEP_RECV_REDUCE] = "recv-reduce",
	[GF_STEP_ROUND] = "round", [GF_STEP_REDUCE] = "reduce",
};

/* The algorithm of the step's stage, else of its message. */
static const char *step_by(const struct gf_plan *p, const struct gf_replayed *r, size_t message,
			   const struct gf_step *step)
{
	const struct gf_replayed_message *m = &r->messages[message];
	const struct gf_message *as = gf_traffic_like(p, m->plan_message);
	const char *name = gf_plan_runs(p, m->first, m->last, as), *stage;
	struct gf_way way;

	if (name != as->algorithm || gf_way_of_message(as, &way, NULL) < 0)
		return name;
	stage = gf_way_stage_at(&way, step->stage);
	return stage ? stage : name;
}

static size_t steps_of(const struct gf_replayed *r, size_t message, int rank)
{
	return r->messages[message].ranks[rank].nsteps;
}

struct gf_listed_step gf_listed_step(const struct gf_plan *p, const struct gf_replayed *r,
				     size_t message, int rank, size_t i)
{
	const struct gf_replayed_message *m = &r->messages[message];
	const struct gf_step *is = &m->ranks[rank].steps[i];

	return (struct gf_listed_step){
		.message = message,
		.step = i,
		.rank = rank,
		.by = step_by(p, r, message, is),
		.is = is,
		.bytes = gf_replay_bytes(&m->element, is->range.count),
		.at = r->times.steps[message][rank][i],
	};
}

/* --- text -------------------------------------------------------------------
 */

/* NULL: it is none of the plan's. */
static const struct gf_predicted_message *model_of(const struct gf_plan *p,
						   const struct gf_replayed *r, size_t i)
{
	size_t message = r->messages[i].plan_message;

	return message < p->nmessages ? &r->model.messages[message] : NULL;
}

static void step_cells(struct gf_table *t, const struct gf_listed_step *row)
{
	const struct gf_range *range = &row->is->range;

	gf_table_cells(t, "%zu\t%d\t%s\t%s", row->message, row->rank, row->by,
		       op_names[row->is->op]);
	if (row->is->peer >= 0)
		gf_table_cell(t, "%d", row->is->peer);
	else
		gf_table_cell(t, "-");
	gf_table_cells(t, "%s %zu-%zu\t%.0f\t%s\t%s", gf_buffer_name(range->buffer), range->first,
		       range->first + range->count - 1, row->bytes,
		       gf_human_time(row->at.start_s).text, gf_human_time(row->at.end_s).text);
}

static void messages_text(const struct gf_plan *p, const struct gf_replayed *r, size_t window,
			  struct gf_text *out)
{
	GF_RELEASED(gf_table_release) struct gf_table t = {0};

	gf_table_cells(&t,
		       "message\ttensors\tbytes\talgorithm\tstart\tend\tmodel start\tmodel end");
	for (size_t i = 0; i < r->nmessages; i++) {
		const struct gf_replayed_message *m = &r->messages[i];
		const struct gf_predicted_message *model = model_of(p, r, i);
		GF_FREED char *way = gf_plan_runs_text(p, m->first, m->last,
						       gf_traffic_like(p, m->plan_message));

		gf_table_cells(&t, "%zu\t%zu-%zu\t%zu\t%s\t%s\t%s\t%s\t%s", i, m->first, m->last,
			       m->bytes, way, gf_human_time(r->times.message_start_s[i]).text,
			       gf_human_time(r->times.message_end_s[i]).text,
			       model ? gf_human_time(model->start_s).text : "",
			       model ? gf_human_time(model->end_s).text : "");
	}
	gf_table_print_in(&t, window, out);
}

static void steps_text(const struct gf_plan *p, const struct gf_replayed *r, size_t window,
		       struct gf_text *out)
{
	GF_RELEASED(gf_table_release) struct gf_table t = {0};

	gf_table_cells(&t, "message\trank\tby\tstep\tpeer\telements\tbytes\tstart\tend");
	for (size_t message = 0; message < r->nmessages; message++)
		for (int rank = 0; rank < r->ranks; rank++)
			for (size_t i = 0; i < steps_of(r, message, rank); i++) {
				struct gf_listed_step row = gf_listed_step(p, r, message, rank, i);

				step_cells(&t, &row);
			}
	gf_table_print_in(&t, window, out);
}

/* All steps of one kind in a stage of a message. */
struct kind {
	const char *by;
	size_t steps;
	double bytes, start_s, end_s;
};

enum { OPS = GF_ARRAY_LENGTH(op_names) };

static void add_to_kind(struct kind *kinds, const struct gf_listed_step *row)
{
	struct kind *k = kinds + row->is->stage * OPS + (size_t)row->is->op;

	if (!k->steps++)
		k->start_s = row->at.start_s;
	k->by = row->by;
	k->bytes += row->bytes;
	k->start_s = fmin(k->start_s, row->at.start_s);
	k->end_s = fmax(k->end_s, row->at.end_s);
}

static void kind_row(struct gf_table *t, size_t message, size_t op, const struct kind *k)
{
	gf_table_cells(t, "%zu\t%s\t%s\t%zu\t%s\t%s\t%s", message, k->by, op_names[op], k->steps,
		       gf_human_size(k->bytes).text, gf_human_time(k->start_s).text,
		       gf_human_time(k->end_s).text);
}

/* Too many steps to read one by one: a row for those of a kind. */
static void kinds_text(const struct gf_plan *p, const struct gf_replayed *r, size_t nsteps,
		       size_t window, struct gf_text *out)
{
	GF_RELEASED(gf_table_release) struct gf_table t = {0};

	gf_table_cells(&t, "message\tby\tstep\tsteps\tbytes\tfirst start\tlast end");
	for (size_t message = 0; message < r->nmessages; message++) {
		struct kind kinds[GF_WAY_FACTORS * OPS] = {{0}};

		for (int rank = 0; rank < r->ranks; rank++)
			for (size_t i = 0; i < steps_of(r, message, rank); i++) {
				struct gf_listed_step row = gf_listed_step(p, r, message, rank, i);

				add_to_kind(kinds, &row);
			}
		for (size_t i = 0; i < GF_ARRAY_LENGTH(kinds); i++)
			if (kinds[i].steps)
				kind_row(&t, message, i % OPS, &kinds[i]);
	}
	gf_table_print_in(&t, window, out);
	gf_table_note(window, out, "%zu steps of %d ranks: --trace has each", nsteps, r->ranks);
}

void gf_steps_table(const struct gf_plan *p, const struct gf_replayed *r, size_t window,
		    struct gf_text *out)
{
	size_t nsteps = 0, message;

	gf_table_note(window, out, "a training step takes %s by replay, %s by the step model\n",
		      gf_human_time(r->outcome.iteration_s).text,
		      gf_human_time(r->model.iteration_s).text);
	messages_text(p, r, window, out);
	gf_text_addf(out, "\n");
	for (message = 0; message < r->nmessages; message++)
		for (int rank = 0; rank < r->ranks; rank++)
			nsteps += steps_of(r, message, rank);
	if (nsteps > STEP_ROWS)
		kinds_text(p, r, nsteps, window, out);
	else
		steps_text(p, r, window, out);
}

/* --- trace ---------------------------------------------------------------- */

/* Slices of one thread follow each other: a rank's steps take the first thread of their kind that
 * is free. */
struct threads {
	struct gf_trace *trace;
	int rank, used; /* of this rank; 0 is compute */
	double *free_s;
	const char **kinds;
	size_t capacity;
};

static int thread_for(struct threads *t, const char *kind, double start_s)
{
	for (int i = 1; i <= t->used; i++)
		if (t->kinds[i] == kind && t->free_s[i] <= start_s)
			return i;
	t->used++;
	if ((size_t)t->used >= t->capacity) {
		t->capacity = t->capacity * 2 + 8;
		t->free_s = gf_xreallocarray(t->free_s, t->capacity, sizeof(*t->free_s));
		t->kinds = gf_xreallocarray(t->kinds, t->capacity, sizeof(*t->kinds));
	}
	t->kinds[t->used] = kind;
	t->free_s[t->used] = 0;
	gf_trace_thread(t->trace, t->rank + 1, t->used, kind);
	return t->used;
}

static const char *kind_of(enum gf_step_op op)
{
	return op == GF_STEP_SEND                                ? "sends"
	       : op == GF_STEP_RECV || op == GF_STEP_RECV_REDUCE ? "receives"
								 : "local";
}

static void step_slice(struct threads *t, const struct gf_listed_step *row)
{
	int thread = thread_for(t, kind_of(row->is->op), row->at.start_s);
	GF_FREED char *name = NULL, *args = NULL;

	name = row->is->peer >= 0 ? gf_xasprintf("%s %d", op_names[row->is->op], row->is->peer)
				  : gf_xstrdup(op_names[row->is->op]);
	args = gf_xasprintf("{\"of_message\": %zu, \"step\": %zu, "
			    "\"bytes\": %.0f, \"by\": \"%s\"}",
			    row->message, row->step, row->bytes, row->by);
	gf_trace_slice(t->trace, t->rank + 1, thread, "step", name, row->at.start_s,
		       row->at.end_s - row->at.start_s, args);
	t->free_s[thread] = row->at.end_s;
}

GF_ORDER(by_start, struct gf_listed_step,
	 GF_BY(x->at.start_s, y->at.start_s) ?: GF_BY(x->message, y->message)
	 ?: GF_BY(x->step, y->step))

static void draw_rank(const struct gf_plan *p, const struct gf_replayed *r, int rank,
		      struct gf_trace *trace)
{
	struct threads t = {.trace = trace, .rank = rank};
	GF_FREED char *name = gf_xasprintf("rank %d", rank);
	size_t nrows = 0, i, k;
	GF_FREED struct gf_listed_step *rows = NULL;

	for (i = 0; i < r->nmessages; i++)
		nrows += steps_of(r, i, rank);
	rows = gf_xcalloc(nrows + 1, sizeof(*rows));
	for (i = 0, nrows = 0; i < r->nmessages; i++)
		for (k = 0; k < steps_of(r, i, rank); k++)
			rows[nrows++] = gf_listed_step(p, r, i, rank, k);
	qsort(rows, nrows, sizeof(*rows), by_start);
	gf_trace_process(trace, rank + 1, name);
	for (i = 0; i < nrows; i++)
		step_slice(&t, &rows[i]);
	free(t.free_s);
	free(t.kinds);
}

char *gf_outcome_trace_text(const struct gf_plan *p, const struct gf_outcome *o,
			    const struct gf_replayed *r)
{
	GF_RELEASED(gf_trace_release) struct gf_trace trace = {0};

	draw_outcome(p, o, 0, r ? "replayed" : "simulated", &trace);
	for (int rank = 0; r && rank < r->ranks; rank++)
		draw_rank(p, r, rank, &trace);
	return gf_trace_finish(&trace, "{\"producer\": \"gf-sim " GF_VERSION "\"}");
}
