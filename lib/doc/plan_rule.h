/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOC_PLAN_RULE_H
#define GF_DOC_PLAN_RULE_H

#include "base/error.h"
#include "doc/plan.h"
#include "doc/profile.h"

/*
 * Binds a rule to a model and a number of ranks: tensors gather in generation
 * order until they are more than the threshold, then go as one message; the
 * rest goes at the end. Each message has the algorithm, stages and codec that
 * the rule names for its size. Stages of other ranks do not count; then, where
 * the algorithm goes by levels and the plan's levels are of so many ranks,
 * there is a stage for each. *whole is the caller's to release; its prediction
 * is absent. -EINVAL: not a rule.
 */
int gf_plan_bind(const struct gf_plan *rule,
		 const struct gf_model_profile *model, int ranks,
		 struct gf_plan *whole, struct gf_error *err);

#endif
