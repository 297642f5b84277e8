/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/make.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "planner/menu.h"
#include "planner/policies.h"
#include "planner/work.h"
#include "sim/predict.h"

/* A tenth of them, the share that is kept by default, is still a choice. */
#define MIN_CHUNKS 32

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
		r->rule = p->rule ? p : NULL;
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
			ranks = p->ranks + p->servers;
	}
	r->ranks_asked = r->ranks > 0;
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
				    "--policy: want one of gf-plan --list, got "
				    "%s",
				    r->policy);
	if (r->system && !gf_system_find(r->system))
		return gf_error_set(err, -EINVAL,
				    "--system: want one of gf-plan --list, got "
				    "%s",
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
	int ranks = problem->ranks + problem->servers;

	if (n && n->nallreduce > 0 && n->ranks && n->ranks != ranks)
		gf_text_addf(notes,
			     "the network was measured on %d ranks; its costs "
			     "are carried over to %d by closed forms\n",
			     n->ranks, ranks);
}

/* What is assumed of messages at once where nobody measured or replayed it. */
static void note_contention(const struct gf_problem *problem,
			    struct gf_text *notes)
{
	struct gf_menu menu;

	if (problem->lanes == 1 || gf_menu_init(&menu, problem, NULL) < 0)
		return;
	if (menu.derived.unknown)
		gf_text_addf(notes,
			     "%s on %d ranks has too many steps to replay: n "
			     "messages at once are taken for n times slower\n",
			     menu.derived.unknown,
			     problem->ranks + problem->servers);
	gf_menu_release(&menu);
}

/* Values that travel with their indices are sent as they are: of the codecs
 * that are allowed, only that. */
static bool plain_only(const struct gf_system *s, const struct gf_problem *p)
{
	size_t i;

	if (s->selection.method != GF_SELECT_TOPK &&
	    s->selection.method != GF_SELECT_GTOPK)
		return false;
	for (i = 0; p->codecs && p->codecs[i]; i++)
		if (strcmp(p->codecs[i], "f32") == 0)
			return true;
	return false;
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
	if (plain_only(s, p))
		p->codecs = NULL;
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

/*
 * csc sends packs of kept bytes for all but its first steps, so those choose
 * the threshold and give the bound.
 */
static int pack(struct gf_task *t, struct gf_error *err)
{
	struct gf_problem kept = t->problem;

	kept.keep = t->system.selection.keep;
	if (t->policy == &gf_policy_single && !kept.threshold_bytes)
		kept.threshold_bytes = gf_model_profile_bytes(kept.model);
	return gf_policy_packs(&kept, &t->problem.threshold_bytes, &t->bound_s,
			       err);
}

/*
 * A chunk that nobody asked for is meant for models of millions: a smaller one
 * is cut into MIN_CHUNKS, so that there is something to choose from. One that
 * was asked for must fit.
 */
static int fit_chunks(const struct gf_request *r, struct gf_selection *s,
		      const struct gf_model_profile *m, struct gf_text *notes,
		      struct gf_error *err)
{
	bool asked = r->axes && r->axes->chunk_elems;
	size_t elems = 0, i, before = s->chunk_elems;

	for (i = 0; i < m->ntensors; i++)
		elems += m->tensors[i].count_elems;
	if (asked && before > elems)
		return gf_error_set(err, -EINVAL,
				    "--chunk: want at most the %zu elements of "
				    "%s, got %zu",
				    elems, m->name, before);
	if (asked || elems / MIN_CHUNKS >= before)
		return 0;
	s->chunk_elems = elems > MIN_CHUNKS ? elems / MIN_CHUNKS : 1;
	gf_text_addf(notes,
		     "%s has %zu elements: chunks are of %zu instead of %zu\n",
		     m->name, elems, s->chunk_elems, before);
	return 0;
}

static int pose_whole(const struct gf_request *r, struct gf_task *t,
		      struct gf_text *notes, struct gf_error *err)
{
	struct gf_problem *p = &t->problem;
	const char *policy = r->policy ? r->policy : t->system.policy;
	int rc;

	if (policy && strcmp(policy, "auto") != 0)
		t->policy = gf_policy_find(policy);
	p->servers = t->system.servers;
	/* documents count every rank, --ranks those that compute */
	if (!r->ranks_asked)
		p->ranks -= p->servers;
	if (p->ranks < 1)
		return gf_error_set(err, -EINVAL,
				    "--servers: want a rank beside the server, "
				    "got %d ranks in all",
				    r->ranks);
	if (r->axes) {
		rc = gf_axes_algorithm(r->axes, p->ranks, &p->algorithm, err);
		if (rc < 0)
			return rc;
		p->factors = r->axes->factors;
		p->nfactors = r->axes->nfactors;
	}
	note_rescaled(p, notes);
	rc = apply_system(&t->system, p, notes, err);
	if (rc == 0 && t->system.selection.method == GF_SELECT_CSC)
		rc = fit_chunks(r, &t->system.selection, p->model, notes, err);
	if (rc == 0 && t->system.selection.method == GF_SELECT_CSC)
		rc = pack(t, err);
	if (rc == 0)
		note_contention(p, notes);
	return rc;
}

int gf_request_pose(const struct gf_request *r, struct gf_task *t,
		    struct gf_text *notes, struct gf_error *err)
{
	int rc = check_names(r, err);

	if (rc < 0)
		return rc;
	memset(t, 0, sizeof(*t));
	t->system = *gf_system_find(r->system ? r->system : "auto");
	rc = gf_axes_apply(r->axes, &t->system, err);
	if (rc < 0)
		return rc;
	collect(r, &t->problem);
	if (!r->network && !r->nlevels)
		return gf_error_set(err, -EINVAL,
				    "want a topology or a profile with a "
				    "network, found neither");
	if (!r->model || !r->ranks)
		return 0;
	return pose_whole(r, t, notes, err);
}

/* Synchronous, dense and as soon as ready: what the policies plan for. */
static bool plain(const struct gf_system *s)
{
	return s->selection.method == GF_SELECT_DENSE && s->staleness == 1 &&
	       s->release == GF_RELEASE_READY;
}

/* No plan with these axes takes less. */
static int bound(const struct gf_task *t, double *bound_s, struct gf_error *err)
{
	const struct gf_model_profile *m = t->problem.model;
	double compute_s = m->forward_s + m->backward_s + m->update_s;
	double exchange_s;
	struct gf_work w;
	int rc;

	*bound_s = fmax(compute_s, t->system.staleness > 1 ? 0 : t->bound_s);
	if (t->system.selection.method != GF_SELECT_DENSE)
		return 0;
	rc = gf_work_init(&w, &t->problem, err);
	if (rc < 0)
		return rc;
	exchange_s = gf_work_exchange_bound_s(
		&w, t->problem.lanes ? t->problem.lanes : GF_LANES_MOST);
	gf_work_release(&w);
	*bound_s = t->system.staleness > 1 ? fmax(compute_s, exchange_s)
					   : compute_s + exchange_s;
	return 0;
}

/* Selection, staleness and release, and what they change in the prediction. */
static int set_axes(const struct gf_task *t, struct gf_plan *p,
		    struct gf_error *err)
{
	const struct gf_system *s = &t->system;
	struct gf_sim_result result = {.messages = p->predicted->messages};
	struct gf_fabric fabric;
	size_t i;
	int rc;

	p->selection = s->selection;
	if (s->selection.nwarmup)
		p->selection.warmup_densities =
			gf_xmemdup(s->selection.warmup_densities,
				   s->selection.nwarmup * sizeof(double));
	p->staleness = s->staleness;
	p->pipeline_warmup_steps = s->pipeline_warmup_steps;
	if (s->selection.method == GF_SELECT_CSC)
		p->threshold_bytes = t->problem.threshold_bytes;
	for (i = 0; i < p->nmessages; i++)
		if (s->release == GF_RELEASE_BACKWARD_END)
			p->messages[i].release = s->release;
	rc = gf_plan_check(p, err);
	if (rc < 0)
		return rc;
	fabric = gf_plan_fabric(p);
	rc = gf_predict_plan(p, &fabric, &result, err);
	if (rc < 0)
		return rc;
	p->predicted->iteration_s = result.iteration_s;
	p->predicted->exposed_comm_s = result.exposed_comm_s;
	return bound(t, &p->predicted->lower_bound_s, err);
}

int gf_task_plan(const struct gf_task *t, const struct gf_policy *policy,
		 struct gf_plan *p, struct gf_error *err)
{
	int rc = policy ? gf_policy_run(policy, &t->problem, p, err)
			: gf_policy_auto(&t->problem, p, err);

	if (rc < 0)
		return rc;
	free(p->system);
	p->system = gf_xstrdup(t->system.name);
	rc = plain(&t->system) ? gf_plan_check(p, err) : set_axes(t, p, err);
	if (rc < 0)
		gf_plan_release(p);
	return rc;
}

static bool better(const struct gf_plan *a, const struct gf_plan *b)
{
	double x = a->predicted->iteration_s, y = b->predicted->iteration_s;

	if (x != y)
		return x < y;
	if (a->lanes != b->lanes)
		return a->lanes < b->lanes;
	return a->nmessages < b->nmessages;
}

/* The policies know nothing of the other axes: where these change what counts,
 * the best is found by trying all. */
static int best_of_all(const struct gf_task *t, bool halves, struct gf_plan *p,
		       struct gf_error *err)
{
	struct gf_plan now;
	bool found = false;
	size_t i;

	for (i = 0; gf_policies[i]; i++) {
		int rc;

		if (!gf_policies[i]->automatic && !halves)
			continue;
		rc = gf_task_plan(t, gf_policies[i], &now, err);
		if (rc == -EINVAL && !gf_policies[i]->automatic)
			continue; /* not with these axes */
		if (rc < 0) {
			if (found)
				gf_plan_release(p);
			return rc;
		}
		if (!found || better(&now, p)) {
			if (found)
				gf_plan_release(p);
			*p = now;
			found = true;
		} else {
			gf_plan_release(&now);
		}
	}
	return 0;
}

static char *digest(const char *text)
{
	return text && text[0] ? gf_xstrdup(text) : NULL;
}

/* A wish that the policy asked for cannot serve is a mistake. */
static int check_served(const struct gf_request *r, const struct gf_task *t,
			struct gf_error *err)
{
	const struct gf_policy *p = t->policy;

	if (p && r->threshold_bytes && !p->thresholds &&
	    t->system.selection.method != GF_SELECT_CSC)
		return gf_error_set(err, -EINVAL,
				    "--threshold: want policy threshold or "
				    "dear, or selection csc, got policy %s",
				    p->name);
	if (p && r->halves && !p->halves)
		return gf_error_set(err, -EINVAL,
				    "--halves: want policy auto, got %s",
				    p->name);
	return 0;
}

static void note_served(const struct gf_request *r, const struct gf_task *t,
			const struct gf_plan *p, struct gf_text *notes)
{
	const struct gf_policy *found = gf_policy_find(p->policy);

	if (!t->policy && r->threshold_bytes && found && !found->thresholds &&
	    t->system.selection.method != GF_SELECT_CSC)
		gf_text_addf(notes,
			     "%s is faster than policy threshold with %zu "
			     "bytes\n",
			     found->name, r->threshold_bytes);
}

static int plan_posed(const struct gf_request *r, struct gf_plan *p,
		      struct gf_text *notes, struct gf_error *err)
{
	struct gf_task t;
	int rc = gf_request_pose(r, &t, notes, err);

	if (rc < 0)
		return rc;
	if (!t.problem.model || !t.problem.ranks)
		return gf_request_rule(r, &t.problem, p, notes, err);
	rc = check_served(r, &t, err);
	if (rc < 0)
		return rc;
	if (t.policy || (plain(&t.system) && !r->halves))
		rc = gf_task_plan(&t, t.policy, p, err);
	else
		rc = best_of_all(&t, r->halves, p, err);
	if (rc == 0)
		note_served(r, &t, p, notes);
	return rc;
}

int gf_request_plan(const struct gf_request *r, struct gf_plan *p,
		    struct gf_text *notes, struct gf_error *err)
{
	int rc = r->rule ? gf_request_from_rule(r, p, err)
			 : plan_posed(r, p, notes, err);

	if (rc < 0)
		return rc;
	p->topology_digest = digest(r->topology_digest);
	p->profile_digest = digest(r->profile_digest);
	return 0;
}
