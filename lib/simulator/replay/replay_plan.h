/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_REPLAY_REPLAY_PLAN_H
#define GF_REPLAY_REPLAY_PLAN_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "simulator/replay/replay.h"
#include "simulator/whatif/plan_variant.h"
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
	struct gf_replay_element element;
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

/* A plan's messages for gf_replay_plan, and the network. Zero: nothing yet. */
struct gf_replay_setting {
	struct gf_variant variant;
	struct gf_traffic traffic;
	struct gf_fabric_net net;
	struct gf_cost_line *ring; /* its lines, if from a ring */
	double *factor;            /* per rank, servers included */
	struct gf_slow_link *slow_links;
	size_t nslow_links;
	double steps; /* built so far, of all ranks and messages */
};

/* The plan as it would run under w, the levels as they were measured (replay_setting.c). To be
 * released after a failure, too. */
int gf_replay_setting_init(struct gf_replay_setting *s, const struct gf_plan *p,
			   const struct gf_what_if *w, struct gf_text *notes, struct gf_error *err);
void gf_replay_setting_release(struct gf_replay_setting *s);
/* The part that all replays of the setting share. */
struct gf_replay_input gf_replay_setting_input(const struct gf_replay_setting *s);

/* The schedules of the traffic's i-th message for all ranks (replay_setting.c): `half` is
 * all-gather for that half of a split one. -E2BIG without a text: that makes s->steps too many. To
 * be released after a failure, too. */
int gf_replayed_message_init(struct gf_replayed_message *m, struct gf_replay_setting *s, size_t i,
			     enum gf_coll_half half, struct gf_error *err);
void gf_replayed_messages_free(struct gf_replayed_message *m, size_t n, int ranks);

#endif
