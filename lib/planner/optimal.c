/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The best plan there is under the step model: exact on one lane (serial.c), on
 * more a beam search (beam.c), polished (polish.c), and for small models every
 * choice (exhaust.c). Every other automatic policy is drafted first,
 * so `optimal` is never worse than any of them, and what they reached prunes
 * the search.
 */
#include <stdlib.h>

#include "planner/policies.h"
#include "planner/search.h"

#define POLISH_BUDGET   10000000.0
#define EXHAUST_TENSORS 16
#define EXHAUST_BUDGET  1000000.0

/* Better, or as good with fewer lanes or messages. */
static bool better(const struct gf_draft *a, const struct gf_draft *b)
{
	if (b->nsends == 0 || a->iteration_s != b->iteration_s)
		return b->nsends == 0 || a->iteration_s < b->iteration_s;
	if (a->lanes != b->lanes)
		return a->lanes < b->lanes;
	return a->nsends < b->nsends;
}

static void offer(struct gf_draft *best, struct gf_draft *d)
{
	if (d->nsends > 0 && better(d, best)) {
		struct gf_draft old = *best;

		*best = *d;
		*d = old;
	}
	gf_draft_release(d);
}

static void offer_others(const struct gf_work *w, struct gf_draft *best)
{
	size_t i;
	int lanes;

	for (i = 0; gf_policies[i]; i++) {
		const struct gf_policy *policy = gf_policies[i];
		/* a policy of one lane needs no more */
		int most = policy->lanes > 1 ? w->lanes : 1;
		struct gf_draft d;

		if (!policy->automatic || policy == &gf_policy_optimal)
			continue;
		for (lanes = 1; lanes <= most; lanes++) {
			gf_draft_make(&d, w, policy, lanes);
			offer(best, &d);
		}
	}
}

/* A search's draft: predicted, polished and compared. */
static void offer_found(const struct gf_work *w, struct gf_draft *best,
			struct gf_draft *d)
{
	struct gf_sim_result result = {0};

	d->policy = &gf_policy_optimal;
	if (d->nsends == 0)
		return;
	gf_work_predict(w, d, &result);
	if (d->lanes > 1)
		gf_search_polish(w, POLISH_BUDGET, d);
	offer(best, d);
}

static void offer_search(const struct gf_work *w, struct gf_draft *best,
			 int lanes)
{
	struct gf_draft d = {.lanes = lanes};

	if (best->iteration_s <= gf_work_bound_s(w, lanes))
		return;
	if (lanes == 1) {
		/* where backward and messages slow each other, a good start */
		gf_search_line(w, best->iteration_s, &d);
		offer_found(w, best, &d);
		if (!w->mutual)
			return;
		d = (struct gf_draft){.lanes = lanes};
		gf_search_serial(w, best->iteration_s, &d);
		offer_found(w, best, &d);
		return;
	}
	gf_search_beam(w, best->iteration_s, &d);
	offer_found(w, best, &d);
	if (w->ntensors > EXHAUST_TENSORS)
		return;
	d = (struct gf_draft){.lanes = lanes};
	gf_search_exhaust(w, best->iteration_s, EXHAUST_BUDGET, &d);
	offer_found(w, best, &d);
}

static void draft(const struct gf_work *w, struct gf_draft *d)
{
	struct gf_draft best = {0};
	int lanes;

	offer_others(w, &best);
	for (lanes = 1; lanes <= w->lanes; lanes++)
		offer_search(w, &best, lanes);
	*d = best;
}

const struct gf_policy gf_policy_optimal = {
	.name = "optimal",
	.description = "the best plan of the step model: exact on one lane",
	.source = "gradflow",
	.lanes = 0,
	.automatic = true,
	.draft = draft,
};
