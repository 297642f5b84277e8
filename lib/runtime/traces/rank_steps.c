/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"
#include "runtime/traces/rank_traces.h"
#include "transport/message_element.h"

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
	int peer;

	snprintf(name, sizeof(name), "rank %d", rank);
	gf_trace_process(t, rank, name);
	gf_trace_thread(t, rank, GF_TRACE_MESSAGES, "all-reduce");
	gf_trace_thread(t, rank, GF_TRACE_WORK, "work");
	for (peer = 0; peer < ranks; peer++) {
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
	struct mark *marks;
	double free_s = 0;
	bool calls = false;
	uint32_t i;

	for (r = 0; r < nruns; r++) {
		n += 2 * runs[r].schedule->nsteps;
		calls |= runs[r].schedule->nteams > 0;
	}
	if (calls)
		gf_trace_thread(t, runs[0].schedule->rank, GF_TRACE_CALLS, "calls");
	marks = gf_xcalloc(n + 1, sizeof(*marks));
	for (n = r = 0; r < nruns; r++)
		for (i = 0; i < runs[r].schedule->nsteps; i++)
			n += mark_step(&runs[r], i, marks + n);
	qsort(marks, n, sizeof(*marks), compare);
	for (k = 0; k < n; k++) {
		const struct mark *m = &marks[k];

		if (k == 0 || m->row != marks[k - 1].row)
			free_s = m->from_s;
		draw(t, m, m->from_s > free_s ? m->from_s : free_s, shift_s);
		free_s = m->to_s;
	}
	free(marks);
}
