/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_ENGINE_WORK_H
#define GF_ENGINE_WORK_H

#include <stdbool.h>
#include <stddef.h>

#include "coll/algorithm.h"
#include "comm/element.h"
#include "doc/plan.h"
#include "engine/pool.h"

/*
 * What the engine moves in a step: a list of messages, in the order in which
 * they start. A list may be another one every step (chunks are chosen anew,
 * warm-up changes their number), as long as all ranks give the same.
 */
struct gf_work {
	size_t first, last; /* the tensors it waits for */
	size_t after;       /* 0, or 1 + the message of this step that must
			     * have ended: an all-gather's reduce-scatter */
	bool simultaneous;  /* else all earlier messages have ended */
	bool at_end;        /* waits for the end of backward */
	/* algorithm, stages, codec; borrowed. Unused with `sparse`. */
	const struct gf_message *how;
	enum gf_coll_half half;
	/* NULL: f32 under how's codec, summed over ranks in place. Else sparse
	 * sets, by an algorithm of gf_sparse_algorithms. */
	const struct gf_algorithm *sparse;
	struct gf_element set;
	void *data;
	size_t count_elems;
};

/* When each message was ready (a message released by the end of backward:
 * then), started and ended, in gf_clock_s time. */
struct gf_message_times {
	double ready_s, start_s, end_s;
};

/*
 * What else is to be done on the thread that moves messages (the compute thread
 * where there is one rank). All ranks come to the same calls in the same order
 * but for `meanwhile`. All are optional.
 */
struct gf_engine_hooks {
	/* A message of the step in `slot` is about to go: its data is wanted;
	 * its tensors' gradients are there. */
	void (*prepare)(void *ctx, size_t slot, size_t message);
	/* It has come. */
	void (*finish)(void *ctx, size_t slot, size_t message);
	/* All of the step have. */
	void (*end)(void *ctx, size_t slot);
	/* Nothing moves at the moment: does a small piece of work on the step
	 * in `slot`, whose first `nready` tensors are ready; false: there is
	 * none. */
	bool (*meanwhile)(void *ctx, size_t slot, size_t nready);
	void *ctx;
	/* No message of a step starts before `end` of the step before. */
	bool serial;
};

/* The list that a plan's messages make, on a pool's memory: those in order,
 * then the all-gathers of split ones, the last message's first, since its
 * tensors are what the next forward uses first. */
size_t gf_work_count(const struct gf_plan *plan);
void gf_work_of_plan(const struct gf_plan *plan, const struct gf_pool *pool,
		     struct gf_work *work);

#endif
