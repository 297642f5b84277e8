/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_MAKE_PARTS_H
#define GF_PLANNER_MAKE_PARTS_H

#include "planner/make.h"

/* From a task to a plan, within the planner. */

/* Synchronous and dense: what the policies plan for. */
bool gf_task_is_plain(const struct gf_task *t);
/* By this policy, or (NULL) what auto finds, with the task's axes and its interval of doubt
 * (task_plan.c). -EINVAL, -ENOTSUP: not with these axes. */
int gf_task_plan_by(const struct gf_task *t, const struct gf_policy *policy, struct gf_plan *p,
		    struct gf_error *err);
/* The plan that `optimal` finds with the times of another model or the costs of another network. It
 * is predicted with the task's own; of a plain task only the lower bound is that of the search. */
int gf_task_plan_for(const struct gf_task *t, const struct gf_model_profile *model,
		     const struct gf_network *network, struct gf_plan *p, struct gf_error *err);
/* Predicts a plan into p->predicted, which is made where it is NULL, with the replays of `derived`,
 * or NULL. */
int gf_plan_predict(struct gf_plan *p, struct gf_derived *derived, struct gf_error *err);
/* The best by any policy (choose_plan.c). halves: those that split messages, too; named: a policy
 * was asked for, and doubt does not count. */
int gf_task_best(const struct gf_task *t, bool halves, bool named, struct gf_plan *p,
		 struct gf_error *err);

#endif
