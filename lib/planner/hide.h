/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_HIDE_H
#define GF_PLANNER_HIDE_H

#include "planner/make.h"
#include "planner/menu.h"
#include "sim/step.h"

/* Parts of a period's plan; for period_plan.c and hide.c. */

/* The period's messages, one for each fragment: contiguous tensors, the largest
 * of them as small as can be. */
void gf_period_cut(struct gf_period *p, const struct gf_model_profile *m,
		   const struct gf_menu *menu);

/* Sets what the user left open of steps, fragments and delay so that no more
 * than axes->hide of the period is exposed: the fewest steps, then fragments,
 * then steps of delay. p: with the period, but for its messages; inner: a step
 * of a group. -ENOTSUP: no such period is left. */
int gf_period_hide(const struct gf_task *t, struct gf_plan *p,
		   const struct gf_sim_result *inner,
		   const struct gf_menu *menu, struct gf_error *err);

#endif
