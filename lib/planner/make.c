/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/make.h"

#include <errno.h>
#include <math.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/human.h"
#include "planner/contradictions.h"
#include "planner/make_parts.h"
#include "sim/doubt.h"

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
		rc = gf_task_plan_by(t, gf_policies[i], &halves, err);
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

/* What one order of additions costs. */
static int note_reproducible(const struct gf_task *t, const struct gf_plan *p,
			     struct gf_text *notes, struct gf_error *err)
{
	struct gf_task open = *t;
	struct gf_plan other;
	struct gf_human h;
	double takes_s;
	int rc;

	if (!t->problem.reproducible)
		return 0;
	open.problem.reproducible = false;
	rc = gf_task_plan_by(&open, t->policy, &other, err);
	if (rc < 0)
		return rc;
	takes_s = other.predicted->iteration_s;
	gf_plan_release(&other);
	gf_text_addf(notes,
		     "reproducible: %.1f %% slower than the plan in any order, "
		     "which is predicted %s\n",
		     100 * (p->predicted->iteration_s / takes_s - 1),
		     gf_human_time(takes_s, &h));
	return 0;
}

/* A system goes by the levels: are there better factors? */
static int note_factors(const struct gf_task *t, const struct gf_plan *p,
			struct gf_text *notes, struct gf_error *err)
{
	struct gf_task open = *t;
	struct gf_plan better;
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
	if (takes_s < 0.99 * p->predicted->iteration_s) {
		gf_text_addf(notes,
			     "%s goes by the levels; predicted %.1f %% faster: "
			     "--factors ",
			     t->system.name,
			     100 * (1 - takes_s / p->predicted->iteration_s));
		gf_stages_text(notes, ",", m->stages, m->nstages);
		gf_text_addf(notes, "\n");
	}
	gf_plan_release(&better);
	return 0;
}

/* What a user who knows none of the systems would run. */
static const struct plain {
	const char *system, *policy, *words;
} plains[] = {
	{"ddp", NULL, "DDP's default (--system ddp)"},
	{NULL, "single", "one dense message (--policy single)"},
};

/* NAN: it does not fit here. */
static double plain_s(const struct gf_request *r, const struct plain *plain)
{
	struct gf_request wish = {
		.model = r->model,
		.fabric = r->fabric,
		.one_host = r->one_host,
		.ranks_asked = r->ranks_asked,
		.system = plain->system,
		.policy = plain->policy,
	};
	struct gf_text unread = {0};
	struct gf_error err;
	struct gf_task t;
	struct gf_plan p;
	double takes_s = NAN;

	if (gf_request_pose(&wish, &t, &unread, &err) == 0) {
		if (gf_task_plan_by(&t, t.policy, &p, &err) == 0) {
			takes_s = p.predicted->iteration_s;
			gf_plan_release(&p);
		}
		gf_task_release(&t);
	}
	gf_text_release(&unread);
	return takes_s;
}

/* A published system or a selection may be slower than doing without it. */
static void note_plain(const struct gf_request *r, const struct gf_task *t,
		       const struct gf_plan *p, struct gf_text *notes)
{
	const struct plain *best = NULL;
	double least_s = (1 - worth_a_word) * p->predicted->iteration_s;
	struct gf_human h;
	size_t i;

	if ((gf_task_is_plain(t) && !(r->system && t->policy)) ||
	    t->system.servers || !gf_period_has(&t->period, GF_PERIOD_EVERY))
		return;
	for (i = 0; i < GF_ARRAY_LENGTH(plains); i++) {
		double takes_s = plain_s(r, &plains[i]);

		if (takes_s < least_s) {
			least_s = takes_s;
			best = &plains[i];
		}
	}
	if (best)
		gf_text_addf(notes,
			     "%s is predicted %.0f %% faster than this plan: "
			     "%s a step\n",
			     best->words,
			     100 * (1 - least_s / p->predicted->iteration_s),
			     gf_human_time(least_s, &h));
}

static int plan_whole(const struct gf_request *r, const struct gf_task *t,
		      struct gf_plan *p, struct gf_text *notes,
		      struct gf_error *err)
{
	int rc = gf_task_check_served(t, r, err);

	if (rc < 0)
		return rc;
	if (t->policy ||
	    (gf_task_is_plain(t) && !r->halves &&
	     !gf_doubt_recorded(t->problem.model, t->problem.fabric.network,
				t->problem.fabric.ranks)))
		rc = gf_task_plan(t, t->policy, p, err);
	else
		rc = gf_task_best(t, r->halves, false, p, err);
	if (rc < 0)
		return rc;
	gf_task_note(t, notes);
	if (!t->policy && !r->halves)
		rc = note_halves(t, p, notes, err);
	rc = rc ? rc : note_factors(t, p, notes, err);
	rc = rc ? rc : note_reproducible(t, p, notes, err);
	if (rc < 0) {
		gf_plan_release(p);
		return rc;
	}
	note_plain(r, t, p, notes);
	gf_task_note_served(t, r, p, notes);
	rc = gf_task_add_period(t, p, err);
	if (rc < 0) {
		gf_plan_release(p);
		return rc;
	}
	gf_task_note_outer(t, notes);
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
	rc = t.problem.model && t.problem.fabric.ranks
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
