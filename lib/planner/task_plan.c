/* SPDX-License-Identifier: BSD-3-Clause */
/* A task's plan by one policy, with the axes that policies know nothing of. */
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "collectives/codecs/codec.h"
#include "documents/algorithm_traits.h"
#include "planner/make.h"
#include "planner/policies/policy.h"
#include "planner/workbench.h"
#include "simulator/predict.h"
#include "simulator/uncertainty.h"

static void copy_messages(const struct gf_workbench *w, const struct gf_draft *d, struct gf_plan *p)
{
	p->messages = gf_xcalloc(d->nsends, sizeof(*p->messages));
	p->nmessages = d->nsends;
	for (size_t i = 0; i < d->nsends; i++) {
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
	for (size_t i = 0; i < d->nsends; i++)
		if (d->sends[i].half == GF_HALF_SPLIT)
			return true;
	return false;
}

static int predict_draft(const struct gf_workbench *w, const struct gf_draft *d, struct gf_plan *p,
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
	return predict_draft(w, d, p, err);
}

/*
 * Drafts are made by the lines of messages that everything divides. On levels, a plan's own
 * messages may take a little less or more. So the plans of the other policies are predicted, too,
 * and none of them is faster by more than the tolerance.
 */
static int find_better(const struct gf_workbench *w, bool automatic, struct gf_plan *p,
		       struct gf_error *err)
{
	int rc = 0;

	if (w->menu.options[0].origin != GF_PRICE_DERIVED || w->in->fabric.nlevels < 2)
		return 0;
	for (size_t i = 0; gf_policies[i] && rc == 0; i++) {
		const struct gf_policy *policy = gf_policies[i];
		GF_RELEASED(gf_plan_release) struct gf_plan other = {0};
		GF_RELEASED(gf_draft_release) struct gf_draft d = {0};

		if (!policy->automatic || policy == &gf_policy_optimal)
			continue;
		gf_draft_make(&d, w, policy, w->in->lanes);
		rc = finish(w, &d, automatic ? policy->name : gf_policy_optimal.name, &other, err);
		if (rc == 0 && (!w->in->max_messages || other.nmessages <= w->in->max_messages) &&
		    other.predicted->iteration_s * (1 + w->in->tolerance) <
			    p->predicted->iteration_s) {
			struct gf_plan worse = *p;

			*p = other;
			other = worse;
		}
	}
	return rc;
}

static int run_draft(const struct gf_policy *policy, bool automatic, const struct gf_problem *in,
		     struct gf_plan *p, struct gf_error *err)
{
	struct gf_problem problem = *in;
	GF_RELEASED(gf_draft_release) struct gf_draft d = {0};
	GF_RELEASED(gf_workbench_release) struct gf_workbench w = {0};
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
	return rc;
}

int gf_policy_run(const struct gf_policy *policy, const struct gf_problem *in, struct gf_plan *p,
		  struct gf_error *err)
{
	return run_draft(policy, false, in, p, err);
}

/* `optimal` drafts the other policies and searches from one lane up. */
int gf_policy_auto(const struct gf_problem *in, struct gf_plan *p, struct gf_error *err)
{
	return run_draft(&gf_policy_optimal, true, in, p, err);
}

bool gf_task_is_plain(const struct gf_task *t)
{
	return gf_selection_has(&t->selection, GF_SELECT_LOSSLESS) && t->system.staleness == 1;
}

/* What an exchange cannot do without: with several lanes and stale gradients, its startup may pass
 * while the exchange before it sends. */
static double exchange_bound_s(const struct gf_task *t, const struct gf_workbench *w)
{
	int lanes = t->problem.lanes ? t->problem.lanes : GF_LANES_MOST;
	double bound_s = gf_workbench_exchange_bound_s(w, lanes);
	double startup_s = bound_s;

	if (t->system.staleness <= 1 || lanes <= 1)
		return bound_s;
	for (size_t i = 0; i < w->menu.noptions; i++)
		startup_s = fmin(startup_s, w->menu.options[i].line.startup_s);
	return bound_s - startup_s;
}

/* No plan with these axes takes less. */
static int bound(const struct gf_task *t, double *bound_s, struct gf_error *err)
{
	const struct gf_model_profile *m = t->problem.model;
	double compute_s = m->forward_s + m->backward_s + gf_problem_update_s(&t->problem);
	double exchange_s;
	GF_RELEASED(gf_workbench_release) struct gf_workbench w = {0};
	int rc;

	*bound_s = fmax(compute_s, t->system.staleness > 1 ? 0 : t->bound_s);
	if (!gf_selection_has(&t->selection, GF_SELECT_LOSSLESS))
		return 0;
	rc = gf_workbench_init(&w, &t->problem, err);
	if (rc < 0)
		return rc;
	exchange_s = exchange_bound_s(t, &w);
	*bound_s = t->system.staleness > 1 ? fmax(compute_s, exchange_s) : compute_s + exchange_s;
	return 0;
}

/* Selection, staleness and release. */
static int set_axes(const struct gf_task *t, struct gf_plan *p, struct gf_error *err)
{
	const struct gf_system *s = &t->system;

	gf_selection_release(&p->selection);
	p->selection = gf_selection_copy(&t->selection);
	p->staleness = s->staleness;
	p->pipeline_warmup_steps = s->pipeline_warmup_steps;
	p->pipeline_warmup_part = s->pipeline_warmup_part;
	if (gf_selection_has(&t->selection, GF_SELECT_RECUTS))
		p->threshold_bytes = t->problem.threshold_bytes;
	for (size_t i = 0; i < p->nmessages; i++)
		if (s->release == GF_RELEASE_BACKWARD_END)
			p->messages[i].release = s->release;
	return gf_plan_check(p, err);
}

/* The bound of a plain plan is that of its search. */
static int predict(const struct gf_task *t, struct gf_plan *p, struct gf_error *err)
{
	struct gf_prediction *out = p->predicted;
	int rc = gf_plan_predict(p, t->problem.fabric.derived, err);

	if (rc == 0 && !gf_task_is_plain(t))
		rc = bound(t, &out->lower_bound_s, err);
	if (rc == 0)
		out->lower_bound_s = fmin(out->lower_bound_s, out->iteration_s);
	return rc;
}

static void set_codec(struct gf_plan *p, const char *codec)
{
	for (size_t i = 0; i < p->nmessages; i++) {
		free(p->messages[i].codec);
		p->messages[i].codec = gf_xstrdup(codec);
	}
}

/* Does a value keep the bound that is encoded once more in each merge of two sets? */
static bool keeps(const struct gf_task *t, const char *codec)
{
	const double merges = ceil(log2(t->problem.fabric.ranks)), bound = t->problem.max_error;
	const struct gf_codec *c = gf_codec_find(codec);

	return !(bound > 0) || gf_codec_is_plain(codec) ||
	       (c && c->rms * sqrt(1 + merges) <= bound);
}

/* Sets by that of the allowed codecs with which the plan is the fastest; the first of equals.
 * Between GPUs sets go as they are. */
static int choose_codec(const struct gf_task *t, struct gf_plan *p, struct gf_error *err)
{
	const char *best = NULL;
	double least_s = INFINITY;
	int rc = 0;

	if (gf_device_is_gpu(t->problem.fabric.device))
		return 0;
	for (size_t i = 0; t->set_codecs && t->set_codecs[i] && rc == 0; i++) {
		if (!keeps(t, t->set_codecs[i]))
			continue;
		set_codec(p, t->set_codecs[i]);
		rc = predict(t, p, err);
		if (rc == 0 && p->predicted->iteration_s < least_s) {
			least_s = p->predicted->iteration_s;
			best = t->set_codecs[i];
		}
	}
	if (best)
		set_codec(p, best);
	return rc;
}

/* Can the algorithm that was asked for add up what one of the codecs makes? */
static bool sums(const char *algorithm, const char *const *codecs)
{
	if (!algorithm || !codecs || gf_algorithm_has(algorithm, GF_ALGORITHM_ENCODED))
		return true;
	for (size_t i = 0; codecs[i]; i++)
		if (!gf_codec_find(codecs[i]) || gf_codec_find(codecs[i])->adds)
			return true;
	return false;
}

/* Axes that contradict each other under this policy (NULL: auto); what remains is found in the plan
 * that was made. -EINVAL; -ENOTSUP: the algorithm cannot add up the codec. */
static int check_axes(const struct gf_task *t, const struct gf_policy *policy, struct gf_error *err)
{
	const struct gf_select_plan *s = gf_selection_plan(&t->selection);

	for (size_t i = 0; t->problem.codecs && t->problem.codecs[i]; i++)
		if (s->encoding && !gf_codec_is_plain(t->problem.codecs[i]))
			return gf_error_set(err, -EINVAL,
					    "--codecs: want f32 with selection %s, %s, got %s",
					    s->name, s->encoding, t->problem.codecs[i]);
	if (!sums(t->problem.algorithm, t->problem.codecs))
		return gf_error_set(err, -ENOTSUP,
				    "--codecs: want numbers with algorithm %s, which cannot sum "
				    "encoded data, got %s",
				    t->problem.algorithm, t->problem.codecs[0]);
	if (!policy || !policy->halves)
		return 0;
	if (!(s->traits & GF_SELECT_HALVES))
		return gf_error_set(err, -EINVAL,
				    "--policy: want one that leaves messages whole with selection "
				    "%s, which %s, got %s",
				    s->name,
				    s->traits & GF_SELECT_RECUTS
					    ? "cuts its messages anew in every step"
					    : "gives its sums back at once",
				    policy->name);
	if (t->system.staleness > 1)
		return gf_error_set(
			err, -EINVAL,
			"--policy: want one that leaves messages whole with a staleness > 1, which "
			"leaves no forward pass to wait in, got %s",
			policy->name);
	return 0;
}

int gf_task_plan_by(const struct gf_task *t, const struct gf_policy *policy, struct gf_plan *p,
		    struct gf_error *err)
{
	int rc = check_axes(t, policy, err);

	if (rc == 0)
		rc = policy ? gf_policy_run(policy, &t->problem, p, err)
			    : gf_policy_auto(&t->problem, p, err);
	if (rc < 0)
		return rc;
	free(p->system);
	p->system = gf_xstrdup(t->system.name);
	p->reproducible = t->problem.reproducible;
	if (gf_task_is_plain(t)) {
		rc = gf_plan_check(p, err);
	} else {
		p->predicted->fastest_s = 0; /* that was without these axes */
		rc = set_axes(t, p, err);
		rc = rc ?: choose_codec(t, p, err);
		rc = rc ?: predict(t, p, err);
	}
	rc = rc ?: gf_uncertainty_predict(p, t->problem.fabric.derived, err);
	if (rc < 0)
		gf_plan_release(p);
	return rc;
}

int gf_task_plan_for(const struct gf_task *t, const struct gf_model_profile *model,
		     const struct gf_network *network, struct gf_plan *p, struct gf_error *err)
{
	struct gf_task other = *t;
	int rc;

	other.problem.model = model;
	other.problem.fabric.network = network;
	rc = gf_task_plan_by(&other, &gf_policy_optimal, p, err);
	if (rc < 0)
		return rc;
	gf_model_profile_free(p->model);
	gf_network_free(p->network);
	p->model = gf_model_profile_copy(t->problem.model);
	p->network = t->problem.fabric.network ? gf_network_copy(t->problem.fabric.network) : NULL;
	p->predicted->fastest_s = 0;
	rc = predict(t, p, err);
	rc = rc ?: gf_uncertainty_predict(p, t->problem.fabric.derived, err);
	if (rc < 0)
		gf_plan_release(p);
	return rc;
}
