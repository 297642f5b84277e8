/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/whatif.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "sim/jitter.h"
#include "sim/period_time.h"

/* Periods before those that count; a group's steps to draw from, at least. */
#define FILL_PERIODS 16
#define STEPS_LEAST  1000

/* A plan with a period in other circumstances: a step of each kind of group
 * there, and the outer exchange there. */
struct there {
	const struct gf_plan *plan;
	const struct gf_what_if *what;
	struct gf_period period;
	struct gf_plan group;
	struct gf_variant outer;
	struct gf_outer_time *times; /* per fragment */
	/* Groups with slow ranks or links are of kinds of their own. */
	struct gf_group_kind *kinds;
	struct gf_outcome *outcomes; /* per kind */
	size_t nkinds, slowest;      /* of the kinds */
};

static int check(const struct gf_period *p, int ranks, struct gf_error *err)
{
	if (ranks % p->group_ranks || ranks <= p->group_ranks)
		return gf_error_set(err, -EINVAL,
				    "want ranks that make more than one of the "
				    "plan's groups of %d, got %d",
				    p->group_ranks, ranks);
	return gf_period_check_steps(p, err);
}

/* --- groups --------------------------------------------------------------- */

/* What is uneven in one group; the lists are the caller's to free. */
static struct gf_what_if in_group(const struct there *t, int group)
{
	const int ranks = t->group.ranks;
	struct gf_slow_rank *slow =
		gf_xcalloc(t->what->nslow + 1, sizeof(*slow));
	struct gf_what_link *links =
		gf_xcalloc(t->what->nslow_links + 1, sizeof(*links));
	struct gf_what_if w = *t->what;
	size_t i;

	w.slow = slow;
	w.slow_links = links;
	w.nslow = w.nslow_links = 0;
	for (i = 0; i < t->what->nslow; i++)
		if (t->what->slow[i].rank / ranks == group) {
			slow[w.nslow] = t->what->slow[i];
			slow[w.nslow++].rank %= ranks;
		}
	for (i = 0; i < t->what->nslow_links; i++)
		if (t->what->slow_links[i].rank / ranks == group) {
			links[w.nslow_links] = t->what->slow_links[i];
			links[w.nslow_links++].rank %= ranks;
		}
	return w;
}

/* A kind more: so many groups like this one. */
static int add_kind(struct there *t, int group, size_t groups,
		    struct gf_error *err)
{
	struct gf_outcome *o = &t->outcomes[t->nkinds];
	struct gf_group_kind *kind = &t->kinds[t->nkinds++];
	struct gf_what_if w = in_group(t, group);
	const struct gf_fabric whole = {
		.network = w.network,
		.nlevels = w.levels ? w.nlevels : t->group.nlevels,
	};
	struct gf_network lines;
	size_t runs = 1;
	int rc;

	if (gf_what_if_varies(&w))
		runs = w.runs = w.runs > STEPS_LEAST ? w.runs : STEPS_LEAST;
	w.ranks = 0;
	w.period_steps = 0;
	w.timeline = false;
	w.network = gf_sim_group_fabric(&whole, t->group.ranks, &lines).network;
	w.steps_s = gf_xcalloc(runs, sizeof(*w.steps_s));
	*kind = (struct gf_group_kind){
		.groups = groups,
		.steps_s = w.steps_s,
		.nsteps = runs,
		.model = gf_model_profile_copy(t->group.model),
	};
	gf_model_slow(kind->model, gf_what_if_slowest(&w, t->group.ranks));
	rc = gf_what_if(&t->group, &w, o, err);
	kind->step.iteration_s = o->compute_s + o->exposed_comm_s;
	kind->step.forward_end_s = o->forward_end_s;
	kind->step.backward_end_s = o->backward_end_s;
	free((void *)w.slow);
	free((void *)w.slow_links);
	return rc;
}

/* Of the i-th uneven rank or link. */
static int group_of(const struct there *t, size_t i)
{
	const struct gf_what_if *w = t->what;

	return (i < w->nslow ? w->slow[i].rank
			     : w->slow_links[i - w->nslow].rank) /
	       t->group.ranks;
}

/* Each group that has something uneven, and all others. */
static int run_groups(struct there *t, int ranks, struct gf_error *err)
{
	const struct gf_what_if *w = t->what;
	const size_t n = w->nslow + w->nslow_links;
	size_t others = (size_t)(ranks / t->group.ranks), i, k;
	int rc = 0;

	t->kinds = gf_xcalloc(n + 1, sizeof(*t->kinds));
	t->outcomes = gf_xcalloc(n + 1, sizeof(*t->outcomes));
	for (i = 0; i < n && rc == 0; i++) {
		for (k = 0; group_of(t, k) != group_of(t, i); k++)
			;
		if (k < i)
			continue;
		rc = add_kind(t, group_of(t, i), 1, err);
		others--;
	}
	if (rc == 0 && others)
		rc = add_kind(t, -1, others, err);
	for (i = 0; i < t->nkinds; i++)
		if (t->kinds[i].step.iteration_s >
		    t->kinds[t->slowest].step.iteration_s)
			t->slowest = i;
	return rc;
}

/* --- the outer exchange --------------------------------------------------- */

static int run_outer(struct there *t, struct gf_error *err)
{
	struct gf_plan outer;
	int rc;

	gf_period_outer(t->plan, &outer);
	rc = gf_variant_init(&t->outer, &outer, t->what, err);
	rc = rc ? rc : gf_variant_price(&t->outer, t->what, err);
	if (rc < 0)
		gf_error_prefix(err, "outer exchange");
	else
		gf_sim_outer_times(&t->outer.plan, &t->period,
				   &t->outer.traffic, t->times);
	gf_plan_release(&outer);
	return rc;
}

/* --- periods -------------------------------------------------------------- */

/* Mean steps of periods with jitter. */
static void run_periods(struct there *t, struct gf_outcome *o)
{
	const struct gf_what_if *w = t->what;
	const size_t n = w->runs > 1 ? w->runs : 1;
	double *steps_s = gf_xcalloc(n, sizeof(*steps_s)), before_s = 0;
	double *startup_s = gf_startups_keep(&t->outer.traffic);
	struct gf_period_walk walk;
	size_t i;

	gf_period_walk_init(&walk, &t->period, t->kinds, t->nkinds, w->seed);
	for (i = 0; i < FILL_PERIODS + n; i++) {
		double ended_s;

		if (w->network_jitter_s > 0) {
			/* after the streams of steps */
			gf_startups_delay(&t->outer.traffic, startup_s, w,
					  ((uint64_t)1 << 32) + i);
			gf_sim_outer_times(&t->outer.plan, &t->period,
					   &t->outer.traffic, t->times);
		}
		ended_s = gf_period_walk_on(&walk, t->times);
		if (i >= FILL_PERIODS)
			steps_s[i - FILL_PERIODS] =
				(ended_s - before_s) / (double)t->period.steps;
		before_s = ended_s;
	}
	gf_outcome_spread(o, steps_s, n);
	gf_period_walk_release(&walk);
	free(startup_s);
	free(steps_s);
}

/* Of a step of the slowest group, what a step of all ranks is. */
static void conclude(struct there *t, struct gf_outcome *o)
{
	const struct gf_group_kind *kind = &t->kinds[t->slowest];
	struct gf_sim_result r = kind->step;
	const double steps = (double)t->period.steps, group_s = o->iteration_s;
	const double begin =
		fmin((double)t->period.begin_steps, t->what->iterations);
	struct gf_period_time time;
	double more_s;

	gf_sim_period(&t->period, kind->model, &r, t->times, &time);
	o->iteration_s = r.iteration_s = time.period_s / steps;
	if (gf_what_if_varies(t->what)) {
		run_periods(t, o);
		o->iteration_s = o->mean_s;
	}
	if (t->what->timeline) {
		o->timeline = gf_xcalloc(1, sizeof(*o->timeline));
		gf_gantt_period(o->timeline, &t->period, kind->model,
				&kind->step, t->times);
	}
	gf_outcome_finish(o, &t->group, &r);
	o->period_steps = steps;
	o->period_s = o->iteration_s * steps;
	o->outer_s = time.exchange_s;
	o->outer_exposed_s = time.exposed_s;
	o->synchronous_s = o->iteration_s;
	o->unlimited_s = o->largest_speedup = 0; /* of a group alone */
	more_s = o->iteration_s - group_s;
	o->total_s +=
		time.exposed_s * begin + more_s * (t->what->iterations - begin);
	if (!(o->high_s > 0))
		return;
	o->low_s += more_s;
	o->high_s += more_s;
	o->efficiency_low = o->compute_s / o->high_s;
	o->efficiency_high = fmin(o->compute_s / o->low_s, 1);
}

static void release(struct there *t)
{
	size_t i;

	for (i = 0; i < t->nkinds; i++) {
		free((void *)t->kinds[i].steps_s);
		gf_model_profile_free(t->kinds[i].model);
		gf_outcome_release(&t->outcomes[i]);
	}
	free(t->kinds);
	free(t->outcomes);
	free(t->times);
	gf_variant_release(&t->outer);
	gf_plan_release(&t->group);
}

int gf_what_if_period(const struct gf_plan *p, const struct gf_what_if *w,
		      struct gf_outcome *out, struct gf_error *err)
{
	const int ranks = w->ranks ? w->ranks : p->ranks;
	struct there t = {.plan = p, .what = w, .period = p->period};
	struct gf_outcome *slowest;
	int rc;

	if (w->period_steps)
		t.period.steps = w->period_steps;
	rc = check(&t.period, ranks, err);
	rc = rc ? rc : gf_sim_group_plan(p, &t.group, err);
	if (rc < 0)
		return rc;
	t.times = gf_xcalloc(t.period.fragments, sizeof(*t.times));
	rc = run_groups(&t, ranks, err);
	rc = rc ? rc : run_outer(&t, err);
	if (rc == 0) {
		slowest = &t.outcomes[t.slowest];
		slowest->ranks = ranks;
		conclude(&t, slowest);
		slowest->steps_s = NULL;
		*out = *slowest;
		*slowest = (struct gf_outcome){0};
	}
	release(&t);
	return rc;
}
