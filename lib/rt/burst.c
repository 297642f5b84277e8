/* SPDX-License-Identifier: BSD-3-Clause */
#include "rt/burst.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/heap.h"
#include "comm/backoff.h"
#include "exec/exec.h"
#include "rt/trace.h"

struct part {
	struct gf_schedule schedule;
	struct gf_element element;
	struct gf_exec_run *run;     /* NULL where there is one rank */
	struct gf_exec_times *times; /* of its steps, once recorded */
	size_t offset_bytes, size_bytes;
	bool simultaneous, done;
	uint64_t moves;
	double stuck_s;
};

struct gf_burst {
	struct gf_burst_config config;
	struct gf_exec *exec;
	struct part *parts;
	size_t nparts;
	/* Of the send under way; below `oldest` all have ended. */
	size_t next, oldest, nended;
	int nactive;
	struct gf_backoff backoff;
	const struct gf_burst_flow *flow; /* NULL: all are there */
	size_t come;
};

static int build_part(struct gf_burst *b, size_t i, struct gf_error *err)
{
	const struct gf_burst_message *m = &b->config.messages[i];
	size_t width = m->element.size_bytes;
	size_t segment = b->config.segment_bytes;
	struct gf_coll_args args = gf_way_args(&m->way, b->config.comm->ranks);
	struct gf_exec_config run = {
		.count_elems = m->count_elems,
		.element = m->element,
		.half = m->half,
		.channel = (uint32_t)i,
	};
	struct part *p = &b->parts[i];
	int rc = 0;

	p->size_bytes = m->count_elems * width;
	p->element = m->element;
	p->simultaneous = m->simultaneous;
	if (b->config.comm->ranks == 1)
		return 0;
	args.count_elems = m->count_elems;
	args.half = m->half;
	args.elem_bytes = width;
	args.segment_elems =
		segment ? (segment / width ? segment / width : 1)
			: gf_exec_segment_elems(b->config.comm, &m->element,
						m->count_elems);
	args.lossy = gf_element_lossy(&m->element);
	if (m->way.algorithm->build) {
		rc = gf_algorithm_schedule(m->way.algorithm, &args,
					   b->config.comm->rank, &p->schedule,
					   err);
		run.schedule = &p->schedule;
	}
	return rc ? rc : gf_exec_run_new(b->exec, &run, &p->run, err);
}

int gf_burst_new(const struct gf_burst_config *config, struct gf_burst **burst,
		 struct gf_error *err)
{
	struct gf_burst *b = gf_xcalloc(1, sizeof(*b));
	size_t i, offset = 0;
	int rc = 0;

	b->config = *config;
	b->exec = gf_exec_new(config->comm);
	b->nparts = config->nmessages;
	b->parts = gf_xcalloc(b->nparts + 1, sizeof(*b->parts));
	for (i = 0; i < b->nparts && rc == 0; i++) {
		b->parts[i].offset_bytes = offset;
		rc = build_part(b, i, err);
		offset += b->parts[i].size_bytes;
		if (rc)
			gf_error_prefix(err, "message %zu", i);
	}
	b->config.messages = NULL; /* the caller's, who may let go of them */
	rc = gf_comm_agree(config->comm, rc, err);
	if (rc)
		gf_burst_free(b);
	else
		*burst = b;
	return rc;
}

void gf_burst_free(struct gf_burst *b)
{
	size_t i;

	/* What is under way on a broken communicator may still touch its
	 * memory, here and on other ranks, until the job ends. */
	if (!b || b->config.comm->broken)
		return;
	for (i = 0; i < b->nparts; i++) {
		gf_exec_run_free(b->parts[i].run);
		free(b->parts[i].times);
		gf_schedule_release(&b->parts[i].schedule);
	}
	gf_exec_free(b->exec);
	free(b->parts);
	free(b);
}

static bool may_start(const struct gf_burst *b)
{
	if (b->next == b->come)
		return false;
	return b->parts[b->next].simultaneous ? b->nactive < b->config.lanes
					      : b->nactive == 0;
}

static void name_message(const struct gf_burst *b, size_t i,
			 struct gf_error *err)
{
	gf_error_prefix(err, "step %" PRIu64 ", message %zu (%zu bytes)",
			b->config.watch->self.step, i, b->parts[i].size_bytes);
}

static int start_messages(struct gf_burst *b, char *data, struct gf_error *err)
{
	struct part *p;
	int rc = 0;

	while (rc == 0 && may_start(b)) {
		p = &b->parts[b->next++];
		b->nactive++;
		b->config.watch->self.started = b->next;
		p->done = false;
		p->moves = 0;
		p->stuck_s = 0;
		if (p->run)
			rc = gf_exec_start(p->run, data + p->offset_bytes, err);
		if (rc)
			name_message(b, b->next - 1, err);
	}
	return rc;
}

/* Ends what has come to its end. */
static int collect(struct gf_burst *b, bool *moved, struct gf_error *err)
{
	struct part *p;
	size_t i;
	int rc = 0;

	for (i = b->oldest; i < b->next && rc == 0; i++) {
		p = &b->parts[i];
		if (p->done || (p->run && !gf_exec_done(p->run)))
			continue;
		p->done = true;
		b->nended++;
		b->nactive--;
		*moved = true;
		if (b->flow)
			rc = b->flow->ended(b->flow->ctx, i, err);
	}
	while (b->oldest < b->next && b->parts[b->oldest].done)
		b->oldest++;
	return rc;
}

static int see_come(struct gf_burst *b, bool *moved, struct gf_error *err)
{
	size_t before = b->come;
	int rc = b->flow && b->come < b->nparts
			 ? b->flow->come(b->flow->ctx, &b->come, err)
			 : 0;

	*moved |= b->come > before;
	return rc;
}

static int name_failed(const struct gf_burst *b, int rc, struct gf_error *err)
{
	size_t i;

	for (i = b->oldest; i < b->next; i++)
		if (b->parts[i].run && gf_exec_failed(b->parts[i].run)) {
			name_message(b, i, err);
			break;
		}
	return rc;
}

/* The message that has stood still for longest, if one has for too long. */
static int check_stuck(struct gf_burst *b, double passed_s,
		       struct gf_error *err)
{
	size_t i, worst = b->next;
	uint64_t moves;
	int rc;

	for (i = b->oldest; i < b->next; i++) {
		struct part *p = &b->parts[i];

		if (p->done)
			continue;
		moves = p->run ? gf_exec_moves(p->run) : 0;
		p->stuck_s = moves == p->moves ? p->stuck_s + passed_s : 0;
		p->moves = moves;
		if (worst == b->next || p->stuck_s > b->parts[worst].stuck_s)
			worst = i;
	}
	if (worst == b->next)
		return 0;
	rc = gf_watch_stuck(b->config.watch, b->parts[worst].stuck_s, worst,
			    err);
	if (rc == -ETIMEDOUT) {
		gf_error_prefix(err, "no progress for %g s",
				b->config.watch->timeout_s);
		name_message(b, worst, err);
	}
	return rc;
}

static int move(struct gf_burst *b, char *data, bool *moved,
		struct gf_error *err)
{
	bool progress;
	double passed_s;
	int rc;

	rc = see_come(b, moved, err);
	if (rc == 0)
		rc = start_messages(b, data, err);
	if (rc)
		return rc;
	rc = gf_exec_progress(b->exec, &progress, err);
	*moved |= progress;
	if (rc)
		return name_failed(b, rc, err);
	rc = collect(b, moved, err);
	if (rc)
		return rc;
	rc = gf_watch_look(b->config.watch, &passed_s, err);
	if (rc == 0 && passed_s > 0)
		rc = check_stuck(b, passed_s, err);
	return rc;
}

int gf_burst_send(struct gf_burst *b, void *data, struct gf_error *err)
{
	return gf_burst_flow(b, data, NULL, err);
}

int gf_burst_flow(struct gf_burst *b, void *data,
		  const struct gf_burst_flow *flow, struct gf_error *err)
{
	struct gf_watch *w = b->config.watch;
	double free_s;
	bool moved;
	int rc = 0;

	b->next = b->oldest = b->nended = 0;
	b->nactive = 0;
	b->flow = flow;
	b->come = flow ? 0 : b->nparts;
	b->backoff.crowded = b->config.comm->crowded;
	gf_backoff_reset(&b->backoff);
	w->self.step++;
	w->self.started = 0;
	w->self.phase = GF_PHASE_NETWORK;
	gf_watch_begin(w);
	while (rc == 0 && b->nended < b->nparts) {
		moved = false;
		rc = move(b, data, &moved, err);
		free_s = gf_exec_free_s(b->exec);
		if (moved && !gf_backoff_worth(&b->backoff, free_s))
			gf_backoff_reset(&b->backoff);
		else if (rc == 0)
			gf_backoff_rest(&b->backoff, free_s);
	}
	w->self.phase = GF_PHASE_IDLE;
	return rc;
}

uint64_t gf_burst_wire_bytes(const struct gf_burst *b)
{
	uint64_t bytes = 0;
	size_t i;

	for (i = 0; i < b->nparts; i++)
		if (b->parts[i].run)
			bytes += gf_exec_wire_bytes(b->parts[i].run);
	return bytes;
}

void gf_burst_record(struct gf_burst *b, bool on)
{
	struct part *p;

	for (p = b->parts; p < b->parts + b->nparts; p++) {
		if (!p->run || !p->schedule.nsteps)
			continue;
		if (on && !p->times)
			p->times = gf_xcalloc(p->schedule.nsteps,
					      sizeof(*p->times));
		gf_exec_record(p->run, on ? p->times : NULL);
	}
}

void gf_burst_draw(const struct gf_burst *b, double shift_s,
		   struct gf_trace *trace)
{
	struct gf_trace_run *runs = gf_xcalloc(b->nparts + 1, sizeof(*runs));
	size_t i, n = 0;

	for (i = 0; i < b->nparts; i++) {
		const struct part *p = &b->parts[i];

		if (p->times)
			runs[n++] = (struct gf_trace_run){
				&p->schedule, p->times, &p->element, i};
	}
	gf_trace_steps(trace, runs, n, shift_s);
	free(runs);
}
