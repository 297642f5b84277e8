/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The walker that moves data. A step is ready when the steps it depends on are done; then a send or
 * a receive is posted, and a copy or a reduction is done on the spot. A receive that reduces, or
 * that decodes, has two halves: its transfer into a slot of staging memory, and the reduction or
 * decoding from there. Only the second half waits for the dependencies. A send under a codec is
 * encoded into a slot once it is ready.
 *
 * SLOTS are given out in program order, so the first unfinished step always has one. So a schedule
 * whose ranks take their steps in the same rounds cannot get stuck for want of slots, however few
 * there are.
 *
 * DIRECT. If the transport can reduce from a peer's memory, a receive that reduces needs no slot:
 * it is posted when its dependencies are done, and the transport reduces straight into the data. An
 * exception is a receive that overwrites data that this rank sends: schedule.h lets that receive be
 * posted before the send has ended. If the sum then goes back to that peer, it may be put there at
 * once (exec_run.c).
 */
#include <string.h>

#include "base/clock.h"
#include "collectives/codecs/encode.h"
#include "runtime/exec/exec_parts.h"

/* After BEHIND_AFTER passes without movement, each pass also tests ASK_BEHIND of the transfers that
 * wait in line after others, in turn. Not all at once: each test may be a call that polls the
 * network, and there are hundreds. */
#define BEHIND_AFTER 7
#define ASK_BEHIND   8

/* The bytes that are copied or added in shared memory from one look at the network to the next. The
 * transport does as many at one go anyway, if a message is that long. With less every short segment
 * would pay for a look, which gives the processor away if ranks have to share it. */
#define HOLD_UP_BYTES ((uint64_t)256 << 10)

/* The heap of steps to be taken up, the first in program order on top: peers exchange their
 * messages in that order. A step is in it once.
 */
static void list_ready(struct gf_exec_run *run, uint32_t i)
{
	uint32_t at, above;

	if (run->states[i].listed)
		return;
	run->states[i].listed = true;
	for (at = run->nready++; at; at = above) {
		above = (at - 1) / 2;
		if (run->ready[above] < i)
			break;
		run->ready[at] = run->ready[above];
	}
	run->ready[at] = i;
}

static uint32_t next_ready(struct gf_exec_run *run)
{
	uint32_t *ready = run->ready, first = ready[0];
	uint32_t last = ready[--run->nready], at = 0, below;

	for (; (below = 2 * at + 1) < run->nready; at = below) {
		if (below + 1 < run->nready && ready[below + 1] < ready[below])
			below++;
		if (ready[below] > last)
			break;
		ready[at] = ready[below];
	}
	ready[at] = last;
	run->states[first].listed = false;
	return first;
}

static void note_time(struct gf_exec_run *run, uint32_t i, enum gf_exec_moment moment)
{
	if (run->times)
		run->times[i].at_s[moment] = gf_clock_s();
}

static void finish_step(struct gf_exec_run *run, uint32_t i)
{
	note_time(run, i, GF_EXEC_ENDED);
	run->moves++;
	run->left--;
	for (uint32_t k = run->first_user[i]; k < run->first_user[i + 1]; k++)
		if (--run->states[run->users[k]].waits_for == 0)
			list_ready(run, run->users[k]);
}

/* Sends stand in the order in which they began, receives in program order, which is the order in
 * which their peers send: a receive may begin before one that still waits for a slot, and end long
 * after it. */
static void stand_in_line(struct gf_exec_run *run, uint32_t i)
{
	const struct gf_step *steps = run->schedule->steps;
	uint32_t at = run->nactive, k;

	for (k = run->nactive; k-- > 0 && steps[i].op != GF_STEP_SEND;) {
		if (steps[run->active[k]].op == GF_STEP_SEND)
			continue;
		if (run->active[k] < i)
			break;
		at = k;
	}
	memmove(run->active + at + 1, run->active + at, (run->nactive - at) * sizeof(*run->active));
	run->active[at] = i;
	run->nactive++;
}

static int begin_send(struct gf_exec_run *run, uint32_t i, const char *memory, size_t size_bytes,
		      struct gf_error *err)
{
	const struct gf_step *step = &run->schedule->steps[i];
	const struct gf_comm_ops *ops = run->exec->comm->ops;
	int (*isend)(struct gf_comm * c, int peer, uint64_t tag, const void *data, size_t size,
		     struct gf_comm_request **request, struct gf_error *e) = ops->isend;

	if (run->loans[i] == GF_EXEC_LENT)
		isend = ops->isend_lent;
	else if (run->loans[i] == GF_EXEC_BACK)
		isend = ops->isend_back;
	return isend(run->exec->comm, step->peer, gf_tag(run->channel, step->match), memory,
		     size_bytes, &run->states[i].request, err);
}

static int begin_receive(struct gf_exec_run *run, uint32_t i, char *memory, size_t size_bytes,
			 struct gf_error *err)
{
	const struct gf_step *step = &run->schedule->steps[i];
	struct gf_comm *c = run->exec->comm;
	uint64_t tag = gf_tag(run->channel, step->match);
	struct gf_comm_request **request = &run->states[i].request;

	if (step->op == GF_STEP_RECV || run->ways[i] != GF_EXEC_PLAIN)
		return c->ops->irecv(c, step->peer, tag, memory, size_bytes, request, err);
	if (run->loans[i] == GF_EXEC_BACK)
		return c->ops->irecv_reduce_back(c, step->peer, tag, memory, step->range.count,
						 &run->received, request, err);
	return c->ops->irecv_reduce(c, step->peer, tag, memory, step->range.count, &run->received,
				    request, err);
}

/* Begins the transfer of a step, to or from that memory. */
static int transfer(struct gf_exec_run *run, uint32_t i, char *memory, struct gf_error *err)
{
	const struct gf_step *step = &run->schedule->steps[i];
	size_t size_bytes = gf_element_wire_bytes(&run->element, step->range.count);
	bool sends = step->op == GF_STEP_SEND;
	int rc;

	note_time(run, i, GF_EXEC_BEGUN);
	rc = sends ? begin_send(run, i, memory, size_bytes, err)
		   : begin_receive(run, i, memory, size_bytes, err);
	if (rc)
		return rc;
	if (sends)
		run->wire_bytes += size_bytes;
	stand_in_line(run, i);
	run->moves++;
	return 0;
}

/* Elements that the step sends: of a call, as many as a ring would. */
static size_t sent_elems(const struct gf_schedule *s, const struct gf_step *step)
{
	const struct gf_group *team;

	if (!gf_step_calls(step))
		return step->op == GF_STEP_SEND ? step->range.count : 0;
	team = &s->teams[step->match];
	return step->range.count - gf_range_part(step->range, team->size, team->me).count;
}

/* Begins the collective of a step. */
static int call(struct gf_exec_run *run, uint32_t i, struct gf_error *err)
{
	const struct gf_step *step = &run->schedule->steps[i];
	struct gf_comm *c = run->exec->comm;
	int rc;

	note_time(run, i, GF_EXEC_BEGUN);
	rc = c->ops->iteam(c, run->teams[step->match], step->op == GF_STEP_ALL_GATHER,
			   gf_exec_at(run, step->range), step->range.count, &run->element,
			   &run->states[i].request, err);
	if (rc)
		return rc;
	run->wire_bytes += sent_elems(run->schedule, step) * run->element.size_bytes;
	stand_in_line(run, i);
	run->moves++;
	return 0;
}

/* After a reduce-scatter, the own part goes where it belongs. */
static void end_call(struct gf_exec_run *run, uint32_t i)
{
	const struct gf_step *step = &run->schedule->steps[i];
	const struct gf_group *team = &run->schedule->teams[step->match];
	const struct gf_range own = gf_range_part(step->range, team->size, team->me);

	if (step->op == GF_STEP_REDUCE_SCATTER)
		memmove(gf_exec_at(run, own), gf_exec_at(run, step->range),
			own.count * run->element.size_bytes);
	finish_step(run, i);
}

/* Gives the next step of its kind a slot and begins its transfer. */
static int post(struct gf_exec_run *run, struct gf_exec_slots *slots, struct gf_error *err)
{
	uint32_t i = slots->steps[slots->given++];
	const struct gf_step *step = &run->schedule->steps[i];
	double began_s;
	char *slot;

	run->states[i].slot = slots->free[--slots->nfree];
	slot = gf_exec_slot(slots, run->states[i].slot);
	if (step->op == GF_STEP_SEND) {
		began_s = gf_exec_coding_begin(run);
		gf_codec_send(run->element.codec, slot,
			      (float *)(void *)gf_exec_at(run, step->range), step->range.count);
		gf_exec_coding_end(run, began_s);
	}
	return transfer(run, i, slot, err);
}

static bool may_land(const struct gf_exec_run *run)
{
	return run->landing.nfree && run->landing.given < run->landing.nsteps;
}

static bool may_send(const struct gf_exec_run *run)
{
	const struct gf_exec_slots *out = &run->outgoing;

	return out->nfree && out->given < out->nsteps &&
	       run->states[out->steps[out->given]].waits_for == 0;
}

/* Puts data that has landed where it belongs. */
static void deposit(struct gf_exec_run *run, const struct gf_step *step, const char *slot)
{
	const struct gf_element *e = &run->element;
	char *to = gf_exec_at(run, step->range);
	size_t n = step->range.count;
	double began_s = gf_exec_coding_begin(run);

	if (!e->codec)
		gf_element_reduce(e, to, slot, n);
	else if (step->op == GF_STEP_RECV)
		gf_codec_decode(e->codec, (float *)(void *)to, slot, n);
	else
		gf_codec_decode_add(e->codec, (float *)(void *)to, slot, n);
	gf_exec_coding_end(run, began_s);
}

static void give_back(struct gf_exec_slots *slots, uint32_t slot)
{
	slots->free[slots->nfree++] = slot;
}

/* A step done on the spot. */
static void take(struct gf_exec_run *run, const struct gf_step *step)
{
	const struct gf_element *e = &run->element;
	char *to = gf_exec_at(run, step->range);
	double began_s = gf_exec_coding_begin(run);

	if (step->op == GF_STEP_COPY)
		memcpy(to, gf_exec_at(run, step->from), step->range.count * e->size_bytes);
	else if (step->op == GF_STEP_REDUCE)
		gf_element_reduce(e, to, gf_exec_at(run, step->from), step->range.count);
	else if (e->codec) /* GF_STEP_ROUND; others go as they are */
		gf_codec_round(e->codec, (float *)(void *)to, step->range.count);
	gf_exec_coding_end(run, began_s);
}

/* A step whose dependencies are done. */
static int take_up(struct gf_exec_run *run, uint32_t i, struct gf_error *err)
{
	const struct gf_step *step = &run->schedule->steps[i];
	struct gf_exec_state *state = &run->states[i];

	switch ((enum gf_exec_way)run->ways[i]) {
	case GF_EXEC_PLAIN:
		return transfer(run, i, gf_exec_at(run, step->range), err);
	case GF_EXEC_CALL:
		return call(run, i, err);
	case GF_EXEC_CODED: /* settle posts it in its turn */
		return 0;
	case GF_EXEC_LAND:
		if (!state->arrived)
			return 0;
		note_time(run, i, GF_EXEC_WORKED);
		deposit(run, step, gf_exec_slot(&run->landing, state->slot));
		give_back(&run->landing, state->slot);
		break;
	case GF_EXEC_NOW:
		note_time(run, i, GF_EXEC_WORKED);
		take(run, step);
		break;
	}
	finish_step(run, i);
	return 0;
}

static int settle(struct gf_exec_run *run, struct gf_error *err)
{
	int rc = 0;

	do {
		while (!rc && may_land(run))
			rc = post(run, &run->landing, err);
		while (!rc && may_send(run))
			rc = post(run, &run->outgoing, err);
		while (run->nready && !rc)
			rc = take_up(run, next_ready(run), err);
	} while (!rc && (may_land(run) || may_send(run)));
	return rc;
}

/* The transfer of a step is over. */
static void end_transfer(struct gf_exec_run *run, uint32_t i)
{
	const struct gf_step *step = &run->schedule->steps[i];

	if (run->ways[i] == GF_EXEC_CALL) {
		end_call(run, i);
		return;
	}
	if (!run->counts[step->peer])
		run->exec->busy = true;
	else if (step->op != GF_STEP_SEND)
		run->arrived++;
	if (run->ways[i] == GF_EXEC_CODED)
		give_back(&run->outgoing, run->states[i].slot);
	if (run->ways[i] != GF_EXEC_LAND) {
		finish_step(run, i);
		return;
	}
	note_time(run, i, GF_EXEC_LANDED);
	run->moves++;
	run->states[i].arrived = true;
	if (run->states[i].waits_for == 0)
		list_ready(run, i);
}

/* Calls stand in no line: *front is NULL. The sends to a peer mostly end in the order in which they
 * began, and so do the receives from a peer. So transfers after an unfinished one are not tested,
 * unless the transport knows that a test would help. While the first is being copied, not even
 * those are tested: the first would then take as long as all of them. */
static bool may_wait(const struct gf_exec_run *run, uint64_t **front, uint32_t i)
{
	const struct gf_step *step = &run->schedule->steps[i];
	const struct gf_comm *c = run->exec->comm;

	*front = NULL;
	if (run->ways[i] == GF_EXEC_CALL)
		return false;
	*front = &run->fronts[2 * step->peer + (step->op == GF_STEP_SEND)];
	if (**front / 2 != run->pass)
		return false;
	return **front % 2 || !c->ops->is_ripe || !c->ops->is_ripe(c, run->states[i].request);
}

/* Does testing this step hold up the wires? In a run that uses both a network and shared memory, a
 * call of test copies or adds bytes in shared memory, and the wires may be idle meanwhile. */
static bool holds_up_wires(const struct gf_exec_run *run, uint32_t i)
{
	return run->pace.arrivals && run->ways[i] != GF_EXEC_CALL &&
	       !run->counts[run->schedule->steps[i].peer];
}

/* Tests transfers and ends those that are over. At most one block of a transfer that holds up the
 * wires is moved. If not `all`, only such transfers are tested. While nothing moves, some transfers
 * in line after others are tested, too: the order of ends is likely, not certain. */
static int collect(struct gf_exec_run *run, bool all, struct gf_error *err)
{
	struct gf_comm *c = run->exec->comm;
	uint32_t nactive = run->nactive, kept = 0, k, i;
	uint32_t turn =
		run->idle + run->exec->quiet < BEHIND_AFTER ? nactive : run->turn % (nactive + 1);
	uint64_t bytes = c->moved_bytes, copied, *front;
	int rc = 0;

	run->pass++;
	for (k = 0; k < nactive; k++) {
		i = run->active[k];
		if (rc < 0 || (holds_up_wires(run, i) ? c->moved_bytes != bytes : !all) ||
		    (may_wait(run, &front, i) && (k < turn || k - turn >= ASK_BEHIND))) {
			run->active[kept++] = i;
			continue;
		}
		copied = c->moved_bytes;
		rc = c->ops->test(c, run->states[i].request, err);
		if (rc > 0) {
			end_transfer(run, i);
		} else if (!rc) {
			if (front)
				*front = 2 * run->pass + (c->moved_bytes != copied);
			run->active[kept++] = i;
		}
	}
	run->nactive = kept;
	run->turn = turn < nactive ? turn + ASK_BEHIND : 0;
	return rc < 0 ? rc : 0;
}

static void fill(struct gf_exec_slots *slots)
{
	slots->given = 0;
	slots->nfree = slots->count;
	for (uint32_t i = 0; i < slots->count; i++)
		slots->free[i] = slots->count - 1 - i;
}

int gf_exec_steps_start(struct gf_exec_run *run, struct gf_error *err)
{
	const struct gf_schedule *s = run->schedule;

	run->left = s->nsteps;
	run->nready = run->nactive = run->turn = run->idle = 0;
	if (run->pace.most)
		gf_pace_begin(&run->pace, gf_clock_s());
	fill(&run->landing);
	fill(&run->outgoing);
	if (run->times)
		memset(run->times, 0, s->nsteps * sizeof(*run->times));
	for (uint32_t i = 0; i < s->nsteps; i++)
		run->states[i] = (struct gf_exec_state){.waits_for = s->steps[i].ndeps};
	for (uint32_t i = 0; i < s->nsteps; i++)
		if (!s->steps[i].ndeps)
			list_ready(run, i);
	return settle(run, err);
}

/* Each block is sent on before the next one is touched. */
int gf_exec_steps_progress(struct gf_exec_run *run, struct gf_error *err)
{
	struct gf_comm *c = run->exec->comm;
	uint64_t moves = run->moves, bytes = c->moved_bytes, before;
	bool all = true;
	int rc;

	run->arrived = 0;
	do {
		before = c->moved_bytes;
		rc = collect(run, all, err);
		if (all && run->arrived && run->pace.most)
			gf_pace_arrived(&run->pace, run->arrived, gf_clock_s());
		rc = rc ?: settle(run, err);
		all = false;
	} while (!rc && c->moved_bytes != before && run->pace.arrivals &&
		 c->moved_bytes - bytes < HOLD_UP_BYTES);
	run->idle = run->moves == moves ? run->idle + 1 : 0;
	return rc;
}
