/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLLECTIVES_RUNNABLE_H
#define GF_COLLECTIVES_RUNNABLE_H

#include "base/error.h"
#include "documents/plan.h"
#include "documents/profile.h"

/*
 * From a plan to one that can be executed here. All functions depend only on their arguments: every
 * rank comes to the same result.
 */

/* Is this whole plan one for that model (names and counts of the tensors, in generation order) on
 * so many ranks? -EINVAL names both sides. */
int gf_plan_fit(const struct gf_plan *plan, const struct gf_model_profile *model, int ranks,
		struct gf_error *err);

/* Can the engine execute it? -ENOTSUP says what this build runs; -EINVAL: it is a rule, without a
 * model. */
int gf_plan_runnable(const struct gf_plan *plan, struct gf_error *err);

/* A job of so many ranks is the plan's ranks and its servers, or -EINVAL. */
int gf_plan_check_ranks(const struct gf_plan *plan, int ranks, struct gf_error *err);

#endif
