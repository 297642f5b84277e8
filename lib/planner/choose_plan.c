/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The best plan of several. Policies know nothing of doubt, nor of axes other than the schedule: so
 * each makes its plan, which is predicted as it is, and the plans are compared.
 *
 * `optimal` is asked several times. Its fastest plan is tried beside the simplest within the
 * tolerance. Such a plan uses its tolerance up, and may be much slower where costs are at the high
 * ends of their doubt: so there is also the simplest plan for those costs. With stale gradients
 * there is also a plan for those (plan_stale).
 */
#include <math.h>

#include "base/heap.h"
#include "planner/make.h"
#include "planner/policies/policy.h"
#include "planner/shards.h"
#include "simulator/uncertainty.h"
#include "planner/workbench.h"

/*
 * With stale gradients, a step lasts as long as compute, or as its messages keep the network busy
 * beside those of the steps before and after it. When tensors are ready hardly counts.
 *
 * On one lane, nothing is busy for a shorter time than the best plan of gradients that are all
 * there at once. On several, messages of two steps share the network, and one's startup passes
 * while the other sends: large messages of about the same size, as many as may go at once, or a few
 * times as many, are hard to beat. The lazy rule cuts them, and the model of stale steps judges.
 */

#define STEPS_PER_OCTAVE  4
#define MESSAGES_PER_LANE 4

/* By the problem's threshold, on all lanes. */
static void draft(const struct gf_workbench *w, struct gf_draft *d)
{
	d->lanes = w->lanes;
	gf_draft_cut(d, w, (double)w->in->threshold_bytes);
	for (size_t i = 0; i < d->nsends; i++)
		d->sends[i].mode = GF_MODE_SIMULTANEOUS;
}

static const struct gf_policy together = {.name = "optimal", .draft = draft};

static int try_thresholds(const struct gf_task *t, int lanes, struct gf_plan *p,
			  struct gf_error *err)
{
	const struct gf_model_profile *model = t->problem.model;
	struct gf_task other = *t;
	double total = 0, theta, least;
	int rc = 0;

	for (size_t i = 0; i < model->ntensors; i++)
		total += (double)gf_tensor_bytes(&model->tensors[i]);
	least = total / (MESSAGES_PER_LANE * lanes);
	other.problem.lanes = lanes;
	for (theta = total; rc == 0 && theta >= fmax(least, 1);
	     theta /= pow(2, 1.0 / STEPS_PER_OCTAVE)) {
		GF_RELEASED(gf_plan_release) struct gf_plan q = {0};

		other.problem.threshold_bytes = (size_t)theta;
		rc = gf_task_plan_by(&other, &together, &q, err);
		if (rc == 0 && q.predicted->iteration_s < p->predicted->iteration_s) {
			struct gf_plan worse = *p;

			*p = q;
			q = worse;
		}
	}
	return rc;
}

/* A plan for stale gradients. */
static int plan_stale(const struct gf_task *t, struct gf_plan *p, struct gf_error *err)
{
	struct gf_model_profile *model = gf_model_profile_copy(t->problem.model);
	int lanes = t->problem.lanes ? t->problem.lanes : GF_LANES_MOST, rc;

	model->forward_s = model->backward_s = 0;
	for (size_t i = 0; i < model->ntensors; i++) {
		model->tensors[i].ready_s = 0;
		model->tensors[i].need_s = NAN;
	}
	rc = gf_task_plan_for(t, model, t->problem.fabric.network, p, err);
	gf_model_profile_free(model);
	/* messages that are cut anew have a threshold of their own */
	if (rc < 0 || gf_selection_has(&t->selection, GF_SELECT_RECUTS))
		return rc;
	/* Fewer lanes may be better: up to the usual number each is tried. */
	if (lanes > GF_LANES_MOST) {
		rc = try_thresholds(t, lanes, p, err);
		lanes = GF_LANES_MOST;
	}
	for (; rc == 0 && lanes > 0; lanes--)
		rc = try_thresholds(t, lanes, p, err);
	if (rc < 0)
		gf_plan_release(p);
	return rc;
}

/* A prediction and the two ends of its interval. */
enum { ENDS = 3 };
/* Plans beside one of each policy. */
#define OTHERS 3

static double end_s(const struct gf_plan *p, int end)
{
	const struct gf_prediction *pr = p->predicted;
	const double ends[ENDS] = {pr->iteration_s, pr->iteration_low_s, pr->iteration_high_s};

	return ends[pr->iteration_high_s > 0 ? end : 0];
}

/* By what share p is slower, at worst, than the best of the plans would be, or than the fastest
 * that was found. ends: 1 without the interval, else ENDS.
 */
static double regret(const struct gf_plan *p, const struct gf_plan *plans, size_t n, int ends)
{
	double worst = 0;

	for (int end = 0; end < ends; end++) {
		double best = INFINITY;

		for (size_t i = 0; i < n; i++)
			best = fmin(best, end_s(&plans[i], end));
		for (size_t i = 0; end == 0 && i < n; i++)
			if (plans[i].predicted->fastest_s > 0)
				best = fmin(best, plans[i].predicted->fastest_s);
		if (best > 0)
			worst = fmax(worst, end_s(p, end) / best - 1);
	}
	return worst;
}

/* Fewer lanes, then fewer messages, then the better prediction. */
static bool simpler(const struct gf_plan *a, const struct gf_plan *b)
{
	if (a->lanes != b->lanes)
		return a->lanes < b->lanes;
	if (a->nmessages != b->nmessages)
		return a->nmessages < b->nmessages;
	return end_s(a, 0) < end_s(b, 0);
}

/* The plan that is least bad over the intervals, or without them if a policy was named; plans whose
 * regrets differ by less than the tolerance are the same, so the simplest of them wins. */
static size_t choose(const struct gf_task *t, bool named, const struct gf_plan *plans, size_t n)
{
	GF_FREED double *regrets = gf_xcalloc(n + 1, sizeof(*regrets));
	double least = INFINITY, limit = t->problem.tolerance;
	size_t best = n, i;

	for (i = 0; i < n; i++) {
		regrets[i] = regret(&plans[i], plans, n, named ? 1 : ENDS);
		least = fmin(least, regrets[i]);
	}
	limit = least > limit ? least + limit : limit;
	for (i = 0; i < n; i++)
		if (regrets[i] <= limit && (best == n || simpler(&plans[i], &plans[best])))
			best = i;
	return best;
}

static int plan_for_high(const struct gf_task *t, struct gf_plan *p, struct gf_error *err)
{
	struct gf_model_profile *model = gf_model_profile_copy(t->problem.model);
	struct gf_network *network = gf_network_copy(t->problem.fabric.network);
	int rc;

	gf_uncertainty_move(model, network, t->problem.fabric.ranks, true);
	rc = gf_task_plan_for(t, model, network, p, err);
	gf_model_profile_free(model);
	gf_network_free(network);
	return rc;
}

/* What `optimal` makes of the task, but for its plan within the tolerance. */
static int try_optimal(const struct gf_task *t, bool named, struct gf_plan *plans, size_t *n,
		       struct gf_error *err)
{
	const struct gf_problem *problem = &t->problem;
	struct gf_task fastest = *t;
	int rc = 0;

	fastest.problem.tolerance = 0;
	if (problem->tolerance > 0) {
		rc = gf_task_plan_by(&fastest, gf_task_is_plain(t) ? NULL : &gf_policy_optimal,
				     &plans[*n], err);
		*n += rc == 0;
	}
	if (rc == 0 && problem->tolerance > 0 && problem->fabric.network && !named &&
	    gf_uncertainty_recorded(problem->model, problem->fabric.network,
				    problem->fabric.ranks)) {
		rc = plan_for_high(t, &plans[*n], err);
		if (rc == 0 && gf_task_is_plain(t)) /* a bound on all plans */
			plans[*n].predicted->lower_bound_s = fmin(plans[0].predicted->lower_bound_s,
								  plans[*n].predicted->iteration_s);
		*n += rc == 0;
	}
	if (rc == 0 && t->system.staleness > 1) {
		rc = plan_stale(t, &plans[*n], err);
		*n += rc == 0;
	}
	return rc;
}

/* `optimal` goes by the name of the policy that found its plan. */
static int try_all(const struct gf_task *t, bool named, struct gf_plan *plans, size_t *n,
		   struct gf_error *err)
{
	int rc = try_optimal(t, named, plans, n, err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; gf_policies[i]; i++) {
		const struct gf_policy *policy = gf_policies[i];

		if (!policy->automatic)
			continue;
		if (gf_task_is_plain(t) && policy == &gf_policy_optimal)
			policy = NULL;
		rc = gf_task_plan_by(t, policy, &plans[*n], err);
		if (rc < 0)
			return rc;
		++*n;
	}
	return 0;
}

static int best_of(const struct gf_task *t, bool named, struct gf_plan *p, struct gf_error *err)
{
	struct gf_plan *plans;
	double fastest_s = INFINITY;
	size_t n = 0, best = 0, i;
	int rc;

	for (i = 0; gf_policies[i]; i++)
		;
	plans = gf_xcalloc(i + OTHERS, sizeof(*plans));
	rc = try_all(t, named, plans, &n, err);
	for (i = 0; i < n && t->problem.max_messages;)
		if (plans[i].nmessages > t->problem.max_messages) {
			gf_plan_release(&plans[i]);
			plans[i] = plans[--n];
		} else {
			i++;
		}
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
	if (rc == 0 && p->predicted->iteration_s > fastest_s && !(p->predicted->fastest_s > 0))
		p->predicted->fastest_s = fastest_s;
	return rc;
}

int gf_task_plan_asked(const struct gf_task *t, struct gf_plan *p, struct gf_error *err)
{
	if (t->policy || gf_task_is_held(t) ||
	    (gf_task_is_plain(t) &&
	     !gf_uncertainty_recorded(t->problem.model, t->problem.fabric.network,
				      t->problem.fabric.ranks)))
		return gf_task_plan(t, t->policy, p, err);
	return best_of(t, false, p, err);
}

int gf_task_plan(const struct gf_task *t, const struct gf_policy *policy, struct gf_plan *p,
		 struct gf_error *err)
{
	int rc;

	if (gf_task_is_held(t))
		return gf_shards_plan(t, p, err);
	if ((policy && policy != &gf_policy_optimal) || gf_task_is_plain(t))
		return gf_task_plan_by(t, policy, p, err);
	rc = best_of(t, true, p, err);
	if (rc < 0 || !policy)
		return rc;
	free(p->policy);
	p->policy = gf_xstrdup(policy->name);
	return 0;
}
