/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_RT_ENGINE_H
#define GF_RT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "comm/comm.h"
#include "doc/plan.h"
#include "rt/pool.h"

/*
 * The runtime: gradients become ready, messages go out in the plan's order, on
 * one communication thread per rank that makes every call on the communicator
 * while the engine runs, keeps up to `lanes` messages in flight, and backs off
 * when nothing moves.
 *
 * A step, from the compute thread:
 *	gf_engine_begin(e);
 *	... backward calls gf_engine_ready(e, tensor) in any order ...
 *	gf_engine_backward_end(e);
 *	gf_engine_wait(e, &err);	// every message is reduced (summed)
 *
 * Start rule (SYSTEMS.md section 0): messages start in plan order; a normal
 * one when ready and all earlier ones have ended, a simultaneous one when ready
 * and fewer than `lanes` are active.
 *
 * A failure or timeout in the thread is kept and returned by every later call;
 * the text names the message, the step, and the rank to blame. The other ranks
 * are told and fail, too. Then gf_engine_free stops the thread, and the only
 * thing left to do is to end the job (gf_comm_abort, or exit with a status
 * other than 0): the communicator is `broken`.
 */
struct gf_engine;

struct gf_engine_config {
	struct gf_comm *comm;       /* borrowed */
	const struct gf_plan *plan; /* whole (bound), borrowed */
	struct gf_pool *pool;       /* borrowed */
	double timeout_s;     /* no progress for so long: give up; 0 never */
	size_t segment_bytes; /* transfers are cut at; 0: a good size */
};

/* When each message was ready (a message released by the end of backward:
 * then), started and ended, in gf_clock_s time. */
struct gf_message_times {
	double ready_s, start_s, end_s;
};

/*
 * All ranks together; they also make sure that all run the same version, the
 * same plan and the same sizes. Every rank succeeds or fails alike.
 * -EINVAL: the plan does not fit the ranks or the pool, or ranks differ (both
 * values are named); -ENOTSUP: this build does not run such a plan.
 */
int gf_engine_new(const struct gf_engine_config *config, struct gf_engine **e,
		  struct gf_error *err);
/* Stops the thread; NULL is allowed. What is under way is abandoned. */
void gf_engine_free(struct gf_engine *e);

/* So many steps were done by an earlier run: messages count on from there.
 * Between steps, on all ranks. */
void gf_engine_count_from(struct gf_engine *e, size_t steps);

void gf_engine_begin(struct gf_engine *e);
void gf_engine_ready(struct gf_engine *e, size_t tensor);
/* Whatever was not ready by now is (a tensor without a gradient). */
void gf_engine_backward_end(struct gf_engine *e);
/* Blocks until message i (or all) of this step has ended. */
int gf_engine_wait_message(struct gf_engine *e, size_t message,
			   struct gf_error *err);
/* After gf_engine_backward_end. */
int gf_engine_wait(struct gf_engine *e, struct gf_error *err);
/* Times of the last step that gf_engine_wait saw end; nmessages entries,
 * borrowed, good until the next gf_engine_wait. */
const struct gf_message_times *gf_engine_times(const struct gf_engine *e);

/*
 * Runs fn(comm, ctx) on the communication thread between steps, and returns
 * what it returned: every other use of the communicator (agreement, digests,
 * gathering) goes through here while the engine lives. All ranks make the same
 * calls in the same order. While one waits for the others it is watched like a
 * message.
 */
int gf_engine_call(struct gf_engine *e,
		   int (*fn)(struct gf_comm *comm, void *ctx,
			     struct gf_error *err),
		   void *ctx, struct gf_error *err);

#endif
