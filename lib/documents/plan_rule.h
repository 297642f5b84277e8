/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_PLAN_RULE_H
#define GF_DOCUMENTS_PLAN_RULE_H

#include "base/error.h"
#include "documents/plan.h"
#include "documents/profile.h"

/*
 * Binds a rule to a model and a number of ranks: tensors gather in generation order until they are
 * more than the threshold, then go as one message; the rest goes at the end. Each message has the
 * algorithm, stages and codec that the rule names for its size. Stages for another number of ranks
 * are ignored; then, if the algorithm goes by levels and the plan's levels have that number of
 * ranks, there is a stage for each level. *whole is the caller's to release; its prediction is
 * absent. -EINVAL: not a rule.
 */
int gf_plan_bind(const struct gf_plan *rule, const struct gf_model_profile *model, int ranks,
		 struct gf_plan *whole, struct gf_error *err);

/*
 * Gives the entries whose algorithm goes by levels the stages of a job whose ranks are the product
 * of these factors, innermost first. An entry with stages of as many ranks keeps them, and so does
 * a plan whose levels are of as many.
 */
void gf_rule_place(struct gf_plan *rule, const int *factors, size_t n);
/* Stages of messages and of a rule's entries that leave it to the runtime are carried out by NCCL,
 * which takes no codec. */
void gf_plan_use_calls(struct gf_plan *p);

#endif
