/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_REPLAY_REPLAY_PLAN_H
#define GF_REPLAY_REPLAY_PLAN_H

#include <stdbool.h>

#include "base/text.h"
#include "simulator/replay/replay.h"
#include "simulator/whatif/whatif.h"

/*
 * A plan's schedules, of all ranks and messages, replayed on a topology beside its model's compute:
 * each rank's own where ranks are slow. Without a topology on a uniform network of the ring's
 * measured latency and bandwidth.
 */
struct gf_replayed_message {
	size_t plan_message; /* as in a struct gf_traffic */
	size_t first, last;  /* tensors; csc's packs have their own */
	size_t bytes;        /* on the wire, a rank's */
	double ready_s, start_s, end_s;
	size_t elems; /* of the schedule */
	struct gf_replay_element element;
	enum gf_half half; /* split: the reduce-scatter */
	struct gf_schedule *ranks;
};

struct gf_replayed {
	struct gf_outcome model; /* by the step model, for comparison */
	struct gf_outcome outcome;
	int ranks; /* servers included */
	struct gf_replayed_message *messages;
	size_t nmessages;
	struct gf_replay_result times; /* times.steps[message][rank][step] */
};

/* How many steps are replayed, at most; more is the closed forms' business. */
#define GF_REPLAY_STEPS_MOST 2000000.0

/*
 * No jitter and one run. -E2BIG: more steps than that; `model` is there, the rest is not. Other
 * errors: -EINVAL, -ENOTSUP (an algorithm without steps). notes gets lines for the user. The caller
 * releases on 0 and on -E2BIG.
 */
int gf_replay_plan(const struct gf_plan *p, const struct gf_what_if *w, struct gf_replayed *out,
		   struct gf_text *notes, struct gf_error *err);
void gf_replayed_release(struct gf_replayed *r);

/*
 * Proves the schedules of a plan's messages on all its ranks, under w as a replay has them
 * (collectives/prove.h). out gets one line per distinct schedule. 1: one is at fault; other errors
 * as gf_replay_plan's and gf_prove's. The text names the message.
 */
int gf_prove_plan(const struct gf_plan *p, const struct gf_what_if *w, struct gf_text *out,
		  struct gf_error *err);

#endif
