/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/whatif/whatif.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "simulator/period_time.h"
#include "simulator/whatif/jitter.h"

/* A plan with a period in other circumstances: a step of the slowest group there, and the outer
 * exchange there. */
struct there {
	const struct gf_plan *plan;
	const struct gf_what_if *what;
	struct gf_period period;
	struct gf_plan group;
	struct gf_variant outer;
	struct gf_outer_time *times; /* per fragment */
};

static int check(const struct gf_period *p, int ranks, struct gf_error *err)
{
	if (ranks % p->group_ranks || ranks <= p->group_ranks)
		return gf_error_set(
			err, -EINVAL,
			"want ranks that make more than one of the plan's groups of %d, got %d",
			p->group_ranks, ranks);
	return gf_period_check_steps(p, err);
}

/* A step of a group that has the slowest rank of all, and all slow links. */
static int run_group(struct there *t, double slowest, struct gf_outcome *o, struct gf_error *err)
{
	const int ranks = t->group.ranks;
	struct gf_what_if w = *t->what;
	const struct gf_fabric whole = {
		.network = w.network,
		.nlevels = w.levels ? w.nlevels : t->group.nlevels,
	};
	struct gf_slow_rank *slow = gf_xcalloc((size_t)ranks, sizeof(*slow));
	struct gf_what_link *links = gf_xmemdup(w.slow_links, w.nslow_links * sizeof(*links));
	struct gf_network lines;
	size_t i;
	int rc;

	for (i = 0; i < (size_t)ranks; i++)
		slow[i] = (struct gf_slow_rank){(int)i, slowest};
	for (i = 0; i < w.nslow_links; i++)
		links[i].rank %= ranks;
	w.ranks = 0;
	w.period_steps = 0;
	w.timeline = false;
	w.slow = slow;
	w.nslow = slowest < 1 ? (size_t)ranks : 1;
	w.slow_links = links;
	w.network = gf_sim_group_fabric(&whole, ranks, &lines).network;
	rc = gf_what_if(&t->group, &w, o, err);
	free(slow);
	free(links);
	return rc;
}

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
		gf_sim_outer_times(&t->outer.plan, &t->period, &t->outer.traffic, t->times);
	gf_plan_release(&outer);
	return rc;
}

/* Of a step of the slowest group, what a step of all ranks is. */
static void conclude(struct there *t, double slowest, struct gf_outcome *o)
{
	const struct gf_sim_result step = {
		.iteration_s = o->compute_s + o->exposed_comm_s,
		.forward_end_s = o->forward_end_s,
		.backward_end_s = o->backward_end_s,
	};
	struct gf_sim_result r = step;
	struct gf_model_profile *model = gf_model_profile_copy(t->group.model);
	const double steps = (double)t->period.steps, group_s = o->iteration_s;
	const double begin = fmin((double)t->period.begin_steps, t->what->iterations);
	struct gf_period_time time;
	double more_s;

	gf_model_slow(model, slowest);
	gf_sim_period(&t->period, model, &step, t->times, &time);
	o->iteration_s = r.iteration_s = time.period_s / steps;
	if (t->what->timeline) {
		o->timeline = gf_xcalloc(1, sizeof(*o->timeline));
		gf_gantt_period(o->timeline, &t->period, model, &step, t->times);
	}
	gf_model_profile_free(model);
	gf_outcome_finish(o, &t->group, &r);
	o->period_steps = steps;
	o->period_s = o->iteration_s * steps;
	o->outer_s = time.exchange_s;
	o->outer_exposed_s = time.exposed_s;
	o->synchronous_s = o->iteration_s;
	o->unlimited_s = o->largest_speedup = 0; /* of a group alone */
	more_s = o->iteration_s - group_s;
	o->total_s += time.exposed_s * begin + more_s * (t->what->iterations - begin);
	if (!(o->high_s > 0))
		return;
	o->low_s += more_s;
	o->high_s += more_s;
	o->efficiency_low = o->compute_s / o->high_s;
	o->efficiency_high = fmin(o->compute_s / o->low_s, 1);
}

int gf_what_if_period(const struct gf_plan *p, const struct gf_what_if *w, struct gf_outcome *out,
		      struct gf_error *err)
{
	const int ranks = w->ranks ? w->ranks : p->ranks;
	const double slowest = gf_what_if_slowest(w, ranks);
	struct there t = {.plan = p, .what = w, .period = p->period};
	struct gf_outcome o = {0};
	int rc;

	assert(!gf_what_if_varies(w));
	if (w->period_steps)
		t.period.steps = w->period_steps;
	rc = check(&t.period, ranks, err);
	rc = rc ? rc : gf_sim_group_plan(p, &t.group, err);
	if (rc < 0)
		return rc;
	t.times = gf_xcalloc(t.period.fragments, sizeof(*t.times));
	rc = run_group(&t, slowest, &o, err);
	rc = rc ? rc : run_outer(&t, err);
	if (rc == 0) {
		o.ranks = ranks;
		conclude(&t, slowest, &o);
		*out = o;
	} else {
		gf_outcome_release(&o);
	}
	free(t.times);
	gf_variant_release(&t.outer);
	gf_plan_release(&t.group);
	return rc;
}
