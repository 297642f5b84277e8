/* SPDX-License-Identifier: BSD-3-Clause */
/* Targets that are told how often groups exchange. */
#include <errno.h>

#include "cli/human.h"
#include "planner/emit.h"
#include "sim/predict.h"

/* A step with another period, of the whole model at a time; 0: not known. */
static double step_every_s(const struct gf_plan *p, size_t steps)
{
	struct gf_fabric fabric = gf_plan_fabric(p);
	struct gf_sim_result result = {0};
	struct gf_error err = {""};
	struct gf_plan other = *p;

	other.period.steps = steps;
	other.period.fragments = 1;
	other.period.delay = 0;
	return gf_predict_plan(&other, &fabric, &result, &err) < 0
		       ? 0
		       : result.iteration_s;
}

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

void gf_emit_note_period(const struct gf_emitter *e, const struct gf_plan *p,
			 struct gf_text *notes)
{
	struct gf_human h[2];
	double s;

	if (!p->predicted || !e->default_period)
		return;
	s = step_every_s(p, e->default_period);
	gf_text_addf(notes,
		     "%s as it is, every %zu steps: %s a step; as planned: "
		     "%s\n",
		     e->program, e->default_period,
		     s > 0 ? gf_human_time(s, &h[0]) : "unknown",
		     gf_human_time(p->predicted->iteration_s, &h[1]));
}
