/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_PROVE_PLAN_H
#define GF_SIM_PROVE_PLAN_H

#include "base/text.h"
#include "sim/whatif.h"

/*
 * Proves the schedules of a plan's messages on all its ranks, under w as a
 * replay has them (coll/prove.h). out gets one line per distinct schedule.
 * 1: one is at fault; other errors as gf_replay_plan's and gf_prove's. The text
 * names the message.
 */
int gf_prove_plan(const struct gf_plan *p, const struct gf_what_if *w,
		  struct gf_text *out, struct gf_error *err);

#endif
