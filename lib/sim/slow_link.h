/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_SLOW_LINK_H
#define GF_SIM_SLOW_LINK_H

#include "sim/whatif.h"

/*
 * What w's slow links cost: each message's price gains the time that its
 * schedules take longer because of them, when they are replayed by themselves
 * on the topology (sim/replay_plan.h). p, on whose fabric the traffic was
 * priced, is the plan as it would run. -ENOTSUP: too many steps, or an
 * algorithm without any.
 */
int gf_slow_links_charge(struct gf_traffic *t, const struct gf_plan *p,
			 const struct gf_what_if *w, struct gf_error *err);

#endif
