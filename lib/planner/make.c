/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/make.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "planner/menu.h"
#include "planner/systems.h"
#include "sim/predict.h"

static const struct gf_system *system_of(const struct gf_request *r)
{
	return gf_system_find(r->system ? r->system : "auto");
}

void gf_request_documents(struct gf_request *r, const struct gf_documents *d)
{
	const struct gf_plan *p = d->plan;
	int ranks = 0;

	if (d->profile) {
		r->model = d->profile->model;
		r->network = d->profile->network;
		r->profile_digest = d->profile_digest;
	}
	if (d->topology) {
		r->levels = d->topology->levels;
		r->nlevels = d->topology->nlevels;
		r->topology_digest = d->topology_digest;
		ranks = d->topology->ranks;
	}
	if (r->network && r->network->ranks)
		ranks = r->network->ranks;
	if (p) {
		if (!r->model)
			r->model = p->model;
		if (!r->levels) {
			r->levels = p->levels;
			r->nlevels = p->nlevels;
			r->topology_digest = p->topology_digest;
		}
		if (!r->network && !d->topology) {
			r->network = p->network;
			r->profile_digest = p->profile_digest;
		}
		if (!ranks)
			ranks = p->ranks;
	}
	if (!r->ranks)
		r->ranks = ranks;
}

int gf_request_estimate(struct gf_request *r, const struct gf_model *model,
			const struct gf_estimate *in,
			struct gf_model_profile **made, struct gf_text *notes,
			struct gf_error *err)
{
	int rc;

	if (r->model)
		return gf_error_set(err, -EINVAL,
				    "want one model, got %s to estimate beside "
				    "%s with its times",
				    model->name, r->model->name);
	rc = gf_model_estimate(model, in, made, err);
	if (rc < 0)
		return rc;
	r->model = *made;
	gf_text_addf(notes,
		     "times of %s are estimated: %zu samples at %g FLOP/s\n",
		     model->name, in->batch, in->flops_per_s);
	return 0;
}

static int check_names(const struct gf_request *r, struct gf_error *err)
{
	if (r->policy && strcmp(r->policy, "auto") != 0 &&
	    !gf_policy_find(r->policy))
		return gf_error_set(err, -EINVAL,
				    "want a policy of gf-plan --list, got %s",
				    r->policy);
	if (r->system && !gf_system_find(r->system))
		return gf_error_set(err, -EINVAL,
				    "want a system of gf-plan --list, got %s",
				    r->system);
	return 0;
}

static void collect(const struct gf_request *r, struct gf_problem *p)
{
	*p = (struct gf_problem){
		.model = r->model,
		.network = r->network,
		.levels = r->nlevels ? r->levels : NULL,
		.nlevels = r->nlevels,
		.ranks = r->ranks,
		.lanes = r->lanes,
		.threshold_bytes = r->threshold_bytes,
		.algorithm = r->algorithm,
		.codecs = r->codecs,
	};
}

static void note_rescaled(const struct gf_problem *problem,
			  struct gf_text *notes)
{
	const struct gf_network *n = problem->network;

	if (n && n->nallreduce > 0 && n->ranks && n->ranks != problem->ranks)
		gf_text_addf(notes,
			     "the network was measured on %d ranks; its costs "
			     "are carried over to %d by closed forms\n",
			     n->ranks, problem->ranks);
}

/* What the user left open, as the system does it. */
static int apply_system(const struct gf_system *s, struct gf_problem *p,
			struct gf_text *notes, struct gf_error *err)
{
	struct gf_menu menu;
	int rc;

	if (!p->lanes)
		p->lanes = s->lanes;
	if (!p->codecs && s->codecs[0])
		p->codecs = s->codecs;
	if (p->algorithm || !s->algorithm)
		return 0;
	p->algorithm = s->algorithm;
	rc = gf_menu_init(&menu, p, err);
	if (rc == 0) {
		gf_menu_release(&menu);
		return 0;
	}
	if (rc != -ENOTSUP || !s->prefer)
		return rc;
	p->algorithm = NULL;
	gf_text_addf(notes,
		     "%s exchanges by %s, whose cost is not known here: the "
		     "cheapest algorithm is used\n",
		     s->name, s->algorithm);
	return 0;
}

int gf_request_pose(const struct gf_request *r, struct gf_problem *p,
		    struct gf_text *notes, struct gf_error *err)
{
	int rc = check_names(r, err);

	if (rc < 0)
		return rc;
	collect(r, p);
	if (!p->network && !p->levels)
		return gf_error_set(err, -EINVAL,
				    "want a topology or a profile with a "
				    "network, found neither");
	if (!p->model || !p->ranks)
		return 0;
	note_rescaled(p, notes);
	return apply_system(system_of(r), p, notes, err);
}

/* A model with `keep` of every tensor's elements: csc's steady state. */
static struct gf_model_profile *kept(const struct gf_model_profile *m,
				     double keep)
{
	struct gf_model_profile *copy = gf_model_profile_copy(m);
	size_t i;

	for (i = 0; i < copy->ntensors; i++) {
		double elems = (double)copy->tensors[i].count_elems * keep;

		copy->tensors[i].count_elems = (size_t)fmax(1, ceil(elems));
	}
	return copy;
}

static int run(const struct gf_policy *policy, const struct gf_problem *in,
	       struct gf_plan *p, struct gf_error *err)
{
	return policy ? gf_policy_run(policy, in, p, err)
		      : gf_policy_auto(in, p, err);
}

/*
 * csc sends packs of kept bytes for all but its first steps, so those choose
 * the threshold and give the bound.
 */
static int choose_threshold(const struct gf_system *s,
			    const struct gf_policy *policy,
			    struct gf_problem *problem, double *bound_s,
			    struct gf_error *err)
{
	struct gf_model_profile *model =
		kept(problem->model, s->selection.keep);
	struct gf_problem sparse = *problem;
	struct gf_plan p;
	int rc;

	sparse.model = model;
	rc = run(policy, &sparse, &p, err);
	if (rc == 0) {
		problem->threshold_bytes = p.threshold_bytes;
		*bound_s = p.predicted->lower_bound_s;
		gf_plan_release(&p);
	}
	gf_model_profile_free(model);
	return rc;
}

/* Selection, staleness and release, and what they change in the prediction. */
static int set_axes(const struct gf_system *s, double bound_s,
		    struct gf_plan *p, struct gf_error *err)
{
	struct gf_fabric fabric = gf_plan_fabric(p);
	struct gf_sim_result result = {.messages = p->predicted->messages};
	size_t i;
	int rc;

	p->selection = s->selection;
	if (s->selection.nwarmup)
		p->selection.warmup_densities =
			gf_xmemdup(s->selection.warmup_densities,
				   s->selection.nwarmup * sizeof(double));
	p->staleness = s->staleness;
	for (i = 0; i < p->nmessages; i++)
		if (s->release == GF_RELEASE_BACKWARD_END)
			p->messages[i].release = s->release;
	rc = gf_predict_plan(p, &fabric, &result, err);
	if (rc < 0)
		return rc;
	p->predicted->iteration_s = result.iteration_s;
	p->predicted->exposed_comm_s = result.exposed_comm_s;
	p->predicted->lower_bound_s = bound_s;
	return 0;
}

static int whole_plan(const struct gf_request *r, struct gf_problem *problem,
		      struct gf_plan *p, struct gf_error *err)
{
	const struct gf_system *s = system_of(r);
	const char *name = r->policy ? r->policy : s->policy;
	const struct gf_policy *policy = NULL;
	/* nothing with fewer bytes or more patience beats compute */
	double bound_s = problem->model->forward_s +
			 problem->model->backward_s + problem->model->update_s;
	bool dense = s->selection.method == GF_SELECT_DENSE;
	bool plain =
		dense && s->staleness == 1 && s->release == GF_RELEASE_READY;
	int rc = 0;

	if (name && strcmp(name, "auto") != 0)
		policy = gf_policy_find(name);
	if (s->selection.method == GF_SELECT_CSC)
		rc = choose_threshold(s, policy, problem, &bound_s, err);
	if (rc == 0)
		rc = run(policy, problem, p, err);
	if (rc < 0)
		return rc;
	free(p->system);
	p->system = gf_xstrdup(s->name);
	if (!plain)
		rc = set_axes(s, bound_s, p, err);
	if (rc == 0)
		rc = gf_plan_check(p, err);
	if (rc < 0)
		gf_plan_release(p);
	return rc;
}

static char *digest(const char *text)
{
	return text && text[0] ? gf_xstrdup(text) : NULL;
}

int gf_request_plan(const struct gf_request *r, struct gf_plan *p,
		    struct gf_text *notes, struct gf_error *err)
{
	struct gf_problem problem;
	int rc = gf_request_pose(r, &problem, notes, err);

	if (rc < 0)
		return rc;
	if (!problem.model || !problem.ranks)
		rc = gf_request_rule(r, &problem, p, notes, err);
	else
		rc = whole_plan(r, &problem, p, err);
	if (rc < 0)
		return rc;
	p->topology_digest = digest(r->topology_digest);
	p->profile_digest = digest(r->profile_digest);
	return 0;
}
