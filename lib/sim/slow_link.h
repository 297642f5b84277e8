/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_SLOW_LINK_H
#define GF_SIM_SLOW_LINK_H

#include "sim/variant.h"

/*
 * Fills the variant's traffic: its messages priced on its fabric, with what w's
 * slow links cost. Because of them each message's price gains the time that its
 * schedules take longer, when they are replayed by themselves on the topology
 * (sim/replay_plan.h). -ENOTSUP: too many steps, or an algorithm without any.
 */
int gf_variant_price(struct gf_variant *v, const struct gf_what_if *w,
		     struct gf_error *err);

#endif
