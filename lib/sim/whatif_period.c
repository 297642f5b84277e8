/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/whatif.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "sim/period_time.h"
#include "sim/variant.h"

/* A plan with a period in other circumstances: a step of a group there, and
 * the outer exchange there. */

static int check(const struct gf_period *p, const struct gf_what_if *w,
		 int ranks, struct gf_error *err)
{
	if (gf_what_if_varies(w) || w->nslow_links)
		return gf_error_set(err, -EINVAL,
				    "want no %s with a period, which is "
				    "simulated as a mean, got some",
				    w->nslow_links ? "slow links" : "jitter");
	if (ranks % p->group_ranks || ranks <= p->group_ranks)
		return gf_error_set(err, -EINVAL,
				    "want ranks that make more than one of the "
				    "plan's groups of %d, got %d",
				    p->group_ranks, ranks);
	return gf_period_check_steps(p, err);
}

/* All groups wait for the slowest: it is this one. */
static int run_group(const struct gf_plan *group, const struct gf_what_if *w,
		     double slowest, struct gf_outcome *out,
		     struct gf_error *err)
{
	struct gf_slow_rank *slow =
		gf_xcalloc((size_t)group->ranks, sizeof(*slow));
	const struct gf_fabric whole = {
		.network = w->network,
		.nlevels = w->levels ? w->nlevels : group->nlevels,
	};
	struct gf_what_if there = *w;
	struct gf_network lines;
	int i, rc;

	for (i = 0; i < group->ranks; i++)
		slow[i] = (struct gf_slow_rank){i, slowest};
	there.ranks = 0;
	there.period_steps = 0;
	there.slow = slow;
	there.nslow = (size_t)group->ranks;
	there.network =
		gf_sim_group_fabric(&whole, group->ranks, &lines).network;
	rc = gf_what_if(group, &there, out, err);
	free(slow);
	return rc;
}

static int run_outer(const struct gf_plan *p, const struct gf_period *period,
		     const struct gf_what_if *w, struct gf_outer_time *times,
		     struct gf_error *err)
{
	struct gf_plan outer;
	struct gf_variant v;
	int rc;

	gf_period_outer(p, &outer);
	rc = gf_variant_init(&v, &outer, w, err);
	rc = rc ? rc : gf_sim_outer(&v.plan, period, &v.fabric, times, err);
	gf_variant_release(&v);
	gf_plan_release(&outer);
	return rc;
}

/* Of a step of a group, what a step of all ranks is. */
static void conclude(struct gf_outcome *o, const struct gf_plan *group,
		     const struct gf_period *period, double slowest,
		     const struct gf_outer_time *times,
		     const struct gf_what_if *w)
{
	struct gf_model_profile *model = gf_model_profile_copy(group->model);
	struct gf_sim_result r = {
		.iteration_s = o->iteration_s,
		.forward_end_s = o->forward_end_s,
		.backward_end_s = o->backward_end_s,
	};
	const double steps = (double)period->steps;
	const double begin = fmin((double)period->begin_steps, w->iterations);
	struct gf_period_time time;

	gf_model_slow(model, slowest);
	gf_sim_period(period, model, &r, times, &time);
	gf_model_profile_free(model);
	r.iteration_s = time.period_s / steps;
	gf_outcome_finish(o, group, &r);
	o->period_steps = steps;
	o->period_s = time.period_s;
	o->outer_s = time.exchange_s;
	o->outer_exposed_s = time.exposed_s;
	o->synchronous_s = o->unlimited_s = o->iteration_s;
	o->largest_speedup = 0; /* of a group alone */
	o->total_s +=
		time.exposed_s * (begin + (w->iterations - begin) / steps);
	if (!(o->high_s > 0))
		return;
	o->low_s += time.exposed_s / steps;
	o->high_s += time.exposed_s / steps;
	o->efficiency_low = o->compute_s / o->high_s;
	o->efficiency_high = fmin(o->compute_s / o->low_s, 1);
}

int gf_what_if_period(const struct gf_plan *p, const struct gf_what_if *w,
		      struct gf_outcome *out, struct gf_error *err)
{
	const int ranks = w->ranks ? w->ranks : p->ranks;
	const double slowest = gf_what_if_slowest(w, ranks);
	struct gf_period period = p->period;
	struct gf_outcome o = {0};
	struct gf_outer_time *times;
	struct gf_plan group;
	int rc;

	if (w->period_steps)
		period.steps = w->period_steps;
	rc = check(&period, w, ranks, err);
	rc = rc ? rc : gf_sim_group_plan(p, &group, err);
	if (rc < 0)
		return rc;
	times = gf_xcalloc(period.fragments, sizeof(*times));
	rc = run_group(&group, w, slowest, &o, err);
	rc = rc ? rc : run_outer(p, &period, w, times, err);
	if (rc == 0) {
		o.ranks = ranks;
		o.bandwidth_bytes_per_s = w->bandwidth_bytes_per_s;
		conclude(&o, &group, &period, slowest, times, w);
		*out = o;
	} else {
		gf_outcome_release(&o);
	}
	free(times);
	gf_plan_release(&group);
	return rc;
}
