/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/traces/rank_traces.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"
#include "transport/message_element.h"

/* --- clocks ------------------------------------------------------------------ */

#define ROUNDS 32
/* No engine runs yet: all channels are free. */
#define CHANNEL 0

static int send(struct gf_comm *c, int peer, double *value, struct gf_error *err)
{
	struct gf_comm_request *request;
	int rc = c->ops->isend(c, peer, gf_tag(CHANNEL, 0), value, sizeof(*value), &request, err);

	return rc ?: gf_comm_wait(c, request, err);
}

static int receive(struct gf_comm *c, int peer, double *value, struct gf_error *err)
{
	struct gf_comm_request *request;
	int rc = c->ops->irecv(c, peer, gf_tag(CHANNEL, 0), value, sizeof(*value), &request, err);

	return rc ?: gf_comm_wait(c, request, err);
}

/* Rank 0: answers one rank with its own time. */
static int answer(struct gf_comm *c, int peer, struct gf_error *err)
{
	double question, now;
	int i, rc = 0;

	for (i = 0; !rc && i < ROUNDS; i++) {
		rc = receive(c, peer, &question, err);
		now = gf_clock_s();
		rc = rc ?: send(c, peer, &now, err);
	}
	return rc;
}

static int ask(struct gf_comm *c, struct gf_clock_offset *o, struct gf_error *err)
{
	double before, after, there;
	int i, rc = 0;

	o->uncertainty_s = INFINITY;
	for (i = 0; !rc && i < ROUNDS; i++) {
		before = gf_clock_s();
		rc = send(c, 0, &before, err);
		rc = rc ?: receive(c, 0, &there, err);
		after = gf_clock_s();
		if (rc || (after - before) / 2 >= o->uncertainty_s)
			continue;
		o->uncertainty_s = (after - before) / 2;
		o->offset_s = (before + after) / 2 - there;
	}
	if (fabs(o->offset_s) <= o->uncertainty_s)
		o->offset_s = 0;
	return rc;
}

int gf_trace_compare_clocks(struct gf_comm *comm, struct gf_clock_offset *offset,
			    struct gf_error *err)
{
	struct gf_clock_offset o = {.origin_s = gf_clock_s()};
	int peer, rc;

	rc = gf_comm_bcast(comm, 0, &o.origin_s, sizeof(o.origin_s), err);
	for (peer = 1; !rc && comm->rank == 0 && peer < comm->ranks; peer++)
		rc = answer(comm, peer, err);
	if (!rc && comm->rank > 0)
		rc = ask(comm, &o, err);
	if (!rc)
		*offset = o;
	return rc;
}

/* --- the steps of schedules -------------------------------------------------- */

/* A slice to be. */
struct mark {
	int row;
	double from_s, to_s;
	const struct gf_trace_run *run;
	uint32_t step;
};

static const char *const verbs[] = {
	[GF_STEP_SEND] = "send",
	[GF_STEP_RECV] = "receive",
	[GF_STEP_RECV_REDUCE] = "add",
	[GF_STEP_COPY] = "copy",
	[GF_STEP_REDUCE] = "reduce",
	[GF_STEP_ROUND] = "round",
	[GF_STEP_REDUCE_SCATTER] = "reduce-scatter",
	[GF_STEP_ALL_GATHER] = "all-gather",
};

static int row_of(const struct gf_step *step)
{
	if (gf_step_calls(step))
		return GF_TRACE_CALLS;
	return GF_TRACE_PEERS + 2 * step->peer + (step->op == GF_STEP_SEND);
}

void gf_trace_name_rows(struct gf_trace *t, int rank, int ranks)
{
	char name[32];

	snprintf(name, sizeof(name), "rank %d", rank);
	gf_trace_process(t, rank, name);
	gf_trace_thread(t, rank, GF_TRACE_MESSAGES, "all-reduce");
	gf_trace_thread(t, rank, GF_TRACE_WORK, "work");
	for (int peer = 0; peer < ranks; peer++) {
		if (peer == rank)
			continue;
		snprintf(name, sizeof(name), "from rank %d", peer);
		gf_trace_thread(t, rank, GF_TRACE_PEERS + 2 * peer, name);
		snprintf(name, sizeof(name), "to rank %d", peer);
		gf_trace_thread(t, rank, GF_TRACE_PEERS + 2 * peer + 1, name);
	}
}

/* By row, and in it by the end: the order in which they are drawn. */
GF_ORDER(compare, struct mark,
	 GF_BY(x->row, y->row) ?: GF_BY(x->to_s, y->to_s)
	 ?: GF_BY(x->step, y->step))

/* A step's transfer and its work: what of them came to its end. */
static size_t mark_step(const struct gf_trace_run *run, uint32_t i, struct mark *marks)
{
	const struct gf_step *step = &run->schedule->steps[i];
	const double *at_s = run->times[i].at_s;
	struct mark mark = {.run = run, .step = i};
	size_t n = 0;

	if (!(at_s[GF_EXEC_ENDED] > 0))
		return 0;
	if (at_s[GF_EXEC_BEGUN] > 0) {
		mark.row = row_of(step);
		mark.from_s = at_s[GF_EXEC_BEGUN];
		mark.to_s = at_s[GF_EXEC_LANDED] > 0 ? at_s[GF_EXEC_LANDED] : at_s[GF_EXEC_ENDED];
		marks[n++] = mark;
	}
	if (at_s[GF_EXEC_WORKED] > 0) {
		mark.row = GF_TRACE_WORK;
		mark.from_s = at_s[GF_EXEC_WORKED];
		mark.to_s = at_s[GF_EXEC_ENDED];
		marks[n++] = mark;
	}
	return n;
}

static void draw(struct gf_trace *t, const struct mark *m, double from_s, double shift_s)
{
	const struct gf_schedule *s = m->run->schedule;
	const struct gf_step *step = &s->steps[m->step];
	char name[48], args[192];

	snprintf(name, sizeof(name), "%s %u", verbs[step->op], m->step);
	snprintf(args, sizeof(args),
		 "{\"message\": %zu, \"step\": %u, \"stage\": %d, "
		 "\"first\": %zu, \"bytes\": %zu, \"posted_us\": %.3f}",
		 m->run->message, m->step, step->stage, step->range.first,
		 gf_element_wire_bytes(m->run->element, step->range.count),
		 (m->from_s - shift_s) * 1e6);
	gf_trace_slice(t, s->rank, m->row, m->row == GF_TRACE_WORK ? "work" : "transfer", name,
		       from_s - shift_s, m->to_s - from_s, args);
}

void gf_trace_steps(struct gf_trace *t, const struct gf_trace_run *runs, size_t nruns,
		    double shift_s)
{
	size_t n = 0, r, k;
	GF_FREED struct mark *marks = NULL;
	double free_s = 0;
	bool calls = false;

	for (r = 0; r < nruns; r++) {
		n += 2 * runs[r].schedule->nsteps;
		calls |= runs[r].schedule->nteams > 0;
	}
	if (calls)
		gf_trace_thread(t, runs[0].schedule->rank, GF_TRACE_CALLS, "calls");
	marks = gf_xcalloc(n + 1, sizeof(*marks));
	for (n = r = 0; r < nruns; r++)
		for (uint32_t i = 0; i < runs[r].schedule->nsteps; i++)
			n += mark_step(&runs[r], i, marks + n);
	qsort(marks, n, sizeof(*marks), compare);
	for (k = 0; k < n; k++) {
		const struct mark *m = &marks[k];

		if (k == 0 || m->row != marks[k - 1].row)
			free_s = m->from_s;
		draw(t, m, m->from_s > free_s ? m->from_s : free_s, shift_s);
		free_s = m->to_s;
	}
}

/* --- all ranks on one time axis --------------------------------------------- */

double gf_trace_shift_s(const struct gf_clock_offset *offset)
{
	return offset->origin_s + offset->offset_s;
}

static char *metadata(const struct gf_clock_offset *offsets, int ranks, const char *producer)
{
	struct gf_text t = {0};

	gf_text_addf(&t, "{\"producer\": \"%s " GF_VERSION "\", \"clock_offset_s\": [", producer);
	for (int r = 0; r < ranks; r++)
		gf_text_addf(&t, "%s%.9f", r ? ", " : "", offsets[r].offset_s);
	gf_text_addf(&t, "], \"clock_uncertainty_s\": [");
	for (int r = 0; r < ranks; r++)
		gf_text_addf(&t, "%s%.9f", r ? ", " : "", offsets[r].uncertainty_s);
	gf_text_addf(&t, "]}");
	return gf_text_take(&t);
}

static char *assemble(const char *all, const size_t *lengths, int ranks, const char *meta)
{
	GF_RELEASED(gf_trace_release) struct gf_trace whole = {0};
	char *text;

	for (int r = 0; r < ranks; r++) {
		gf_trace_append(&whole, all, lengths[r]);
		all += lengths[r];
	}
	text = gf_trace_finish(&whole, meta);
	return text;
}

int gf_trace_gather(const struct gf_trace *own, struct gf_comm *comm,
		    const struct gf_clock_offset *offset, const char *producer, char **text,
		    struct gf_error *err)
{
	size_t ranks = (size_t)comm->ranks;
	GF_FREED struct gf_clock_offset *offsets = gf_xcalloc(ranks, sizeof(*offsets));
	GF_FREED size_t *lengths = gf_xcalloc(ranks, sizeof(*lengths));
	GF_FREED char *all = NULL, *meta = NULL;
	int rc = gf_comm_allgather(comm, offset, sizeof(*offset), offsets, err);

	if (!rc)
		rc = gf_comm_gather_text(comm, 0, own->events.data, own->events.length, &all,
					 lengths, err);
	if (!rc && comm->rank == 0)
		meta = metadata(offsets, comm->ranks, producer);
	if (!rc)
		*text = meta ? assemble(all, lengths, comm->ranks, meta) : NULL;
	return rc;
}
