/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/network.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/registry.h"
#include "measure/gamma.h"
#include "measure/curve.h"
#include "contest/device_send.h"
#include "measure/level_costs.h"
#include "measure/link.h"
#include "measure/network_device.h"
#include "measure/twins.h"
#include "coll/algorithm.h"
#include "cost/stat.h"

/* The levels' share of the time. */
static const double levels_share = 0.25;
/* A round of a level is short: more of them tell no more. */
enum { LEVEL_REPEATS = 60 };

struct run {
	const struct gf_measure_network *config;
	struct gf_measure_limits limits;
	struct gf_network_device *gpus; /* NULL: between hosts */
	/* Progress: what is measured, and which part of the whole it is. */
	const char *what;
	double first, part;
};

static void advance(void *ctx, double fraction)
{
	const struct run *r = ctx;
	const struct gf_measure_network *c = r->config;

	if (c->progress)
		c->progress(c->progress_ctx, r->first + fraction * r->part,
			    r->what);
}

static struct gf_measure_curve_config curve_config(struct run *r)
{
	return (struct gf_measure_curve_config){
		.comm = r->config->comm,
		.limits = r->limits,
		.lanes = (int)r->config->lanes,
		.lines = GF_FIT_LINES_MOST,
		.progress = advance,
		.progress_ctx = r,
	};
}

struct subject {
	const struct gf_measure_network *config;
	const struct gf_allreduce_cost *cost;
	struct gf_network_device *gpus; /* NULL: between hosts */
};

static int sit(void *ctx, const struct gf_measure_sitting *s,
	       struct gf_measure_samples *samples, struct gf_error *err)
{
	const struct subject *subject = ctx;
	struct gf_measure_exchange_config config = {
		.comm = subject->config->comm,
		.algorithm = subject->cost->algorithm,
		.stages = subject->cost->stages,
		.nstages = subject->cost->nstages,
		.count_elems = s->bytes / 4,
		.messages = s->messages,
		.lanes = s->lanes,
		.compute_threads = subject->config->threads,
		.callers_memory = subject->config->callers_memory,
		.timeout_s = subject->config->timeout_s,
	};

	if (subject->gpus)
		return gf_network_device_sit(subject->gpus, subject->cost, s,
					     samples, err);
	return gf_measure_exchange_sitting(&config, &s->budget, samples, err);
}

static int measure_algorithm(struct run *r, const struct gf_network *net,
			     struct gf_allreduce_cost *cost,
			     struct gf_text *remarks, struct gf_error *err)
{
	struct gf_measure_curve_config config = curve_config(r);
	struct subject s = {r->config, cost, r->gpus};
	struct gf_measure_subject subject = {cost->algorithm, sit, &s};
	struct gf_measure_curve curve = {0};
	int rc = gf_measure_curve(&config, &subject, &curve, remarks, err);

	if (rc < 0) {
		gf_error_prefix(err, "%s", cost->algorithm);
		return rc;
	}
	cost->startup_s = curve.startup_s;
	cost->per_byte_s = curve.per_byte_s;
	cost->larger = curve.larger;
	cost->nlarger = curve.nlarger;
	cost->contention = curve.contention;
	cost->fit = curve.fit;
	gf_measure_contention_floor(net, r->config->levels, r->config->nlevels,
				    r->config->comm->local_ranks, cost,
				    remarks);
	return 0;
}

static bool by_nccl(const struct gf_measure_network *c)
{
	return c->device && c->device->nccl;
}

/* The time that is left, as the slowest rank sees it. */
static int time_left(const struct run *r, double began_s, double *left_s,
		     struct gf_error *err)
{
	double passed = gf_clock_s() - began_s;
	int rc = gf_measure_slowest(r->config->comm, &passed, 1, err);

	*left_s = fmax(0, r->config->budget_s - passed);
	return rc;
}

/* Copies the costs of an algorithm that takes the same steps. */
static void take_over(struct gf_allreduce_cost *cost,
		      const struct gf_allreduce_cost *twin,
		      struct gf_text *remarks)
{
	struct gf_allreduce_cost copy;

	gf_allreduce_cost_copy(&copy, twin);
	free(copy.algorithm);
	gf_measure_stages_free(copy.stages, copy.nstages);
	copy.algorithm = cost->algorithm;
	copy.stages = cost->stages;
	copy.nstages = cost->nstages;
	*cost = copy;
	gf_text_addf(remarks,
		     "\t%s takes the same steps as %s on these ranks, and has "
		     "its costs\n",
		     cost->algorithm, twin->algorithm);
}

static int measure_each(struct run *r, double began_s, const size_t *twins,
			size_t distinct, struct gf_network *net,
			struct gf_text *remarks, struct gf_error *err)
{
	/* an algorithm that overran does not starve those that follow */
	double fair = r->config->budget_s / (double)distinct, left = 0;
	size_t i;
	int rc = 0;

	r->first = r->part;
	r->part = (1 - r->first) / (double)distinct;
	for (i = 0; i < net->nallreduce && rc == 0; i++) {
		struct gf_allreduce_cost *cost = &net->allreduce[i];

		if (twins[i] < i) {
			take_over(cost, &net->allreduce[twins[i]], remarks);
			continue;
		}
		rc = time_left(r, began_s, &left, err);
		r->limits.budget_s = fmax(left, 0.5 * fair * (double)distinct) /
				     (double)distinct;
		distinct--;
		r->what = cost->algorithm;
		if (rc == 0)
			rc = measure_algorithm(r, net, cost, remarks, err);
		r->first += r->part;
	}
	return rc;
}

/* The middle size of an algorithm again: the logarithm of the time's quotient.
 */
static int look_again(struct run *r, const struct gf_allreduce_cost *cost,
		      double *difference, struct gf_error *err)
{
	const struct gf_measure_pace pace = {cost->startup_s, cost->per_byte_s,
					     0};
	struct subject subject = {r->config, cost, r->gpus};
	size_t middle = cost->fit.npoints / 2;
	struct gf_measure_sitting sitting = {
		.bytes = cost->fit.size_bytes[middle],
		.messages =
			gf_measure_chain(&pace, cost->fit.size_bytes[middle]),
		.lanes = 1,
		.budget = gf_measure_round(&r->limits.point),
	};
	struct gf_measure_samples samples = {0};
	double time_s = 0;
	int rc = sit(&subject, &sitting, &samples, err);

	if (rc == 0)
		time_s = gf_stat_median(samples.values, samples.count) /
			 sitting.messages;
	gf_measure_samples_release(&samples);
	*difference = time_s > 0 ? log(time_s / cost->fit.time_s[middle]) : 0;
	return rc;
}

static int find_drift(struct run *r, const size_t *twins,
		      struct gf_network *net, struct gf_error *err)
{
	double *differences = gf_xcalloc(net->nallreduce, sizeof(double));
	size_t n = 0, i;
	int rc = 0;

	for (i = 0; i < net->nallreduce && rc == 0; i++)
		if (twins[i] == i)
			rc = look_again(r, &net->allreduce[i],
					&differences[n++], err);
	if (rc == 0)
		net->drift = fmin(gf_stat_next_difference(differences, n), 1);
	free(differences);
	return rc;
}

static int measure_algorithms(struct run *r, double began_s,
			      struct gf_network *net, struct gf_text *remarks,
			      struct gf_error *err)
{
	size_t *twins, distinct = 0, i;
	int rc = gf_measure_twins(r->config->comm, net, &twins, err);

	/* NCCL may take whole stages in steps of its own */
	for (i = 0; by_nccl(r->config) && i < net->nallreduce; i++)
		twins[i] = i;
	for (i = 0; i < net->nallreduce; i++)
		distinct += twins[i] == i;
	if (rc == 0)
		rc = measure_each(r, began_s, twins, distinct, net, remarks,
				  err);
	if (rc == 0)
		rc = find_drift(r, twins, net, err);
	free(twins);
	return rc;
}

static int measure_levels(struct run *r, struct gf_network *net,
			  struct gf_text *remarks, struct gf_error *err)
{
	struct gf_measure_levels levels = {
		.curve = curve_config(r),
		.levels = r->config->levels,
		.nlevels = r->config->nlevels,
	};
	struct gf_measure_link link;
	int rc;

	if (r->config->nlevels == 0)
		return 0;
	r->what = "levels";
	r->part = levels_share;
	levels.curve.limits.budget_s = levels_share * r->config->budget_s;
	levels.curve.limits.point.high = LEVEL_REPEATS;
	if (r->gpus) {
		levels.mover = gf_network_device_mover(r->gpus);
		return gf_measure_levels(&levels, net, remarks, err);
	}
	gf_measure_link_open(&link, r->config->comm, r->config->timeout_s);
	levels.mover = gf_measure_link_mover(&link);
	rc = gf_measure_levels(&levels, net, remarks, err);
	gf_measure_link_close(&link);
	return rc;
}

/* 0 if this algorithm can run here, on all sizes. */
static int can_run(const struct run *r, const struct gf_algorithm *a,
		   struct gf_error *err)
{
	struct gf_coll_args args = {
		.ranks = r->config->comm->ranks,
		.count_elems = r->limits.max_bytes / 4,
		.elem_bytes = 4,
	};

	if (by_nccl(r->config))
		return gf_contest_send_check(
			&(struct gf_burst_message){
				.way.algorithm = a,
				.element = gf_element_number(GF_F32, GF_OP_SUM),
				.count_elems = args.count_elems,
			},
			r->config->comm, err);
	if (!a->build && !r->config->comm->ops->iallreduce)
		return gf_error_set(err, -ENOTSUP,
				    "the transport has no all-reduce");
	return a->applicable ? a->applicable(&args, err) : 0;
}

static int wanted(const struct gf_measure_network *c, const char *name)
{
	size_t i;

	if (!c->algorithms)
		return 1;
	for (i = 0; c->algorithms[i]; i++)
		if (strcmp(c->algorithms[i], name) == 0)
			return 1;
	return 0;
}

/* Entries with their names and stages, one per algorithm to measure. */
static void choose(const struct run *r, struct gf_network *net,
		   struct gf_text *remarks)
{
	const struct gf_measure_network *c = r->config;
	struct gf_error why;
	size_t i;

	for (i = 0; gf_algorithms[i]; i++) {
		struct gf_allreduce_cost *cost;

		if (!wanted(c, gf_algorithms[i]->name))
			continue;
		if (can_run(r, gf_algorithms[i], &why) < 0) {
			if (c->algorithms)
				gf_text_addf(remarks, "%s is left out: %s\n",
					     gf_algorithms[i]->name, why.text);
			continue;
		}
		net->allreduce =
			gf_xreallocarray(net->allreduce, net->nallreduce + 1,
					 sizeof(*net->allreduce));
		cost = &net->allreduce[net->nallreduce++];
		memset(cost, 0, sizeof(*cost));
		cost->algorithm = gf_xstrdup(gf_algorithms[i]->name);
		cost->nstages = gf_measure_stages(cost->algorithm, c->levels,
						  c->nlevels, by_nccl(c),
						  &cost->stages);
	}
}

int gf_measure_network_check(const struct gf_measure_network *c,
			     struct gf_error *err)
{
	size_t i;

	for (i = 0; c->algorithms && c->algorithms[i]; i++)
		if (!gf_algorithm_find(c->algorithms[i]))
			return gf_registry_refuse(
				&(struct gf_registry){gf_algorithms},
				"--algorithms", NULL, c->algorithms[i], err);
	if (c->min_bytes < 4 || c->min_bytes > c->max_bytes)
		return gf_error_set(err, -EINVAL,
				    "--min-bytes: want from 4 to the "
				    "--max-bytes, got %zu and %zu",
				    c->min_bytes, c->max_bytes);
	if (c->max_bytes / 32 < c->min_bytes)
		return gf_error_set(err, -EINVAL,
				    "--max-bytes: want at least 32 times the "
				    "--min-bytes, got %zu and %zu",
				    c->max_bytes, c->min_bytes);
	return 0;
}

int gf_measure_network(const struct gf_measure_network *c,
		       struct gf_network **out, struct gf_text *remarks,
		       struct gf_error *err)
{
	struct run r = {
		.config = c,
		.limits =
			{
				.min_bytes = c->min_bytes,
				.max_bytes = c->max_bytes,
				.whole = c->whole,
				.point = {c->time_s, 5, 1000},
			},
	};
	double began_s = gf_clock_s();
	struct gf_network *net;
	int rc = gf_measure_network_check(c, err);

	if (rc < 0)
		return rc;
	net = gf_xcalloc(1, sizeof(*net));
	net->ranks = c->comm->ranks;
	choose(&r, net, remarks);
	if (net->nallreduce == 0)
		rc = gf_error_set(err, -ENOTSUP,
				  "none of the algorithms wanted can run on "
				  "%d ranks here",
				  c->comm->ranks);
	if (rc == 0 && by_nccl(c))
		rc = gf_network_device_open(c, &r.gpus, err);
	if (rc == 0)
		rc = measure_levels(&r, net, remarks, err);
	if (rc == 0)
		rc = measure_algorithms(&r, began_s, net, remarks, err);
	gf_network_device_close(r.gpus);
	if (rc < 0) {
		gf_network_free(net);
		return rc;
	}
	*out = net;
	return 0;
}
