/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_EXPLAIN_H
#define GF_PLANNER_EXPLAIN_H

#include "base/text.h"
#include "doc/plan.h"
#include "planner/make.h"

/*
 * Why a plan is as it is, for people: the iteration as a Gantt chart in text,
 * a table of the messages with their predicted times, and for each tensor the
 * comparison that decided its type, with its numbers. A policy with a rule of
 * its own (its `explain`) is quoted; of others, the prediction of the plan is
 * compared with the predictions of its nearest alternatives. A line per message
 * says how its price arose: where the line of costs comes from, startup, bytes
 * and slope, the codec's share, how much longer it took beside others, and how
 * long it waited for a lane.
 */
int gf_plan_chart(const struct gf_plan *p, size_t window, struct gf_text *out,
		  struct gf_error *err);

/* p: a whole plan with its prediction, which gf_request_plan made of this
 * request. window: the columns of the chart and its labels; 0: 73. -EINVAL: a
 * rule, or no prediction. */
int gf_plan_explain(const struct gf_request *r, const struct gf_plan *p,
		    size_t window, struct gf_text *out, struct gf_error *err);

/* The lines of the messages, on that fabric. */
int gf_explain_prices(const struct gf_plan *p, const struct gf_fabric *f,
		      struct gf_text *out, struct gf_error *err);

#endif
