/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/make.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/heap.h"
#include "planner/contradictions.h"
#include "planner/policies.h"
#include "planner/work.h"
#include "sim/doubt.h"
#include "sim/predict.h"

/* Synchronous and dense: what the policies plan for. */
static bool plain(const struct gf_task *t)
{
	return gf_selection_has(&t->selection, GF_SELECT_LOSSLESS) &&
	       t->system.staleness == 1;
}

/* What an exchange cannot do without: with several lanes and stale gradients,
 * its startup may pass while the exchange before it sends. */
static double exchange_bound_s(const struct gf_task *t, const struct gf_work *w)
{
	int lanes = t->problem.lanes ? t->problem.lanes : GF_LANES_MOST;
	double bound_s = gf_work_exchange_bound_s(w, lanes);
	double startup_s = bound_s;
	size_t i;

	if (t->system.staleness <= 1 || lanes <= 1)
		return bound_s;
	for (i = 0; i < w->menu.noptions; i++)
		startup_s = fmin(startup_s, w->menu.options[i].startup_s);
	return bound_s - startup_s;
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
	if (!gf_selection_has(&t->selection, GF_SELECT_LOSSLESS))
		return 0;
	rc = gf_work_init(&w, &t->problem, err);
	if (rc < 0)
		return rc;
	exchange_s = exchange_bound_s(t, &w);
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

	gf_selection_release(&p->selection);
	p->selection = gf_selection_copy(&t->selection);
	p->staleness = s->staleness;
	p->pipeline_warmup_steps = s->pipeline_warmup_steps;
	if (gf_selection_has(&t->selection, GF_SELECT_RECUTS))
		p->threshold_bytes = t->problem.threshold_bytes;
	for (i = 0; i < p->nmessages; i++)
		if (s->release == GF_RELEASE_BACKWARD_END)
			p->messages[i].release = s->release;
	rc = gf_plan_check(p, err);
	if (rc < 0)
		return rc;
	fabric = gf_plan_fabric(p);
	fabric.derived = t->problem.derived;
	rc = gf_predict_plan(p, &fabric, &result, err);
	if (rc < 0)
		return rc;
	p->predicted->iteration_s = result.iteration_s;
	p->predicted->exposed_comm_s = result.exposed_comm_s;
	p->predicted->fastest_s = 0; /* that was without these axes */
	rc = bound(t, &p->predicted->lower_bound_s, err);
	p->predicted->lower_bound_s =
		fmin(p->predicted->lower_bound_s, p->predicted->iteration_s);
	return rc;
}

/* By this policy, or (NULL) what auto finds. */
static int plan_by(const struct gf_task *t, const struct gf_policy *policy,
		   struct gf_plan *p, struct gf_error *err)
{
	int rc = gf_task_check_axes(t, policy, err);

	if (rc == 0)
		rc = policy ? gf_policy_run(policy, &t->problem, p, err)
			    : gf_policy_auto(&t->problem, p, err);
	if (rc < 0)
		return rc;
	free(p->system);
	p->system = gf_xstrdup(t->system.name);
	rc = plain(t) ? gf_plan_check(p, err) : set_axes(t, p, err);
	if (rc == 0)
		rc = gf_doubt_predict(p, err);
	if (rc < 0)
		gf_plan_release(p);
	return rc;
}

/* A prediction and the two ends of its interval. */
enum { ENDS = 3 };

static double end_s(const struct gf_plan *p, int end)
{
	const struct gf_prediction *pr = p->predicted;
	const double ends[ENDS] = {pr->iteration_s, pr->iteration_low_s,
				   pr->iteration_high_s};

	return ends[pr->iteration_high_s > 0 ? end : 0];
}

/* By what share p is slower, at worst, than the best of the plans would be, or
 * than the fastest that was found. ends: 1 without the interval, else ENDS.
 */
static double regret(const struct gf_plan *p, const struct gf_plan *plans,
		     size_t n, int ends)
{
	double worst = 0;
	int end;
	size_t i;

	for (end = 0; end < ends; end++) {
		double best = INFINITY;

		for (i = 0; i < n; i++)
			best = fmin(best, end_s(&plans[i], end));
		for (i = 0; end == 0 && i < n; i++)
			if (plans[i].predicted->fastest_s > 0)
				best = fmin(best,
					    plans[i].predicted->fastest_s);
		if (best > 0)
			worst = fmax(worst, end_s(p, end) / best - 1);
	}
	return worst;
}

/* Fewer lanes, then fewer messages, then less regret. */
static bool simpler(const struct gf_plan *a, double a_regret,
		    const struct gf_plan *b, double b_regret)
{
	if (a->lanes != b->lanes)
		return a->lanes < b->lanes;
	if (a->nmessages != b->nmessages)
		return a->nmessages < b->nmessages;
	return a_regret < b_regret;
}

/* The plan that is least bad over the intervals, or without them if a policy
 * was named; plans whose regrets differ by less than the tolerance are the
 * same. */
static size_t choose(const struct gf_task *t, bool named,
		     const struct gf_plan *plans, size_t n)
{
	double *regrets = gf_xcalloc(n + 1, sizeof(*regrets));
	double least = INFINITY, limit = t->problem.tolerance;
	size_t best = n, i;

	for (i = 0; i < n; i++) {
		regrets[i] = regret(&plans[i], plans, n, named ? 1 : ENDS);
		least = fmin(least, regrets[i]);
	}
	limit = least > limit ? least + limit : limit;
	for (i = 0; i < n; i++)
		if (regrets[i] <= limit &&
		    (best == n || simpler(&plans[i], regrets[i], &plans[best],
					  regrets[best])))
			best = i;
	free(regrets);
	return best;
}

/*
 * The policies know nothing of the other axes, nor of doubt: where these change
 * what counts, the best is found by trying all. `optimal` goes by the name of
 * the policy that found its plan; both its fastest plan and the simplest within
 * the tolerance are tried.
 */
static int try_all(const struct gf_task *t, bool halves, struct gf_plan *plans,
		   size_t *n, struct gf_error *err)
{
	struct gf_task fastest = *t;
	size_t i;
	int rc;

	fastest.problem.tolerance = 0;
	if (t->problem.tolerance > 0) {
		rc = plan_by(&fastest, plain(t) ? NULL : &gf_policy_optimal,
			     &plans[*n], err);
		if (rc < 0)
			return rc;
		++*n;
	}
	for (i = 0; gf_policies[i]; i++) {
		const struct gf_policy *policy = gf_policies[i];

		if (!policy->automatic && !halves)
			continue;
		if (plain(t) && policy == &gf_policy_optimal)
			policy = NULL;
		rc = plan_by(t, policy, &plans[*n], err);
		if ((rc == -EINVAL || rc == -ENOTSUP) && policy &&
		    !policy->automatic)
			continue; /* not with these axes */
		if (rc < 0)
			return rc;
		++*n;
	}
	return 0;
}

static int best_of_all(const struct gf_task *t, bool halves, bool named,
		       struct gf_plan *p, struct gf_error *err)
{
	struct gf_plan *plans;
	double fastest_s = INFINITY;
	size_t n = 0, best = 0, i;
	int rc;

	for (i = 0; gf_policies[i]; i++)
		;
	plans = gf_xcalloc(i + 2, sizeof(*plans));
	rc = try_all(t, halves, plans, &n, err);
	if (rc == 0)
		best = choose(t, named, plans, n);
	for (i = 0; i < n; i++)
		fastest_s = fmin(fastest_s, plans[i].predicted->iteration_s);
	for (i = 0; i < n; i++)
		if (rc == 0 && i == best)
			*p = plans[i];
		else
			gf_plan_release(&plans[i]);
	free(plans);
	if (rc == 0 && p->predicted->iteration_s > fastest_s &&
	    !(p->predicted->fastest_s > 0))
		p->predicted->fastest_s = fastest_s;
	return rc;
}

int gf_task_plan(const struct gf_task *t, const struct gf_policy *policy,
		 struct gf_plan *p, struct gf_error *err)
{
	int rc;

	if ((policy && policy != &gf_policy_optimal) || plain(t))
		return plan_by(t, policy, p, err);
	rc = best_of_all(t, false, true, p, err);
	if (rc < 0 || !policy)
		return rc;
	free(p->policy);
	p->policy = gf_xstrdup(policy->name);
	return 0;
}

static char *digest(const char *text)
{
	return text && text[0] ? gf_xstrdup(text) : NULL;
}

/* What auto leaves out may be faster by so much before a user hears of it. */
static const double worth_a_word = 0.03;

/* Not every runtime can run messages in halves, so auto takes none unasked. */
static int note_halves(const struct gf_task *t, const struct gf_plan *p,
		       struct gf_text *notes, struct gf_error *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; gf_policies[i] && rc == 0; i++) {
		struct gf_plan halves;
		double takes_s;

		if (gf_policies[i]->automatic || !gf_policies[i]->halves)
			continue;
		rc = plan_by(t, gf_policies[i], &halves, err);
		if (rc == -EINVAL || rc == -ENOTSUP) {
			rc = 0; /* not with these axes */
			continue;
		}
		if (rc < 0)
			break;
		takes_s = halves.predicted->iteration_s;
		gf_plan_release(&halves);
		if (takes_s < (1 - worth_a_word) * p->predicted->iteration_s)
			gf_text_addf(
				notes,
				"--halves: %s is predicted %.0f %% "
				"faster; gf-train runs it on processors, "
				"--emit and PyTorch refuse it\n",
				gf_policies[i]->name,
				100 * (1 -
				       takes_s / p->predicted->iteration_s));
	}
	return rc;
}

static int plan_whole(const struct gf_request *r, const struct gf_task *t,
		      struct gf_plan *p, struct gf_text *notes,
		      struct gf_error *err)
{
	int rc = gf_task_check_served(t, r, err);

	if (rc < 0)
		return rc;
	if (t->policy ||
	    (plain(t) && !r->halves &&
	     !gf_doubt_recorded(t->problem.model, t->problem.network)))
		rc = gf_task_plan(t, t->policy, p, err);
	else
		rc = best_of_all(t, r->halves, false, p, err);
	if (rc < 0)
		return rc;
	gf_task_note(t, notes);
	if (!t->policy && !r->halves)
		rc = note_halves(t, p, notes, err);
	if (rc < 0) {
		gf_plan_release(p);
		return rc;
	}
	gf_task_note_served(t, r, p, notes);
	gf_doubt_text(p, notes);
	return 0;
}

static int plan_posed(const struct gf_request *r, struct gf_plan *p,
		      struct gf_text *notes, struct gf_error *err)
{
	struct gf_task t;
	int rc = gf_request_pose(r, &t, notes, err);

	if (rc < 0)
		return rc;
	rc = t.problem.model && t.problem.ranks
		     ? plan_whole(r, &t, p, notes, err)
		     : gf_request_rule(r, &t.problem, p, notes, err);
	gf_task_release(&t);
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
