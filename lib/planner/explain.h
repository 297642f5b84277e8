/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_EXPLAIN_H
#define GF_PLANNER_EXPLAIN_H

#include "base/text.h"
#include "doc/plan.h"
#include "planner/make.h"

/* p: a whole plan with its prediction, which gf_request_plan made of this request. window: the
 * columns of the chart and its labels; 0: 73. -EINVAL: a rule, or no prediction. */
int gf_plan_explain(const struct gf_request *r, const struct gf_plan *p, size_t window,
		    struct gf_text *out, struct gf_error *err);

#endif
