/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The best plan there is under the step model. On one lane it is exact
 * (serial.c). On more, a beam search (beam.c) and the best plan of fewer lanes
 * are polished (polish.c), and for small models every choice is tried
 * (exhaust.c).
 *
 * More choice is never worse. Every other automatic policy is drafted first; k
 * lanes come after fewer lanes; and where the menu has a few ways to send a
 * message, the problem is first solved with each of them alone, exactly as if
 * there were no other.
 *
 * Within the problem's tolerance of the best, the plan with the fewest lanes
 * wins, then that with the fewest messages: such gains are smaller than what
 * the model leaves out.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "planner/policies.h"
#include "planner/search.h"

/* Starts of messages per search, and for large models times as many. */
#define BEAM_BUDGET     60000.0
#define POLISH_BUDGET   400000.0
#define POLISH_LARGE    1.5
#define LARGE           1000 /* tensors */
#define GROWTH_LARGE    0.3
#define EXHAUST_TENSORS 16
#define EXHAUST_BUDGET  200000.0
#define WAYS_ALONE      4
/* Lanes that are searched: all up to the first, then powers of two. */
#define LANES_EACH 8
#define LANES_MOST 64
#define SAME       1e-12 /* relative: sums in another order */

/* All drafts, so that the simplest of the good ones can win. */
struct field {
	const struct gf_work *w;
	struct gf_draft *drafts;
	size_t ndrafts, capacity;
	double best_s;
	bool alone; /* the only way, or none was solved alone */
};

/* Takes the draft. */
static void offer(struct field *f, struct gf_draft *d)
{
	if (d->nsends == 0) {
		gf_draft_release(d);
		return;
	}
	f->best_s = fmin(f->best_s, d->iteration_s);
	*(struct gf_draft *)gf_array_push(&f->drafts, &f->ndrafts,
					  &f->capacity) = *d;
}

static void offer_others(struct field *f)
{
	size_t i;
	int lanes;

	for (i = 0; gf_policies[i]; i++) {
		const struct gf_policy *policy = gf_policies[i];
		/* a policy of one lane needs no more */
		int most = policy->lanes > 1 ? f->w->lanes : 1;
		struct gf_draft d;

		if (!policy->automatic || policy == &gf_policy_optimal)
			continue;
		for (lanes = 1; lanes <= most && lanes <= LANES_MOST; lanes++) {
			gf_draft_make(&d, f->w, policy, lanes);
			offer(f, &d);
		}
	}
}

static double polish_budget(const struct gf_work *w)
{
	return POLISH_BUDGET *
	       fmin(fmax((double)w->ntensors / LARGE, 1), POLISH_LARGE);
}

static struct gf_draft copy(const struct gf_draft *d)
{
	struct gf_draft c = *d;

	c.sends = gf_xmemdup(d->sends, d->nsends * sizeof(*d->sends));
	c.capacity = d->nsends;
	return c;
}

/* A search's draft: predicted, polished and compared. Polishing does not know
 * how much later messages will hold backward up: its result may be worse. */
static void offer_found(struct field *f, struct gf_draft *d)
{
	struct gf_sim_result result = {0};
	struct gf_draft found;

	d->policy = &gf_policy_optimal;
	if (d->nsends > 0) {
		gf_work_predict(f->w, d, &result);
		if (f->w->mutual) {
			found = copy(d);
			offer(f, &found);
		}
		if (d->lanes > 1) {
			gf_search_polish(f->w, polish_budget(f->w), d);
			gf_work_predict(f->w, d, &result);
		}
	}
	offer(f, d);
}

static const struct gf_draft *best_of(const struct field *f)
{
	size_t i;

	for (i = 0; f->drafts[i].iteration_s > f->best_s; i++)
		;
	return &f->drafts[i];
}

static void search_line(struct field *f)
{
	struct gf_draft d = {.lanes = 1};

	/* where backward and messages slow each other, a good start */
	gf_search_line(f->w, f->best_s, &d);
	offer_found(f, &d);
	if (!f->w->mutual)
		return;
	d = (struct gf_draft){.lanes = 1};
	gf_search_serial(f->w, f->best_s, &d);
	offer_found(f, &d);
}

static void search_lanes(struct field *f, int lanes)
{
	static const double growths[] = {0.08, 0.2, 0.03};
	/* with all ways after each alone there are starts enough */
	size_t starts = !f->alone ? 1 : lanes == 2 ? 3 : 2, i;
	bool large = f->w->ntensors > LARGE;
	struct gf_draft d;

	if (large || f->w->ntensors <= GF_SEARCH_ALL_CUTS)
		starts = 1;
	for (i = 0; i < starts; i++) {
		d = (struct gf_draft){.lanes = lanes};
		gf_search_beam(f->w, f->best_s, BEAM_BUDGET,
			       large ? GROWTH_LARGE : growths[i], &d);
		offer_found(f, &d);
	}
	if (f->best_s < INFINITY) {
		d = copy(best_of(f));
		d.lanes = lanes;
		offer_found(f, &d);
	}
	if (f->w->ntensors > EXHAUST_TENSORS)
		return;
	d = (struct gf_draft){.lanes = lanes};
	gf_search_exhaust(f->w, f->best_s, EXHAUST_BUDGET, &d);
	offer_found(f, &d);
}

static void search(struct field *f)
{
	int lanes;

	for (lanes = 1; lanes <= f->w->lanes && lanes <= LANES_MOST;
	     lanes = lanes < LANES_EACH ? lanes + 1 : 2 * lanes) {
		if (f->best_s <= gf_work_bound_s(f->w, lanes) * (1 + SAME))
			continue;
		if (lanes == 1)
			search_line(f);
		else
			search_lanes(f, lanes);
	}
}

static void release(struct field *f)
{
	size_t i;

	for (i = 0; i < f->ndrafts; i++)
		gf_draft_release(&f->drafts[i]);
	free(f->drafts);
}

/* Offers what there is with one way alone, as options of the whole menu. */
static void offer_alone(struct field *f, size_t way)
{
	struct gf_work w = *f->w;
	struct field alone = {.w = &w, .best_s = INFINITY, .alone = true};
	size_t first = gf_menu_part(&f->w->menu, way, &w.menu), i, k;

	offer_others(&alone);
	search(&alone);
	for (i = 0; i < alone.ndrafts; i++) {
		struct gf_draft *d = &alone.drafts[i];

		for (k = 0; k < d->nsends; k++)
			d->sends[k].option += first;
		offer(f, d);
	}
	free(alone.drafts);
	gf_menu_part_release(&w.menu);
}

static bool simpler(const struct gf_draft *a, const struct gf_draft *b)
{
	if (a->lanes != b->lanes)
		return a->lanes < b->lanes;
	if (a->nsends != b->nsends)
		return a->nsends < b->nsends;
	return a->iteration_s < b->iteration_s;
}

static size_t simplest(const struct field *f, double limit_s)
{
	size_t i, best = SIZE_MAX;

	for (i = 0; i < f->ndrafts; i++)
		if (f->drafts[i].iteration_s <= limit_s &&
		    (best == SIZE_MAX ||
		     simpler(&f->drafts[i], &f->drafts[best])))
			best = i;
	return best;
}

/* Merges what can be merged in the good drafts of the fewest lanes. */
static void simplify(struct field *f, double limit_s)
{
	size_t n = f->ndrafts, i, k;
	int lanes = f->drafts[simplest(f, limit_s)].lanes;

	for (i = 0; i < n; i++) {
		struct gf_sim_result result = {0};
		struct gf_draft d;

		if (f->drafts[i].lanes != lanes ||
		    f->drafts[i].iteration_s > limit_s)
			continue;
		d = copy(&f->drafts[i]);
		d.policy = &gf_policy_optimal;
		for (k = 0; lanes == 1 && k < d.nsends; k++)
			d.sends[k].mode = GF_MODE_NORMAL;
		gf_search_merge(f->w, limit_s, polish_budget(f->w), &d);
		gf_work_predict(f->w, &d, &result);
		if (d.nsends < f->drafts[i].nsends)
			offer(f, &d);
		else
			gf_draft_release(&d);
	}
}

static void draft(const struct gf_work *w, struct gf_draft *d)
{
	struct field f = {
		.w = w,
		.best_s = INFINITY,
	};
	size_t nways = gf_menu_ways(&w->menu), way;
	double fastest_s, limit_s;

	f.alone = nways == 1 || nways > WAYS_ALONE;
	for (way = 0; !f.alone && way < nways; way++)
		offer_alone(&f, way);
	offer_others(&f);
	search(&f);
	fastest_s = f.best_s;
	limit_s = fastest_s * (1 + w->in->tolerance);
	if (w->in->tolerance > 0)
		simplify(&f, limit_s);
	*d = copy(&f.drafts[simplest(&f, limit_s)]);
	if (d->iteration_s > fastest_s)
		d->fastest_s = fastest_s;
	release(&f);
}

const struct gf_policy gf_policy_optimal = {
	.name = "optimal",
	.description = "the best plan of the step model: exact on one lane",
	.source = "gradflow",
	.lanes = 0,
	.automatic = true,
	.draft = draft,
};
