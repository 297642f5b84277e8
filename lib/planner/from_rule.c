/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binds a given rule to a model and its ranks. The rule sets the cut,
 * algorithms, stages and codecs, so nothing is searched; only the prediction is
 * computed, from the network or levels of other documents.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "doc/plan_brief.h"
#include "doc/plan_rule.h"
#include "planner/make.h"
#include "planner/workbench.h"
#include "sim/doubt.h"
#include "sim/predict.h"

static int check(const struct gf_request *r, struct gf_error *err)
{
	if (r->wishes)
		return gf_error_set(err, -EINVAL,
				    "want a model and ranks beside a rule, "
				    "which says the plan's axes, got --%.*s",
				    (int)strcspn(r->wishes, " "), r->wishes);
	if (!r->model || !r->fabric.ranks)
		return gf_error_set(err, -EINVAL,
				    "want %s to bind the rule to, found none",
				    r->model ? "a number of ranks (--ranks)"
					     : "the tensors of a model");
	return 0;
}

/* No plan of these codecs is faster; the rule may name what the menu lacks. */
static int bound(const struct gf_request *r, const struct gf_plan *p,
		 struct gf_prediction *out, struct gf_error *err)
{
	const char *codecs[GF_CODECS + 1];
	struct gf_problem problem = {
		.model = p->model,
		.fabric = r->fabric,
		.lanes = p->lanes,
		.codecs = gf_plan_codecs(p, codecs),
	};
	struct gf_workbench w;
	int rc;

	problem.fabric.ranks = p->ranks;
	rc = gf_workbench_init(&w, &problem, err);

	if (rc < 0)
		return rc;
	out->lower_bound_s =
		fmin(gf_workbench_bound_s(&w, p->lanes), out->iteration_s);
	gf_workbench_release(&w);
	return 0;
}

static int predict(const struct gf_request *r, struct gf_plan *p,
		   struct gf_error *err)
{
	struct gf_fabric fabric = gf_plan_fabric(p);
	struct gf_sim_result result = {0};
	struct gf_prediction *out = gf_xcalloc(1, sizeof(*out));
	int rc;

	out->nmessages = p->nmessages;
	out->messages = gf_xcalloc(p->nmessages, sizeof(*out->messages));
	result.messages = out->messages;
	p->predicted = out;
	rc = gf_predict_plan(p, &fabric, &result, err);
	if (rc < 0)
		return rc;
	out->iteration_s = result.iteration_s;
	out->compute_s = result.compute_s;
	out->exposed_comm_s = result.exposed_comm_s;
	return bound(r, p, out, err);
}

int gf_request_from_rule(const struct gf_request *r, struct gf_plan *p,
			 struct gf_error *err)
{
	struct gf_plan rule = *r->rule;
	int rc = check(r, err);

	if (rc < 0)
		return rc;
	/* costs and levels are the request's, which are the rule's where no
	 * other document has any */
	rule.network = (struct gf_network *)r->fabric.network;
	rule.levels = (struct gf_level *)r->fabric.levels;
	rule.nlevels = r->fabric.nlevels;
	rule.topology_digest = rule.profile_digest = NULL;
	if (!rule.network && !rule.nlevels)
		return gf_error_set(err, -EINVAL,
				    "want a topology or a profile with a "
				    "network, found neither");
	rc = gf_plan_bind(&rule, r->model, r->fabric.ranks, p, err);
	if (rc < 0)
		return rc;
	rc = predict(r, p, err);
	if (rc == 0)
		rc = gf_doubt_predict(p, err);
	if (rc < 0)
		gf_plan_release(p);
	return rc;
}
