/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/selections/selection.h"

/* Every selection that a plan may name, in the order of listings. */
/* clang-format off */
#define SELECTIONS(X) \
	X(dense) \
	X(csc) \
	X(topk) \
	X(gtopk) \
	X(dgc) \
	X(ef21) \
	X(onebit) \
	X(powersgd) \
	X(randomk)
/* clang-format on */

#define DECLARE(name) extern const struct gf_select_plan gf_select_plan_##name;
#define ENTRY(name)   &gf_select_plan_##name,
#define NAME(name)    #name,

SELECTIONS(DECLARE)

const struct gf_select_plan *const gf_select_plans[] = {SELECTIONS(ENTRY) NULL};
const char *const gf_select_names[] = {SELECTIONS(NAME) NULL};
