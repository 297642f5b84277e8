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
 * A failure or timeout in the thread is kept and returned by every later call.
 */
struct gf_engine;

struct gf_engine_config {
	struct gf_comm *comm;       /* borrowed */
	const struct gf_plan *plan; /* whole (bound), borrowed */
	struct gf_pool *pool;       /* borrowed */
	double timeout_s;           /* no progress for so long: give up; 0 never */
};

/* When each message was ready, started and ended, in gf_clock_s time. */
struct gf_message_times {
	double ready_s, start_s, end_s;
};

int gf_engine_new(const struct gf_engine_config *config, struct gf_engine **e,
		  struct gf_error *err);
void gf_engine_free(struct gf_engine *e);

void gf_engine_begin(struct gf_engine *e);
void gf_engine_ready(struct gf_engine *e, size_t tensor);
void gf_engine_backward_end(struct gf_engine *e);
/* Blocks until message i (or all) of this step has ended. */
int gf_engine_wait_message(struct gf_engine *e, size_t message,
			   struct gf_error *err);
int gf_engine_wait(struct gf_engine *e, struct gf_error *err);
/* Times of the last finished step; nmessages entries, borrowed. */
const struct gf_message_times *gf_engine_times(const struct gf_engine *e);

/*
 * Runs fn(comm, ctx) on the communication thread between steps, and returns
 * what it returned: every other use of the communicator (agreement, digests,
 * gathering) goes through here while the engine lives.
 */
int gf_engine_call(struct gf_engine *e,
		   int (*fn)(struct gf_comm *comm, void *ctx,
			     struct gf_error *err),
		   void *ctx, struct gf_error *err);

#endif
