/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The best plan there is under the step model. On one lane it is exact (serial.c), but for large
 * models in which backward slows messages and is held up when they are issued. On more, a beam
 * search (beam.c) and the best plan of fewer lanes are polished (local_search.c), and for small
 * models every choice is tried (exhaust.c).
 *
 * More choice is never worse, by construction: every other automatic policy is drafted first; k
 * lanes come after fewer lanes; and of the ways to send a message, each is searched alone first,
 * exactly as if there were no other, unless a bound says that nothing can come of it. So is every
 * set of ways, if there are SETS_MOST ways or fewer.
 *
 * Of very many tensors, neighbours are cut as one on more than one lane.
 *
 * Within the problem's tolerance of the best, the plan with the fewest lanes wins, then that with
 * the fewest messages: such gains are smaller than what the model leaves out.
 */
#include <math.h>
#include <stdint.h>

#include "base/array.h"
#include "base/heap.h"
#include "planner/policies/policy.h"
#include "planner/search/search.h"

/* Starts of messages per search, and for large models times as many. */
#define BEAM_BUDGET     60000.0
#define POLISH_BUDGET   200000.0
#define POLISH_LARGE    1.5
#define KICKS           300
#define GROWTH          0.3
#define GROWTH_LARGE    0.6
#define EXHAUST_TENSORS 16
#define EXHAUST_BUDGET  200000.0
/* Ways of which all sets are searched, and ways of which each is. */
#define SETS_MOST  3
#define ALONE_MOST 8
/* Drafts whose messages are merged within the tolerance. */
#define MERGED_MOST 3
/* Lanes that are searched: all up to the first, then twice as many while the last count brought
 * more than the tolerance. */
#define LANES_EACH 8
#define LANES_MOST 64
/* Tensors times lanes (LANES_MOST at the most): of more, neighbours are cut as one (blocks.c), but
 * on one lane. */
#define EFFORT_MOST 24000
/* Of the limit within which drafts are merged until they have few messages. */
#define HALVINGS 10
#define SAME     1e-12 /* relative: sums in another order */

/* All drafts, so that the simplest of the good ones can win. Options are those of the whole menu.
 * Sets of ways have a bit for each. */
struct drafts {
	struct found {
		struct gf_draft draft;
		uint32_t ways; /* that it could use */
		bool merged;
	} * found;
	size_t nfound, capacity;
	uint32_t *searched; /* sets */
	size_t nsearched, sets_capacity;
};

/* The search over some of the ways. */
struct field {
	const struct gf_workbench *w; /* with these ways alone */
	uint32_t ways;
	const size_t *options; /* of the whole menu, per option of this one */
	struct drafts *all;
	double best_s; /* by these ways */
};

/* Takes the draft. */
static void offer(struct field *f, struct gf_draft *d)
{
	struct found *to;

	if (d->nsends == 0) {
		gf_draft_release(d);
		return;
	}
	for (size_t i = 0; i < d->nsends; i++)
		d->sends[i].option = f->options[d->sends[i].option];
	f->best_s = fmin(f->best_s, d->iteration_s);
	to = gf_array_push(&f->all->found, &f->all->nfound, &f->all->capacity);
	*to = (struct found){*d, f->ways, false};
}

static int most_lanes(const struct gf_workbench *w)
{
	return w->lanes < LANES_MOST ? w->lanes : LANES_MOST;
}

static int next_lanes(int lanes, int most)
{
	int next = lanes < LANES_EACH ? lanes + 1 : 2 * lanes;

	return lanes < most && next > most ? most : next;
}

/* The share of a search's budget that takes as long as the whole of it does with LANES_EACH lanes:
 * a message takes longer, the more lanes there are. */
static double share_of(int lanes)
{
	return fmin((double)LANES_EACH / lanes, 1);
}

static void offer_others(struct field *f)
{
	for (size_t i = 0; gf_policies[i]; i++) {
		const struct gf_policy *policy = gf_policies[i];
		/* a policy of one lane needs no more */
		int most = policy->lanes > 1 ? most_lanes(f->w) : 1;
		struct gf_draft d;

		if (!policy->automatic || policy == &gf_policy_optimal)
			continue;
		for (int lanes = 1; lanes <= most; lanes = next_lanes(lanes, most)) {
			gf_draft_make(&d, f->w, policy, lanes);
			offer(f, &d);
		}
	}
}

static double polish_budget(const struct gf_workbench *w)
{
	return POLISH_BUDGET * fmin(fmax((double)w->ntensors / GF_SEARCH_LARGE, 1), POLISH_LARGE);
}

static struct gf_draft copy(const struct gf_draft *d)
{
	struct gf_draft c = *d;

	c.sends = gf_xmemdup(d->sends, d->nsends * sizeof(*d->sends));
	c.capacity = d->nsends;
	return c;
}

/* A search's draft: predicted, polished and compared. Polishing does not know how much later
 * messages will hold backward up: its result may be worse. */
static void offer_found(struct field *f, struct gf_draft *d, int kicks)
{
	struct gf_draft found;

	d->policy = &gf_policy_optimal;
	if (d->nsends > 0) {
		gf_workbench_predict(f->w, d);
		if (f->w->mutual) {
			found = copy(d);
			offer(f, &found);
		}
		if (d->lanes > 1) {
			gf_search_polish(f->w, share_of(d->lanes) * polish_budget(f->w), kicks, d);
			gf_workbench_predict(f->w, d);
		}
	}
	offer(f, d);
}

static bool within(uint32_t ways, uint32_t others)
{
	return (ways & ~others) == 0;
}

/* A copy of the best draft, with this menu's options. */
static struct gf_draft copy_best(const struct field *f)
{
	const struct gf_draft *best = NULL;
	struct gf_draft d = {0};
	size_t i, k;

	for (i = 0; i < f->all->nfound; i++) {
		const struct found *c = &f->all->found[i];

		if (within(c->ways, f->ways) && (!best || c->draft.iteration_s < best->iteration_s))
			best = &c->draft;
	}
	if (!best)
		return d;
	d = copy(best);
	for (i = 0; i < d.nsends; i++) {
		for (k = 0; f->options[k] != d.sends[i].option; k++)
			;
		d.sends[i].option = k;
	}
	return d;
}

static void exhaust(struct field *f, int lanes)
{
	struct gf_draft d = {.lanes = lanes};

	if (f->w->ntensors > EXHAUST_TENSORS)
		return;
	gf_search_exhaust(f->w, f->best_s, EXHAUST_BUDGET, &d);
	offer_found(f, &d, 0);
}

static void search_line(struct field *f)
{
	struct gf_draft d = {.lanes = 1};

	gf_search_serial(f->w, f->best_s, &d);
	offer_found(f, &d, 0);
	if (f->w->mutual && f->w->in->model->issue_s > 0)
		exhaust(f, 1);
}

static void search_lanes(struct field *f, int lanes)
{
	struct gf_draft d = {.lanes = lanes};

	gf_search_beam(f->w, f->best_s, share_of(lanes) * BEAM_BUDGET,
		       f->w->ntensors > GF_SEARCH_LARGE ? GROWTH_LARGE : GROWTH, &d);
	offer_found(f, &d, 0);
	d = copy_best(f);
	d.lanes = lanes;
	offer_found(f, &d, KICKS);
	exhaust(f, lanes);
}

static void search(struct field *f)
{
	double before_s = INFINITY; /* the best before the last count */
	int lanes, most = most_lanes(f->w);

	for (lanes = 1; lanes <= most; lanes = next_lanes(lanes, most)) {
		if (lanes > LANES_EACH && f->best_s * (1 + f->w->in->tolerance) >= before_s)
			return;
		before_s = f->best_s;
		if (f->best_s <= gf_workbench_bound_s(f->w, lanes) * (1 + SAME))
			continue;
		if (lanes == 1)
			search_line(f);
		else
			search_lanes(f, lanes);
	}
}

/* --- sets of ways --------------------------------------------------------- */

static int count(uint32_t ways)
{
	int n = 0;

	for (; ways; ways &= ways - 1)
		n++;
	return n;
}

static void search_ways(const struct gf_workbench *whole, uint32_t ways, struct drafts *all);

static bool is_searched(const struct drafts *all, uint32_t ways)
{
	for (size_t i = 0; i < all->nsearched; i++)
		if (all->searched[i] == ways)
			return true;
	return false;
}

/* Some of the field's ways by themselves, unless no plan by them is better than what the field
 * has. */
static void search_part(struct field *f, const struct gf_workbench *whole, uint32_t ways)
{
	struct gf_workbench part;
	double bound_s;

	free(gf_workbench_part(whole, ways, &part));
	bound_s = gf_workbench_bound_s(&part, most_lanes(&part));
	gf_menu_part_release(&part.menu);
	if (f->best_s > bound_s * (1 + SAME) && !is_searched(f->all, ways))
		search_ways(whole, ways, f->all);
	for (size_t i = 0; i < f->all->nfound; i++)
		if (within(f->all->found[i].ways, f->ways))
			f->best_s = fmin(f->best_s, f->all->found[i].draft.iteration_s);
}

static void search_parts(struct field *f, const struct gf_workbench *whole)
{
	int n = count(f->ways);
	uint32_t way, left;

	for (left = f->ways; n > 1 && n <= ALONE_MOST && left; left &= ~way) {
		way = left & -left;
		search_part(f, whole, n <= SETS_MOST ? f->ways & ~way : way);
	}
}

/* Does the same whatever other ways there are. */
static void search_ways(const struct gf_workbench *whole, uint32_t ways, struct drafts *all)
{
	struct gf_workbench w;
	GF_FREED size_t *options = gf_workbench_part(whole, ways, &w);
	struct field f = {&w, ways, options, all, INFINITY};

	*(uint32_t *)gf_array_push(&all->searched, &all->nsearched, &all->sets_capacity) = ways;
	offer_others(&f);
	search_parts(&f, whole);
	search(&f);
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

/* The simplest of the drafts that are good enough and, if that is wanted, not yet merged; or
 * NULL. */
static struct found *simplest(const struct drafts *all, double limit_s, bool unmerged)
{
	struct found *best = NULL;

	for (size_t i = 0; i < all->nfound; i++) {
		struct found *c = &all->found[i];

		if (c->draft.iteration_s <= limit_s && !(unmerged && c->merged) &&
		    (!best || simpler(&c->draft, &best->draft)))
			best = c;
	}
	return best;
}

/* Takes the draft, which is of all ways. */
static void add_simple(struct drafts *all, const struct gf_draft *d)
{
	*(struct found *)gf_array_push(&all->found, &all->nfound, &all->capacity) =
		(struct found){*d, UINT32_MAX, true};
}

/* On one lane, the fewest messages. */
static void add_fewest(const struct gf_workbench *w, struct drafts *all, double limit_s)
{
	const struct gf_draft *fastest = NULL;
	struct gf_draft d;

	for (size_t i = 0; i < all->nfound; i++) {
		const struct gf_draft *c = &all->found[i].draft;

		if (c->lanes == 1 && (!fastest || c->iteration_s < fastest->iteration_s))
			fastest = c;
	}
	gf_search_fewest(w, fastest, limit_s, &d);
	d.policy = &gf_policy_optimal;
	if (d.nsends)
		add_simple(all, &d);
}

/* The draft with messages merged while it stays within the limit. */
static struct gf_draft merged(const struct gf_workbench *w, const struct gf_draft *from,
			      double limit_s)
{
	struct gf_draft d = copy(from);

	d.policy = &gf_policy_optimal;
	for (size_t i = 0; d.lanes == 1 && i < d.nsends; i++)
		d.sends[i].mode = GF_MODE_NORMAL;
	gf_search_merge(w, limit_s, polish_budget(w), &d);
	gf_workbench_predict(w, &d);
	return d;
}

/* Merges what can be merged in good drafts of the fewest lanes. */
static void simplify(const struct gf_workbench *w, struct drafts *all, double limit_s)
{
	int lanes = simplest(all, limit_s, false)->draft.lanes, tries;
	struct gf_draft d;
	struct found *from;

	if (lanes == 1)
		add_fewest(w, all, limit_s);
	for (tries = 0; tries < MERGED_MOST; tries++) {
		from = simplest(all, limit_s, true);
		if (!from || from->draft.lanes != lanes)
			return;
		from->merged = true;
		d = merged(w, &from->draft, limit_s);
		add_simple(all, &d);
	}
}

/* As few messages as `most`, of a draft of many, in little more time: the limit within which
 * messages are merged is halved. high_s: such a draft is known. */
static void merge_until(const struct gf_workbench *w, struct drafts *all,
			const struct gf_draft *from, size_t most, double high_s)
{
	double low_s = from->iteration_s, middle_s;
	struct gf_draft many = copy(from), d;

	for (int i = 0; i < HALVINGS; i++) {
		middle_s = low_s + (high_s - low_s) / 2;
		if (many.lanes == 1)
			add_fewest(w, all, middle_s);
		d = merged(w, &many, middle_s);
		*(d.nsends <= most ? &high_s : &low_s) = middle_s;
		add_simple(all, &d);
	}
	gf_draft_release(&many);
}

/* Leaves drafts of at most so many messages; `single` has a plan of the fewest that there can
 * be. */
static void cap(const struct gf_workbench *w, struct drafts *all, size_t most)
{
	size_t n = all->nfound, left = 0, i, k;
	double capped_s = INFINITY;

	for (i = 0; i < n; i++)
		if (all->found[i].draft.nsends <= most)
			capped_s = fmin(capped_s, all->found[i].draft.iteration_s);
	for (i = 0; i < n; i++) { /* the fastest of each number of lanes */
		const struct gf_draft *d = &all->found[i].draft;

		for (k = 0; k < n; k++)
			if (all->found[k].draft.lanes == d->lanes &&
			    (all->found[k].draft.iteration_s < d->iteration_s ||
			     (k < i && all->found[k].draft.iteration_s == d->iteration_s)))
				break;
		if (k == n && d->nsends > most && d->iteration_s < capped_s)
			merge_until(w, all, d, most, capped_s);
	}
	for (i = 0; i < all->nfound; i++)
		if (all->found[i].draft.nsends <= most)
			all->found[left++] = all->found[i];
		else
			gf_draft_release(&all->found[i].draft);
	all->nfound = left;
}

static void release(struct drafts *all)
{
	for (size_t i = 0; i < all->nfound; i++)
		gf_draft_release(&all->found[i].draft);
	free(all->found);
	free(all->searched);
}

static size_t most_tensors(const struct gf_workbench *w)
{
	return w->lanes == 1 ? SIZE_MAX : (size_t)(EFFORT_MOST / most_lanes(w));
}

/* The simplest draft of those within the tolerance. (Of a large model that by blocks has been
 * simplified.) */
static void choose(const struct gf_workbench *w, struct drafts *all, struct gf_draft *d)
{
	double fastest_s = INFINITY, limit_s;

	if (w->in->max_messages)
		cap(w, all, w->in->max_messages);
	for (size_t i = 0; i < all->nfound; i++)
		fastest_s = fmin(fastest_s, all->found[i].draft.iteration_s);
	limit_s = fastest_s * (1 + w->in->tolerance);
	if (w->in->tolerance > 0 && w->ntensors <= most_tensors(w))
		simplify(w, all, limit_s);
	*d = copy(&simplest(all, limit_s, false)->draft);
	if (d->iteration_s > fastest_s)
		d->fastest_s = fastest_s;
}

static uint32_t all_ways(const struct gf_menu *m)
{
	size_t ways = 0, i;

	for (i = 0; i < m->noptions; i++)
		ways += m->options[i].line.from_bytes <= 0;
	return ways < GF_MENU_BITS ? (UINT32_C(1) << ways) - 1 : UINT32_MAX;
}

static void search_whole(const struct gf_workbench *w, struct gf_draft *d)
{
	struct drafts all = {0};

	search_ways(w, all_ways(&w->menu), &all);
	choose(w, &all, d);
	release(&all);
}

/* Tensor by tensor on one lane, and what other policies find; on more lanes by blocks of
 * tensors. */
static void search_large(const struct gf_workbench *w, struct drafts *all)
{
	const uint32_t ways = all_ways(&w->menu);
	struct gf_workbench part, line = *w;
	GF_FREED size_t *options = gf_workbench_part(w, ways, &part);
	struct field f = {&part, ways, options, all, INFINITY};
	struct gf_draft d;

	line.lanes = 1;
	search_ways(&line, ways, all);
	offer_others(&f);
	gf_search_blocks(w, most_tensors(w), search_whole, &d);
	offer_found(&f, &d, 0);
	gf_menu_part_release(&part.menu);
}

static void draft(const struct gf_workbench *w, struct gf_draft *d)
{
	struct drafts all = {0};

	if (w->ntensors <= most_tensors(w)) {
		search_whole(w, d);
		return;
	}
	search_large(w, &all);
	choose(w, &all, d);
	release(&all);
}

/* MANUAL
 * the best plan under the model.
 * On one lane it is exact; where messages and backward slow each other, up to 1500 tensors.
 * On more lanes it searches from the plans of all other policies, and is never worse.
 * If gradients are selected or stale, it is the best of all policies' plans. */
const struct gf_policy gf_policy_optimal = {
	.name = "optimal",
	.description = "the best plan of the step model: exact on one lane",
	.place = 90,
	.source = "gradflow",
	.lanes = 0,
	.automatic = true,
	.draft = draft,
};
