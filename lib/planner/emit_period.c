/* SPDX-License-Identifier: BSD-3-Clause */
/* Targets that are told how often groups exchange. */
#include <errno.h>

#include "planner/emit.h"

int gf_emit_check_period(const struct gf_request *r,
			 const struct gf_plan *given,
			 const struct gf_emitter *e, struct gf_error *err)
{
	const int asked = r->axes && r->axes->period > 0 ? r->axes->period : 0;
	const struct gf_period_plan *got =
		given ? gf_period_plan(&given->period) : gf_period_plans[asked];
	const bool period = !(got->traits & GF_PERIOD_EVERY);

	if (period == ((e->takes & GF_EMIT_PERIOD) != 0))
		return 0;
	if (period)
		return gf_error_set(err, -ENOTSUP,
				    "--emit %s: want a plan in which all ranks "
				    "exchange in every step, got period %s",
				    e->name, got->name);
	return gf_error_set(err, -ENOTSUP,
			    "--emit %s: want a plan with a period (--period "
			    "diloco), got %s",
			    e->name, got->name);
}
