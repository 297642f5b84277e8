/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/make.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/human.h"
#include "simulator/sum_error.h"
#include "simulator/uncertainty.h"
#include "documents/plan_brief.h"
#include "documents/plan_rule.h"
#include "planner/workbench.h"
#include "documents/optimizer_bounds.h"
#include "planner/policies/policy.h"

static int check_rule(const struct gf_request *r, struct gf_error *err)
{
	if (r->wishes)
		return gf_error_set(err, -EINVAL,
				    "want a model and ranks beside a rule, which says the plan's "
				    "axes, got --%.*s",
				    (int)strcspn(r->wishes, " "), r->wishes);
	if (!r->model || !r->fabric.ranks)
		return gf_error_set(err, -EINVAL, "want %s to bind the rule to, found none",
				    r->model ? "a number of ranks (--ranks)"
					     : "the tensors of a model (--model)");
	return 0;
}

/* No plan of these codecs is faster; the rule may name what the menu lacks. */
static int bound_rule(const struct gf_request *r, const struct gf_plan *p,
		      struct gf_prediction *out, struct gf_error *err)
{
	const char *codecs[GF_CODECS_MOST + 1];
	struct gf_problem problem = {
		.model = p->model,
		.fabric = r->fabric,
		.lanes = p->lanes,
		.codecs = gf_plan_codecs(p, codecs),
	};
	GF_RELEASED(gf_workbench_release) struct gf_workbench w = {0};
	int rc;

	problem.fabric.ranks = p->ranks;
	rc = gf_workbench_init(&w, &problem, err);
	if (rc == 0)
		out->lower_bound_s = fmin(gf_workbench_bound_s(&w, p->lanes), out->iteration_s);
	return rc;
}

static int predict_bound(const struct gf_request *r, struct gf_plan *p, struct gf_error *err)
{
	return gf_plan_predict(p, NULL, err) ?: bound_rule(r, p, p->predicted, err);
}

/*
 * Binds the request's rule to its model and ranks. The rule sets the cut, algorithms, stages and
 * codecs, so nothing is searched; only the prediction is computed, from the network or levels of
 * other documents. -EINVAL: something to bind it to lacks, or a wish contradicts it.
 */
static int plan_bound(const struct gf_request *r, struct gf_plan *p, struct gf_error *err)
{
	struct gf_plan rule = *r->rule;
	int rc = check_rule(r, err);

	if (rc < 0)
		return rc;
	/* costs and levels are the request's, which are the rule's where no other document has
	 * any */
	rule.network = (struct gf_network *)r->fabric.network;
	rule.levels = (struct gf_level *)r->fabric.levels;
	rule.nlevels = r->fabric.nlevels;
	rule.topology_digest = rule.profile_digest = NULL;
	if (!rule.network && !rule.nlevels)
		return gf_error_set(err, -EINVAL,
				    "want a topology or a profile with a network, found neither");
	rc = gf_plan_bind(&rule, r->model, r->fabric.ranks, p, err);
	if (rc < 0)
		return rc;
	rc = predict_bound(r, p, err);
	rc = rc ?: gf_uncertainty_predict(p, NULL, err);
	if (rc < 0)
		gf_plan_release(p);
	return rc;
}

static char *digest(const char *text)
{
	return text && text[0] ? gf_xstrdup(text) : NULL;
}

/* What auto leaves out may be faster by so much before a user hears of it. */
static const double worth_a_word = 0.03;

/* Not every runtime can run messages in halves, so auto takes none unasked. */
static int note_halves(const struct gf_task *t, const struct gf_plan *p, struct gf_text *notes,
		       struct gf_error *err)
{
	int rc = 0;

	for (size_t i = 0; gf_policies[i] && rc == 0; i++) {
		GF_RELEASED(gf_plan_release) struct gf_plan halves = {0};
		double takes_s;

		if (gf_policies[i]->automatic || !gf_policies[i]->halves)
			continue;
		rc = gf_task_plan_by(t, gf_policies[i], &halves, err);
		if (rc == -EINVAL || rc == -ENOTSUP) {
			rc = 0; /* not with these axes */
			continue;
		}
		if (rc < 0)
			break;
		takes_s = halves.predicted->iteration_s;
		if (takes_s < (1 - worth_a_word) * p->predicted->iteration_s)
			gf_text_addf(notes,
				     "--policy %s is predicted %.0f %% faster; gf-train runs it "
				     "on processors, --emit and PyTorch refuse it\n",
				     gf_policies[i]->name,
				     100 * (1 - takes_s / p->predicted->iteration_s));
	}
	return rc;
}

/* What one order of additions costs. */
static int note_reproducible(const struct gf_task *t, const struct gf_plan *p,
			     struct gf_text *notes, struct gf_error *err)
{
	struct gf_task open = *t;
	GF_RELEASED(gf_plan_release) struct gf_plan other = {0};
	double takes_s;
	int rc;

	if (!t->problem.reproducible)
		return 0;
	open.problem.reproducible = false;
	rc = gf_task_plan_by(&open, t->policy, &other, err);
	if (rc < 0)
		return rc;
	takes_s = other.predicted->iteration_s;
	gf_text_addf(
		notes,
		"reproducible: %.1f %% slower than the plan in any order, which is predicted %s\n",
		100 * (p->predicted->iteration_s / takes_s - 1), gf_human_time(takes_s).text);
	return 0;
}

/* A system goes by the levels: are there better factors? */
static int note_factors(const struct gf_task *t, const struct gf_plan *p, struct gf_text *notes,
			struct gf_error *err)
{
	struct gf_task open = *t;
	GF_RELEASED(gf_plan_release) struct gf_plan better = {0};
	const struct gf_message *m;
	double takes_s;
	int rc;

	if (!t->problem.nfactors || t->problem.factors != t->by_levels)
		return 0;
	open.problem.factors = NULL;
	open.problem.nfactors = 0;
	rc = gf_task_plan_by(&open, t->policy, &better, err);
	if (rc < 0)
		return rc;
	takes_s = better.predicted->iteration_s;
	m = &better.messages[0];
	if (takes_s < 0.99 * p->predicted->iteration_s &&
	    gf_plan_is_derived(p) == gf_plan_is_derived(&better)) {
		gf_text_addf(notes, "%s goes by the levels; predicted %.1f %% faster: --factors ",
			     t->system.name, 100 * (1 - takes_s / p->predicted->iteration_s));
		gf_stages_text(notes, ",", m->stages, m->nstages);
		gf_text_addf(notes, "\n");
	}
	return 0;
}

void gf_request_plain(const struct gf_request *r, struct gf_request *wish)
{
	wish->model = r->model;
	wish->fabric = r->fabric;
	wish->one_host = r->one_host;
	wish->ranks_asked = r->ranks_asked;
}

double gf_request_plain_s(const struct gf_request *r, struct gf_request *wish)
{
	GF_RELEASED(gf_text_release) struct gf_text unread = {0};
	GF_RELEASED(gf_task_release) struct gf_task t = {0};
	GF_RELEASED(gf_plan_release) struct gf_plan p = {0};
	struct gf_error err;

	gf_request_plain(r, wish);
	if (gf_request_pose(wish, &t, &unread, &err) || gf_task_plan_by(&t, t.policy, &p, &err))
		return 0;
	return p.predicted->iteration_s;
}

static bool same_tensors(const struct gf_model_profile *a, const struct gf_model_profile *b)
{
	bool same = a->ntensors == b->ntensors;

	for (size_t i = 0; same && i < a->ntensors; i++)
		same = a->tensors[i].count_elems == b->tensors[i].count_elems;
	return same;
}

double gf_request_now_s(const struct gf_request *r, const struct gf_plan *now)
{
	struct gf_request wish = {.system = "ddp"};
	struct gf_fabric f = r->fabric;
	struct gf_sim_result result = {0};
	struct gf_model_profile model = *r->model;
	struct gf_plan then;

	if (!now)
		return gf_request_plain_s(r, &wish);
	if (!same_tensors(now->model, &model))
		return 0;
	then = *now;
	then.model = &model;
	f.device = model.device;
	f.servers = now->servers;
	if (gf_predict_plan(&then, &f, &result, NULL) < 0)
		return 0;
	then.network = (struct gf_network *)f.network;
	then.levels = (struct gf_level *)f.levels;
	then.nlevels = f.nlevels;
	then.ranks = f.ranks - f.servers;
	return gf_plan_is_derived(&then) ? 0 : result.iteration_s;
}

/* A published system or a selection may be slower than doing without it; the answer says the same
 * of DDP's default. */
static void note_plain(const struct gf_request *r, const struct gf_task *t, const struct gf_plan *p,
		       struct gf_text *notes)
{
	struct gf_request wish = {.policy = "single"};
	double least_s = (1 - worth_a_word) * p->predicted->iteration_s, takes_s;

	if ((gf_task_is_plain(t) && !(r->system && t->policy)) || t->system.servers ||
	    !gf_period_has(&t->period, GF_PERIOD_EVERY) || gf_plan_is_derived(p))
		return;
	takes_s = gf_request_plain_s(r, &wish);
	if (takes_s > 0 && takes_s < least_s)
		gf_text_addf(notes,
			     "one dense message (--policy single) is predicted %.0f %% faster than "
			     "this plan: %s a step\n",
			     100 * (1 - takes_s / p->predicted->iteration_s),
			     gf_human_time(takes_s).text);
}

/* Messages hold tensors of one type: so many there are at the least. */
static int check_most(const struct gf_task *t, const struct gf_request *r, struct gf_error *err)
{
	const struct gf_model_profile *m = t->problem.model;
	size_t least = 1, i;

	if (!r->max_messages)
		return 0;
	for (i = 1; i < m->ntensors; i++)
		least += m->tensors[i].dtype != m->tensors[i - 1].dtype;
	if (t->policy && t->policy != &gf_policy_optimal)
		return gf_error_set(err, -EINVAL,
				    "--max-messages: want policy auto or optimal, got %s",
				    t->policy->name);
	if (gf_selection_has(&t->selection, GF_SELECT_RECUTS))
		return gf_error_set(
			err, -EINVAL,
			"--max-messages: want a selection that leaves messages as they are, got %s",
			gf_selection_name(&t->selection));
	if (t->system.staleness > 1)
		return gf_error_set(err, -EINVAL, "--max-messages: want a staleness of 1, got %d",
				    t->system.staleness);
	if (r->max_messages < least)
		return gf_error_set(err, -EINVAL,
				    "--max-messages: want at least %zu, one for every run of "
				    "tensors of one type, got %zu",
				    least, r->max_messages);
	return 0;
}

/* A wish that the policy asked for cannot serve is a mistake: -EINVAL. */
static int check_served(const struct gf_task *t, const struct gf_request *r, struct gf_error *err)
{
	const struct gf_policy *p = t->policy;

	if (p && gf_request_has_threshold(r) && !p->thresholds &&
	    !gf_selection_has(&t->selection, GF_SELECT_RECUTS))
		return gf_error_set(err, -EINVAL,
				    "--threshold: want policy threshold, ddp, horovod or dear, or "
				    "selection csc, got policy %s",
				    p->name);
	if (p && r->tolerance_asked && p != &gf_policy_optimal)
		return gf_error_set(err, -EINVAL,
				    "--tolerance: want policy auto or optimal, got %s", p->name);
	return check_most(t, r, err);
}

/* A wish that the plan found does not serve gets a line. */
static void note_served(const struct gf_task *t, const struct gf_request *r,
			const struct gf_plan *p, struct gf_text *notes)
{
	const struct gf_policy *found = gf_policy_find(p->policy);
	GF_RELEASED(gf_text_release) struct gf_text why = {0};

	(void)gf_plan_wants(p, false, 0, &why);
	if (why.length)
		gf_text_addf(notes,
			     "an optimiser that suits dense gradients wants less rate or momentum, "
			     "as gf-train gives it: %s\n",
			     why.data);
	if (!t->policy && gf_request_has_threshold(r) && found && !found->thresholds &&
	    !gf_selection_has(&t->selection, GF_SELECT_RECUTS))
		gf_text_addf(notes, "%s is faster than policy threshold with %zu bytes\n",
			     found->name, r->threshold_bytes);
}

/* What other plans would have been. */
static int note_others(const struct gf_request *r, const struct gf_task *t, const struct gf_plan *p,
		       struct gf_text *notes, struct gf_error *err)
{
	int rc = 0;

	gf_task_note(t, notes);
	if (gf_shard_is_used(&p->shard))
		return 0;
	if (!t->policy && !r->elsewhere)
		rc = note_halves(t, p, notes, err);
	rc = rc ?: note_factors(t, p, notes, err);
	rc = rc ?: note_reproducible(t, p, notes, err);
	if (rc < 0)
		return rc;
	note_plain(r, t, p, notes);
	note_served(t, r, p, notes);
	return 0;
}

int gf_task_keeps(const struct gf_plan *p, double bound, int tries, double *less,
		  struct gf_error *err)
{
	GF_FREED double *errors = gf_xcalloc(p->nmessages, sizeof(*errors));
	double most = bound > 0 ? gf_sim_step_error(p, errors) : 0;

	for (size_t i = 0; i < p->nmessages; i++)
		most = fmax(most, errors[i]);
	if (most <= bound)
		return 0;
	gf_error_set(err, -ENOTSUP,
		     "--max-error: want at most %g of each message, got %.1e of one whose tensors "
		     "share blocks of a codec: allow f32, too (--codecs)",
		     bound, most);
	/* first what its tensors may have, then another codec */
	*less *= tries < 4 ? 0.99 * bound / most : 0.5;
	return tries < 8 ? 1 : -ENOTSUP;
}

int gf_task_plan_within(const struct gf_task *t, gf_task_planner *make, struct gf_plan *p,
			struct gf_error *err)
{
	struct gf_task tighter = *t;
	struct gf_error unread;
	int rc = 1;

	for (int i = 0; rc > 0; i++) {
		if (i)
			gf_plan_release(p);
		rc = make(&tighter, p, i ? &unread : err);
		if (rc < 0)
			return i ? -ENOTSUP : rc;
		rc = gf_task_keeps(p, t->problem.max_error, i, &tighter.problem.max_error, err);
	}
	if (rc < 0)
		gf_plan_release(p);
	return rc;
}

static int plan_whole(const struct gf_request *r, const struct gf_task *t, struct gf_plan *p,
		      struct gf_text *notes, struct gf_error *err)
{
	int rc = check_served(t, r, err);

	rc = rc ?: gf_task_plan_within(t, gf_task_plan_asked, p, err);
	if (rc < 0)
		return rc;
	if (notes)
		rc = note_others(r, t, p, notes, err);
	rc = rc ?: gf_task_add_period(t, p, err);
	if (rc < 0) {
		gf_plan_release(p);
		return rc;
	}
	if (notes) {
		gf_task_note_outer(t, notes);
		gf_uncertainty_text(p, notes);
	}
	return 0;
}

static int plan_posed(const struct gf_request *r, struct gf_plan *p, struct gf_text *notes,
		      struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text unread = {0};
	GF_RELEASED(gf_task_release) struct gf_task t = {0};
	int rc = gf_request_pose(r, &t, notes ? notes : &unread, err);

	if (rc)
		return rc;
	return t.problem.model && t.problem.fabric.ranks
		       ? plan_whole(r, &t, p, notes, err)
		       : gf_request_rule(r, &t.problem, p, notes ? notes : &unread, err);
}

int gf_request_plan(const struct gf_request *r, struct gf_plan *p, struct gf_text *notes,
		    struct gf_error *err)
{
	int rc = r->rule ? plan_bound(r, p, err) : plan_posed(r, p, notes, err);

	if (rc < 0)
		return rc;
	if (p->predicted)
		gf_sim_predict_error(p);
	p->topology_digest = digest(r->topology_digest);
	p->profile_digest = digest(r->profile_digest);
	return 0;
}
