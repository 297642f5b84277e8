/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/profile_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "profiler/overlap_parts.h"
#include "profiler/chain.h"
#include "profiler/overlap.h"
#include "profiler/network_parts.h"

/* The repeats after the first algorithm, and when the time has passed. */
enum { FEWER_REPEATS = 9, FEWEST_REPEATS = 3 };

/* Of shorter messages the startup tells more. */
#define BELOW_LEAST ((size_t)8 << 10)

static struct gf_measure_overlap load_of(const struct gf_measure_beside *c,
					 const struct gf_profile *p,
					 const struct gf_allreduce_cost *cost, int lanes)
{
	return (struct gf_measure_overlap){
		.comm = c->comm,
		.device = c->device,
		.cost = cost,
		.lanes = lanes,
		.threads = c->threads,
		.callers_memory = c->callers_memory,
		.backward_s = p->model->backward_s,
		.repeats = c->repeats,
		.timeout_s = c->timeout_s,
	};
}

/* The next number of lanes of an algorithm. */
static void note(struct gf_allreduce_cost *cost, const struct gf_measure_mutual *found)
{
	struct gf_beside_backward *b = &cost->beside;
	size_t n = b->ncompute_slowdown;
	double before = n ? b->compute_slowdown[n - 1] : 1;

	if (!(found->compute > 0))
		return;
	b->compute_slowdown =
		gf_xreallocarray(b->compute_slowdown, n + 1, sizeof(*b->compute_slowdown));
	/* noise must not make company cheaper than being alone */
	b->compute_slowdown[b->ncompute_slowdown++] =
		found->compute > before ? found->compute : before;
	if (n == 0)
		b->message_slowdown = found->message;
}

/* A message below the first size at which another line begins may fare worse: MPI's own all-reduce
 * sends it in another way. */
static int measure_below(const struct gf_measure_overlap *like, struct gf_measure_step *step,
			 struct gf_allreduce_cost *cost, struct gf_error *err)
{
	struct gf_measure_overlap o = *like;
	struct gf_measure_mutual found = {0};
	int rc;

	if (!cost->nlarger)
		return 0;
	o.bytes = cost->larger[0].from_bytes / 8 * 4;
	if (o.bytes < BELOW_LEAST)
		return 0;
	rc = gf_measure_overlap(&o, step, &found, err);
	if (rc == 0 && found.message > cost->beside.message_slowdown)
		cost->beside.message_slowdown = found.message;
	return rc;
}

/* What shorter messages tell, which long ones hide. */
static int measure_short(const struct gf_measure_overlap *o, struct gf_measure_step *step,
			 struct gf_allreduce_cost *cost, double *issue_s, struct gf_error *err)
{
	struct gf_measure_issued issued = {0};
	int rc = measure_below(o, step, cost, err);

	rc = rc ? rc : gf_measure_issue(o, step, &issued, err);
	if (rc)
		return rc;
	cost->beside.startup_extra_s = issued.extra_s;
	if (issue_s)
		*issue_s = issued.issue_s;
	return 0;
}

static int time_is_left(const struct gf_measure_beside *c, double began_s, bool *left,
			struct gf_error *err)
{
	double passed_s = gf_clock_s() - began_s;
	int rc = gf_measure_slowest(c->comm, &passed_s, 1, err);

	*left = passed_s < c->budget_s;
	return rc;
}

static int measure_others(const struct gf_measure_beside *c, struct gf_measure_step *step,
			  struct gf_profile *p, const size_t *twins, double began_s,
			  struct gf_error *err)
{
	struct gf_network *net = p->network;
	struct gf_measure_mutual found;
	bool left = true;
	size_t i;
	int lanes, rc = 0;

	for (lanes = 1; lanes <= c->lanes; lanes++)
		for (i = 0; i < net->nallreduce && rc == 0 && left; i++) {
			struct gf_allreduce_cost *cost = &net->allreduce[i];
			struct gf_measure_overlap o = load_of(c, p, cost, lanes);

			if (twins[i] < i || (int)cost->beside.ncompute_slowdown >= lanes)
				continue;
			if (o.repeats > FEWER_REPEATS)
				o.repeats = FEWER_REPEATS;
			rc = time_is_left(c, began_s, &left, err);
			/* what each takes alone tells too little */
			if (!left && lanes == 1 && o.repeats > FEWEST_REPEATS)
				o.repeats = FEWEST_REPEATS;
			left |= lanes == 1;
			if (rc == 0 && left)
				rc = gf_measure_overlap(&o, step, &found, err);
			if (rc == 0 && left)
				note(cost, &found);
			if (rc == 0 && left && lanes == 1)
				rc = measure_short(&o, step, cost, NULL, err);
		}
	return rc;
}

static void take_over(struct gf_beside_backward *to, const struct gf_beside_backward *from)
{
	size_t size = from->ncompute_slowdown * sizeof(*from->compute_slowdown);

	*to = *from;
	to->compute_slowdown = gf_xmemdup(from->compute_slowdown, size);
}

/* Algorithms for which there was no time are taken to be as the first: else plans would be compared
 * by different measures. */
static void fill_in(struct gf_network *net, const struct gf_beside_backward *b, const size_t *twins)
{
	size_t i;

	for (i = 0; i < net->nallreduce; i++) {
		struct gf_beside_backward *to = &net->allreduce[i].beside;

		if (twins[i] < i)
			take_over(to, &net->allreduce[twins[i]].beside);
		else if (!to->ncompute_slowdown)
			take_over(to, b);
	}
}

static int measure(const struct gf_measure_beside *c, struct gf_measure_step *step,
		   struct gf_profile *p, const size_t *twins, struct gf_error *err)
{
	struct gf_network *net = p->network;
	/* the one that would carry the whole gradient */
	const struct gf_allreduce_cost *cheapest =
		gf_network_cheapest(net, (double)gf_model_profile_bytes(p->model));
	struct gf_allreduce_cost *first = &net->allreduce[twins[cheapest - net->allreduce]];
	struct gf_measure_overlap o = load_of(c, p, first, 1);
	struct gf_measure_mutual found = {0};
	double began_s = gf_clock_s(), crowded = c->comm->crowded;
	int rc = gf_measure_overlap(&o, step, &found, err);

	if (rc)
		return rc;
	p->model->overlap_slowdown = found.overlap_slowdown;
	note(first, &found);
	if (c->device && c->device->nccl)
		return 0;
	rc = measure_short(&o, step, first, &p->model->issue_s, err);
	rc = rc ? rc : measure_others(c, step, p, twins, began_s, err);
	if (rc)
		return rc;
	fill_in(net, &first->beside, twins);
	/* on all ranks, if it is so on any */
	rc = gf_measure_slowest(c->comm, &crowded, 1, err);
	return rc || !(crowded > 0) ? rc : gf_measure_crowd(&o, c->budget_s, step, p, err);
}

int gf_measure_beside(const struct gf_measure_beside *c, struct gf_measure_step *step,
		      struct gf_profile *p, struct gf_error *err)
{
	const struct gf_network *net = p->network;
	size_t *twins, i, k;
	int rc = gf_measure_twins(c->comm, net, &twins, err);

	/* an algorithm is measured once, and not with all of its stages */
	for (i = 0; i < net->nallreduce; i++)
		for (k = 0; k < i && twins[i] == i; k++)
			if (strcmp(net->allreduce[k].algorithm, net->allreduce[i].algorithm) == 0)
				twins[i] = twins[k];
	rc = rc ? rc : measure(c, step, p, twins, err);
	free(twins);
	return rc;
}
