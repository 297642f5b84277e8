/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "planner/make_parts.h"
#include "planner/policies/policies.h"
#include "planner/workbench.h"
#include "simulator/predict.h"

void gf_option_tell(const struct gf_option *o, struct gf_message *m)
{
	size_t k;

	m->algorithm = gf_xstrdup(o->algorithm);
	m->codec = gf_xstrdup(o->codec);
	m->stages = o->nstages ? gf_xcalloc(o->nstages, sizeof(*m->stages)) : NULL;
	m->nstages = o->nstages;
	for (k = 0; k < o->nstages; k++) {
		m->stages[k].factor = o->stages[k].factor;
		m->stages[k].algorithm = gf_xstrdup(o->stages[k].algorithm);
	}
}

static void copy_messages(const struct gf_workbench *w, const struct gf_draft *d, struct gf_plan *p)
{
	size_t i;

	p->messages = gf_xcalloc(d->nsends, sizeof(*p->messages));
	p->nmessages = d->nsends;
	for (i = 0; i < d->nsends; i++) {
		const struct gf_send *s = &d->sends[i];
		const struct gf_option *o = &w->menu.options[s->option];
		struct gf_message *m = &p->messages[i];

		m->first = s->first;
		m->last = s->last;
		m->mode = s->mode;
		m->release = s->release;
		m->half = s->half;
		gf_option_tell(o, m);
	}
}

static bool split(const struct gf_draft *d)
{
	size_t i;

	for (i = 0; i < d->nsends; i++)
		if (d->sends[i].half == GF_HALF_SPLIT)
			return true;
	return false;
}

static int predict(const struct gf_workbench *w, const struct gf_draft *d, struct gf_plan *p,
		   struct gf_error *err)
{
	int lanes = d->lanes > d->lanes_allowed ? d->lanes : d->lanes_allowed;
	int rc = gf_plan_predict(p, w->in->fabric.derived, err);
	struct gf_prediction *out = p->predicted;

	out->fastest_s = d->fastest_s;
	/* of the problem, which the plan need not have used up */
	out->lower_bound_s =
		split(d) ? gf_workbench_split_bound_s(w, lanes) : gf_workbench_bound_s(w, lanes);
	/* by lines, too */
	out->lower_bound_s = fmin(out->lower_bound_s, out->iteration_s);
	return rc;
}

static int finish(const struct gf_workbench *w, struct gf_draft *d, const char *policy,
		  struct gf_plan *p, struct gf_error *err)
{
	const struct gf_problem *in = w->in;

	memset(p, 0, sizeof(*p));
	p->system = gf_xstrdup("auto");
	p->policy = gf_xstrdup(policy);
	p->lanes = d->lanes;
	p->model = gf_model_profile_copy(in->model);
	gf_plan_take_fabric(p, &in->fabric);
	p->threshold_bytes = d->threshold_bytes;
	p->staleness = 1;
	copy_messages(w, d, p);
	gf_plan_set_types(p);
	return predict(w, d, p, err);
}

/*
 * Drafts are made by the lines of messages that everything divides. On levels, a plan's own
 * messages may take a little less or more. So the plans of the other policies are predicted, too,
 * and none of them is faster by more than the tolerance.
 */
static int find_better(const struct gf_workbench *w, bool automatic, struct gf_plan *p,
		       struct gf_error *err)
{
	struct gf_plan other;
	size_t i;
	int rc = 0;

	if (w->menu.options[0].origin != GF_PRICE_DERIVED || w->in->fabric.nlevels < 2)
		return 0;
	for (i = 0; gf_policies[i] && rc == 0; i++) {
		const struct gf_policy *policy = gf_policies[i];
		struct gf_draft d = {0};

		if (!policy->automatic || policy == &gf_policy_optimal)
			continue;
		gf_draft_make(&d, w, policy, w->in->lanes);
		rc = finish(w, &d, automatic ? policy->name : gf_policy_optimal.name, &other, err);
		gf_draft_release(&d);
		if (rc == 0 && (!w->in->max_messages || other.nmessages <= w->in->max_messages) &&
		    other.predicted->iteration_s * (1 + w->in->tolerance) <
			    p->predicted->iteration_s) {
			struct gf_plan worse = *p;

			*p = other;
			other = worse;
		}
		gf_plan_release(&other);
	}
	return rc;
}

static int run(const struct gf_policy *policy, bool automatic, const struct gf_problem *in,
	       struct gf_plan *p, struct gf_error *err)
{
	struct gf_problem problem = *in;
	struct gf_draft d = {0};
	struct gf_workbench w;
	int rc;

	problem.halves = policy->halves;
	rc = gf_workbench_init(&w, &problem, err);
	if (rc < 0)
		return rc;
	gf_draft_make(&d, &w, policy, in->lanes);
	rc = finish(&w, &d, automatic ? d.policy->name : policy->name, p, err);
	if (rc == 0 && policy == &gf_policy_optimal)
		rc = find_better(&w, automatic, p, err);
	if (rc < 0)
		gf_plan_release(p);
	gf_draft_release(&d);
	gf_workbench_release(&w);
	return rc;
}

int gf_policy_run(const struct gf_policy *policy, const struct gf_problem *in, struct gf_plan *p,
		  struct gf_error *err)
{
	return run(policy, false, in, p, err);
}

/* `optimal` drafts the other policies and searches from one lane up. */
int gf_policy_auto(const struct gf_problem *in, struct gf_plan *p, struct gf_error *err)
{
	return run(&gf_policy_optimal, true, in, p, err);
}
