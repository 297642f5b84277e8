/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_CONTRADICTIONS_H
#define GF_PLANNER_CONTRADICTIONS_H

#include "planner/make.h"

/* Wishes that do not go together, in the words of the options. */

/* Axes that contradict each other under this policy (NULL: auto); what remains
 * is found in the plan that was made. -EINVAL; -ENOTSUP: the algorithm cannot
 * add up the codec. */
int gf_task_check_axes(const struct gf_task *t, const struct gf_policy *policy,
		       struct gf_error *err);
/* A wish that the policy asked for cannot serve is a mistake: -EINVAL. */
int gf_task_check_served(const struct gf_task *t, const struct gf_request *r,
			 struct gf_error *err);
/* A wish that the plan found does not serve gets a line. */
void gf_task_note_served(const struct gf_task *t, const struct gf_request *r,
			 const struct gf_plan *p, struct gf_text *notes);

#endif
