/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_REPLAY_REPLAY_PARTS_H
#define GF_REPLAY_REPLAY_PARTS_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "simulator/replay/replay_plan.h"
#include "simulator/whatif/plan_variant.h"

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
