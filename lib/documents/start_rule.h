/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_START_RULE_H
#define GF_DOCUMENTS_START_RULE_H

#include <stdbool.h>

/*
 * The start rule (gf-time(7)). The step model, the replay of schedules and both engines
 * ask here whether a message may start, so a run starts messages as its prediction does. Order is
 * how they ask: only for the first message that has not started, of the first step that has such.
 */
struct gf_held {           /* what may hold the message back; zeros do not */
	bool by_release;   /* backward, whose end it waits for, has not ended */
	bool by_gradients; /* those of its tensors are not all made */
	bool by_half;      /* the message whose result it takes up has not ended: an all-gather's
			    * reduce-scatter */
	bool by_step;      /* the step before, which it relies on, has not */
	bool simultaneous; /* it starts beside fewer than `lanes` active ones; else beside none */
	int active, lanes;
};

/* In line, since the planner's search asks for every message that it tries. */
static inline bool gf_may_start(const struct gf_held *held)
{
	return !held->by_release && !held->by_gradients && !held->by_half && !held->by_step &&
	       held->active < (held->simultaneous ? held->lanes : 1);
}

#endif
