/* SPDX-License-Identifier: BSD-3-Clause */
/* The executor: starts runs, moves all of them on, and says where they are. */
#include "runtime/exec/exec.h"

#include <assert.h>
#include <math.h>

#include "base/clock.h"
#include "collectives/codecs/encode.h"
#include "transport/backoff.h"
#include "runtime/exec/exec_parts.h"
#include "documents/algorithm_traits.h"

/* Passes in vain cost more than the transport's own question whether anything has come: they go
 * through all that is under way. */
#define PASS_EVERY 8

/* An average's division, where this rank holds the sum. */
static void finish(struct gf_exec_run *run)
{
	const struct gf_schedule *s = run->schedule;
	struct gf_range all = gf_data(0, run->count_elems);
	const struct gf_range *owned = &all;
	size_t n = 1;
	int contributors = s ? s->contributors : run->exec->comm->ranks;

	if (run->half == GF_COLL_ALL_GATHER || run->exec->comm->rank >= contributors)
		return;
	if (run->half == GF_COLL_REDUCE_SCATTER) {
		owned = s->owned;
		n = s->nowned;
	}
	for (; n--; owned++)
		gf_element_finish(&run->element, gf_exec_at(run, *owned), owned->count,
				  contributors);
}

/* Unlinks it when every step is done, or when it has failed. */
static int conclude(struct gf_exec_run *run, int rc)
{
	if (rc) {
		gf_exec_stop(run);
		run->failed = true;
	} else if (!run->left) {
		finish(run);
		gf_pace_end(&run->pace);
		gf_exec_stop(run);
		run->started = run->done = true;
	}
	return rc;
}

static int start_library(struct gf_exec_run *run, struct gf_error *err)
{
	struct gf_comm *c = run->exec->comm;
	double began_s = gf_exec_coding_begin(run);
	void *data = run->data;

	run->left = 1;
	if (run->element.codec) {
		data = run->outgoing.memory;
		gf_codec_encode(run->element.codec, data, (const float *)(const void *)run->data,
				run->count_elems);
	}
	gf_exec_coding_end(run, began_s);
	return c->ops->iallreduce(c, data, run->count_elems, &run->wire, &run->library, err);
}

/* Sets run->left to 0 at the end. */
static int progress_library(struct gf_exec_run *run, struct gf_error *err)
{
	struct gf_comm *c = run->exec->comm;
	int rc = c->ops->test(c, run->library, err);
	double began_s;

	if (!rc)
		return 0;
	run->library = NULL;
	if (rc < 0)
		return rc;
	began_s = gf_exec_coding_begin(run);
	if (run->element.codec)
		gf_codec_decode(run->element.codec, (float *)(void *)run->data,
				run->outgoing.memory, run->count_elems);
	gf_exec_coding_end(run, began_s);
	run->left = 0;
	run->moves++;
	return 0;
}

int gf_exec_start(struct gf_exec_run *run, void *data, struct gf_error *err)
{
	assert(!run->started || run->done);
	run->data = data;
	run->started = true;
	run->done = run->failed = false;
	run->wire_bytes = 0;
	run->next = run->exec->running;
	run->link = &run->exec->running;
	if (run->next)
		run->next->link = &run->next;
	run->exec->running = run;
	run->exec->quiet = 0;
	return conclude(run,
			run->schedule ? gf_exec_steps_start(run, err) : start_library(run, err));
}

/* Has nothing come since a pass in vain? Then another would be. Now and then there is one all the
 * same, for those that were not asked about. */
static bool is_quiet(const struct gf_exec *x)
{
	struct gf_comm *c = x->comm;

	return x->quiet % PASS_EVERY && c->ops->poll && !c->ops->poll(c);
}

int gf_exec_progress(struct gf_exec *x, bool *moved, struct gf_error *err)
{
	uint64_t before, bytes_before = x->comm->moved_bytes;
	struct gf_exec_run *run, *next;
	int rc = 0;

	*moved = x->busy = false;
	if (is_quiet(x)) {
		x->quiet++;
		return 0;
	}
	for (run = x->running; run && !rc; run = next) {
		next = run->next;
		before = run->moves;
		rc = run->schedule ? gf_exec_steps_progress(run, err) : progress_library(run, err);
		*moved |= run->moves != before;
		rc = conclude(run, rc);
	}
	x->busy |= x->comm->moved_bytes != bytes_before;
	*moved |= x->busy;
	x->quiet = *moved ? 0 : x->quiet + 1;
	return rc;
}

double gf_exec_free_s(const struct gf_exec *x)
{
	const struct gf_exec_run *run;
	double least_s, now_s;

	if (!x->running || x->busy)
		return 0;
	/* without the clock where it is as fast to ask again */
	for (run = x->running; run; run = run->next)
		if (!gf_pace_may_rest(&run->pace))
			return 0;
	now_s = gf_clock_s();
	for (least_s = INFINITY, run = x->running; run; run = run->next)
		least_s = fmin(least_s, gf_pace_free_s(&run->pace, now_s));
	return least_s;
}

void gf_exec_record(struct gf_exec_run *run, struct gf_exec_times *times)
{
	run->times = times;
}

void gf_exec_reduce_for(struct gf_exec_run *run, void *ctx)
{
	assert(!run->started || run->done);
	run->element.ctx = ctx;
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

uint64_t gf_exec_wire_bytes(const struct gf_exec_run *run)
{
	return run->wire_bytes;
}

void gf_exec_waiting_for(const struct gf_exec_run *run, int *peer, size_t *step)
{
	*peer = -1;
	*step = 0;
	for (uint32_t i = 0; i < run->nactive; i++) {
		if (*peer >= 0 && run->active[i] >= *step)
			continue;
		*step = run->active[i];
		*peer = run->schedule->steps[*step].peer;
	}
}

static int give_up(struct gf_exec_run *run, double timeout_s, struct gf_error *err)
{
	const struct gf_step *step;
	int peer;
	size_t i;

	gf_exec_waiting_for(run, &peer, &i);
	if (peer < 0) {
		gf_error_set(err, -ETIMEDOUT,
			     "no progress for %g s in the library's %s (%zu bytes)", timeout_s,
			     run->nactive ? "part of an all-reduce" : "all-reduce",
			     run->count_elems * run->element.size_bytes);
	} else {
		step = &run->schedule->steps[i];
		gf_error_set(err, -ETIMEDOUT,
			     "no progress for %g s in step %zu of %zu (%s rank %d, %zu bytes)",
			     timeout_s, i, run->schedule->nsteps,
			     step->op == GF_STEP_SEND ? "send to" : "receive from", peer,
			     gf_element_wire_bytes(&run->element, step->range.count));
	}
	run->exec->comm->broken = true;
	return conclude(run, -ETIMEDOUT);
}

int gf_exec_wait(struct gf_exec *x, struct gf_exec_run *run, double timeout_s, struct gf_error *err)
{
	struct gf_comm *c = x->comm;
	struct gf_backoff *backoff = &x->backoff;
	double since_s = gf_clock_s();
	uint64_t moves = run->moves;
	double free_s;
	bool moved;
	int rc = 0;

	backoff->crowded = c->crowded;
	gf_backoff_reset(backoff);
	while (!run->done) {
		rc = gf_exec_progress(x, &moved, err);
		if (rc)
			return rc;
		if (c->on_wait && (rc = c->on_wait(c->on_wait_ctx, err))) {
			c->broken = true;
			return conclude(run, rc);
		}
		if (run->moves != moves) {
			moves = run->moves;
			since_s = gf_clock_s();
		} else if (timeout_s > 0 && gf_clock_s() - since_s >= timeout_s) {
			return give_up(run, timeout_s, err);
		}
		free_s = gf_exec_free_s(x);
		if (moved && !gf_backoff_worth(backoff, free_s))
			gf_backoff_reset(backoff);
		else
			gf_backoff_rest(backoff, free_s);
	}
	return 0;
}

/* The first rank of this rank's group that shares no memory with it; -1: all share it. */
static int stranger(struct gf_comm *c, int stride, int size)
{
	int first = c->rank - c->rank / stride % size * stride, i, peer;

	for (i = 0; i < size; i++) {
		peer = first + i * stride;
		if (peer != c->rank && !(c->ops->reduces_from && c->ops->reduces_from(c, peer)))
			return peer;
	}
	return -1;
}

int gf_exec_stages_check(struct gf_comm *c, const struct gf_coll_args *args, struct gf_error *err)
{
	int stride = 1, peer;

	for (size_t i = 0; args->stage_algorithms && i < args->nfactors; i++) {
		const char *name = args->stage_algorithms[i];

		if (!gf_stage_has(name, GF_STAGE_BY_HOST))
			return gf_error_set(err, -ENOTSUP,
					    "stage %zu: %s runs between GPUs, and messages go from "
					    "processor to processor here",
					    i, name);
		peer = gf_stage_has(name, GF_STAGE_ONE_HOST) ? stranger(c, stride, args->factors[i])
							     : -1;
		if (peer >= 0)
			return gf_error_set(
				err, -ENOTSUP,
				"stage %zu: %s wants ranks that share memory, and ranks %d and %d "
				"do not; ring, halving and mpi go between hosts",
				i, name, c->rank, peer);
		if (gf_stage_has(name, GF_STAGE_CALL) && !c->ops->team)
			return gf_error_set(err, -ENOTSUP,
					    "stage %zu: %s wants transport mpi, got %s", i, name,
					    c->ops->name);
		if (gf_stage_has(name, GF_STAGE_CALL) && args->lossy)
			return gf_error_set(err, -ENOTSUP,
					    "stage %zu: %s moves f32 as they are, without a codec",
					    i, name);
		stride *= args->factors[i];
	}
	return 0;
}
