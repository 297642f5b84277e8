/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/period.h"

/* Every period that a plan may name, in the order of listings. */
/* clang-format off */
#define PERIODS(X) \
	X(every, "every") \
	X(local_sgd, "local-sgd") \
	X(post_local, "post-local") \
	X(diloco, "diloco") \
	X(streaming, "streaming")
/* clang-format on */

#define DECLARE(id, name)                                                      \
	extern const struct gf_period_plan gf_period_plan_##id;
#define ENTRY(id, name) &gf_period_plan_##id,
#define NAME(id, name)  name,

PERIODS(DECLARE)

const struct gf_period_plan *const gf_period_plans[] = {PERIODS(ENTRY) NULL};
const char *const gf_period_names[] = {PERIODS(NAME) NULL};
