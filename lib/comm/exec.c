/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The walker that moves data. A step is ready when the steps it depends on are
 * done; then a send or a receive is posted, and a copy or a reduction is done
 * on the spot. A receive that reduces has two halves, its transfer into a slot
 * of staging memory and its reduction, and only the second waits for the
 * dependencies.
 *
 * SLOTS are given out in program order, so the first unfinished reduction
 * always has one, and a schedule whose ranks take their steps in the same
 * rounds cannot get stuck for want of slots, however few there are.
 *
 * DIRECT. From a peer whose memory the transport can add from, a receive that
 * reduces needs no slot: it is posted when its dependencies are done, and the
 * transport adds straight into the data. Not where it overwrites what this rank
 * sends: schedule.h lets that receive be posted before the send has ended.
 */
#include "comm/exec.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "comm/backoff.h"
#include "comm/exec_parts.h"
#include "gf_kernels.h"

static float *at(const struct gf_exec_run *run, struct gf_range range)
{
	return (range.buffer == GF_BUFFER_DATA ? run->data : run->scratch) +
	       range.first;
}

static void finish_step(struct gf_exec_run *run, uint32_t i)
{
	uint32_t k;

	run->moves++;
	run->left--;
	for (k = run->first_user[i]; k < run->first_user[i + 1]; k++)
		if (--run->states[run->users[k]].waits_for == 0)
			run->ready[run->nready++] = run->users[k];
}

/* Begins the transfer of a step, to or from that memory. */
static int transfer(struct gf_exec_run *run, uint32_t i, float *memory,
		    struct gf_error *err)
{
	const struct gf_step *step = &run->schedule->steps[i];
	struct gf_comm *c = run->exec->comm;
	uint64_t tag = gf_tag(run->channel, step->match);
	size_t size_bytes = step->range.count * sizeof(float);
	struct gf_request **request = &run->states[i].request;
	int rc;

	if (step->op == GF_STEP_SEND)
		rc = c->ops->isend(c, step->peer, tag, memory, size_bytes,
				   request, err);
	else if (run->states[i].direct)
		rc = c->ops->irecv_add_f32(c, step->peer, tag, memory,
					   step->range.count, request, err);
	else
		rc = c->ops->irecv(c, step->peer, tag, memory, size_bytes,
				   request, err);
	if (rc)
		return rc;
	run->active[run->nactive++] = i;
	run->moves++;
	return 0;
}

/* Gives slots to receives that reduce, in program order. */
static int post_ahead(struct gf_exec_run *run, struct gf_error *err)
{
	uint32_t i;
	int rc = 0;

	while (run->free_slots && run->posted < run->nreduces && !rc) {
		i = run->reduces[run->posted++];
		run->states[i].slot = run->slots[--run->free_slots];
		rc = transfer(run, i,
			      run->staging +
				      run->states[i].slot * run->slot_elems,
			      err);
	}
	return rc;
}

/* A step whose dependencies are done. */
static int take_up(struct gf_exec_run *run, uint32_t i, struct gf_error *err)
{
	const struct gf_step *step = &run->schedule->steps[i];
	struct gf_exec_state *state = &run->states[i];
	float *target = at(run, step->range);

	switch (step->op) {
	case GF_STEP_SEND:
	case GF_STEP_RECV:
		return transfer(run, i, target, err);
	case GF_STEP_RECV_REDUCE:
		if (state->direct)
			return transfer(run, i, target, err);
		if (!state->arrived)
			return 0;
		gf_kernels()->add_f32(
			target, run->staging + state->slot * run->slot_elems,
			step->range.count);
		run->slots[run->free_slots++] = state->slot;
		/* It is listed twice when its last dependency and its
		 * arrival are seen in one pass. */
		state->arrived = false;
		break;
	case GF_STEP_ROUND: /* f32 goes as it is */
		break;
	case GF_STEP_COPY:
		memcpy(target, at(run, step->from),
		       step->range.count * sizeof(float));
		break;
	case GF_STEP_REDUCE:
		gf_kernels()->add_f32(target, at(run, step->from),
				      step->range.count);
		break;
	}
	finish_step(run, i);
	return 0;
}

static int settle(struct gf_exec_run *run, struct gf_error *err)
{
	int rc;

	do {
		rc = post_ahead(run, err);
		while (run->nready && !rc)
			rc = take_up(run, run->ready[--run->nready], err);
	} while (!rc && run->free_slots && run->posted < run->nreduces);
	return rc;
}

/* Ends the transfers that have come to their end. */
static int collect(struct gf_exec_run *run, struct gf_error *err)
{
	struct gf_comm *c = run->exec->comm;
	uint32_t k = 0, i;
	int rc;

	while (k < run->nactive) {
		i = run->active[k];
		rc = c->ops->test(c, run->states[i].request, err);
		if (!rc) {
			k++;
			continue;
		}
		run->active[k] = run->active[--run->nactive];
		if (rc < 0)
			return rc;
		if (run->schedule->steps[i].op != GF_STEP_RECV_REDUCE ||
		    run->states[i].direct) {
			finish_step(run, i);
			continue;
		}
		run->moves++;
		run->states[i].arrived = true;
		if (run->states[i].waits_for == 0)
			run->ready[run->nready++] = i;
	}
	return 0;
}

/* Unlinks it when every step is done, or when it has failed. */
static int conclude(struct gf_exec_run *run, int rc)
{
	if (rc) {
		gf_exec_stop(run);
		run->failed = true;
	} else if (!run->left) {
		gf_exec_stop(run);
		run->started = run->done = true;
	}
	return rc;
}

int gf_exec_start(struct gf_exec_run *run, float *data, struct gf_error *err)
{
	const struct gf_schedule *s = run->schedule;
	uint32_t i;

	assert(!run->started || run->done);
	run->data = data;
	run->started = true;
	run->done = run->failed = false;
	run->left = s->nsteps;
	run->nready = run->nactive = run->posted = 0;
	run->free_slots = run->nslots;
	for (i = 0; i < run->nslots; i++)
		run->slots[i] = run->nslots - 1 - i;
	for (i = 0; i < s->nsteps; i++)
		run->states[i] = (struct gf_exec_state){
			.waits_for = s->steps[i].ndeps,
			.direct = gf_exec_is_direct(run, &s->steps[i]),
		};
	/* Taken from the end: the first step first. */
	for (i = (uint32_t)s->nsteps; i-- > 0;)
		if (!s->steps[i].ndeps)
			run->ready[run->nready++] = i;
	run->next = run->exec->running;
	run->link = &run->exec->running;
	if (run->next)
		run->next->link = &run->next;
	run->exec->running = run;
	return conclude(run, settle(run, err));
}

int gf_exec_progress(struct gf_exec *x, bool *moved, struct gf_error *err)
{
	uint64_t before, bytes_before = x->comm->moved_bytes;
	struct gf_exec_run *run, *next;
	int rc = 0;

	*moved = false;
	for (run = x->running; run && !rc; run = next) {
		next = run->next;
		before = run->moves;
		rc = collect(run, err);
		if (!rc)
			rc = settle(run, err);
		*moved |= run->moves != before;
		rc = conclude(run, rc);
	}
	*moved |= x->comm->moved_bytes != bytes_before;
	return rc;
}

bool gf_exec_done(const struct gf_exec_run *run)
{
	return run->done;
}

bool gf_exec_failed(const struct gf_exec_run *run)
{
	return run->failed;
}

uint64_t gf_exec_moves(const struct gf_exec_run *run)
{
	return run->moves;
}

void gf_exec_waiting_for(const struct gf_exec_run *run, int *peer, size_t *step)
{
	uint32_t i;

	*peer = -1;
	*step = 0;
	for (i = 0; i < run->nactive; i++) {
		if (*peer >= 0 && run->active[i] >= *step)
			continue;
		*step = run->active[i];
		*peer = run->schedule->steps[*step].peer;
	}
}

static int give_up(struct gf_exec_run *run, double timeout_s,
		   struct gf_error *err)
{
	const struct gf_step *step;
	int peer;
	size_t i;

	gf_exec_waiting_for(run, &peer, &i);
	step = &run->schedule->steps[i];
	gf_error_set(err, -ETIMEDOUT,
		     "no progress for %g s in step %zu of %zu (%s rank %d, "
		     "%zu bytes)",
		     timeout_s, i, run->schedule->nsteps,
		     step->op == GF_STEP_SEND ? "send to" : "receive from",
		     peer, step->range.count * sizeof(float));
	run->exec->comm->broken = true;
	return conclude(run, -ETIMEDOUT);
}

int gf_exec_wait(struct gf_exec *x, struct gf_exec_run *run, double timeout_s,
		 struct gf_error *err)
{
	struct gf_comm *c = x->comm;
	struct gf_backoff backoff = {0};
	double since_s = gf_clock_s();
	uint64_t moves = run->moves;
	bool moved;
	int rc = 0;

	while (!run->done) {
		rc = gf_exec_progress(x, &moved, err);
		if (rc)
			return rc;
		if (c->on_wait && (rc = c->on_wait(c->on_wait_ctx, err)))
			return conclude(run, rc);
		if (run->moves != moves) {
			moves = run->moves;
			since_s = gf_clock_s();
		} else if (timeout_s > 0 &&
			   gf_clock_s() - since_s >= timeout_s) {
			return give_up(run, timeout_s, err);
		}
		if (moved)
			gf_backoff_reset(&backoff);
		else
			gf_backoff_wait(&backoff);
	}
	return 0;
}
