/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/network.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "bench/contention.h"
#include "bench/stat.h"
#include "coll/algorithm.h"
#include "cost/fit.h"

enum { FEWEST_SIZES = 8 };
/* Below these a straight line is a poor description. */
static const double poor_r_squared = 0.95, poor_residual = 0.5;

size_t *gf_bench_sizes(size_t min_bytes, size_t max_bytes, size_t *count)
{
	size_t *sizes = NULL, n = 0, size;

	for (size = min_bytes / 4 * 4; size < max_bytes; size *= 2) {
		sizes = gf_xreallocarray(sizes, n + 2, sizeof(*sizes));
		sizes[n++] = size;
		if (size == 0 || size > max_bytes / 2)
			break;
	}
	sizes = gf_xreallocarray(sizes, n + 1, sizeof(*sizes));
	sizes[n++] = (max_bytes + 3) / 4 * 4;
	*count = n;
	return sizes;
}

/* Long enough that how the ranks meet and wake up does not count, yet no more
 * memory than a large model's gradient. */
static int chain_length(size_t bytes)
{
	if (bytes <= (size_t)64 << 10)
		return 16;
	if (bytes <= (size_t)1 << 20)
		return 8;
	return bytes <= (size_t)16 << 20 ? 3 : 1;
}

struct gf_bench_budget gf_bench_round(const struct gf_bench_budget *whole)
{
	return (struct gf_bench_budget){
		.budget_s = whole->budget_s / GF_BENCH_ROUNDS,
		.low = (whole->low + GF_BENCH_ROUNDS - 1) / GF_BENCH_ROUNDS,
		.high = (whole->high + GF_BENCH_ROUNDS - 1) / GF_BENCH_ROUNDS,
	};
}

static int sit(const struct gf_bench_network *c, const char *algorithm,
	       size_t bytes, struct gf_bench_samples *samples,
	       struct gf_error *err)
{
	struct gf_bench_budget budget = gf_bench_round(&c->budget);
	struct gf_bench_exchange_config config = {
		.comm = c->comm,
		.algorithm = algorithm,
		.count_elems = bytes / 4,
		.messages = chain_length(bytes),
		.lanes = 1,
		.timeout_s = c->timeout_s,
	};

	return gf_bench_exchange_sitting(&config, &budget, samples, err);
}

static void judge_fit(const struct gf_linear_fit *f, const char *algorithm,
		      struct gf_text *remarks)
{
	if (f->clamped_startup)
		gf_text_addf(remarks,
			     "%s: the fit has a negative startup; taken as 0\n",
			     algorithm);
	if (f->clamped_slope)
		gf_text_addf(remarks,
			     "%s: times fall as messages grow; taken as "
			     "constant\n",
			     algorithm);
	if (f->r_squared < poor_r_squared || f->residual_max > poor_residual)
		gf_text_addf(remarks,
			     "%s: startup + bytes * per_byte describes the "
			     "measurements poorly (R^2 %.3f, off by up to "
			     "%.0f %%)\n",
			     algorithm, f->r_squared, 100 * f->residual_max);
}

int gf_bench_fit(struct gf_allreduce_cost *cost, struct gf_text *remarks,
		 struct gf_error *err)
{
	struct gf_fit *fit = &cost->fit;
	double *sizes = gf_xcalloc(fit->npoints, sizeof(*sizes));
	struct gf_linear_fit f;
	size_t i;
	int rc;

	for (i = 0; i < fit->npoints; i++)
		sizes[i] = (double)fit->size_bytes[i];
	rc = gf_fit_linear(sizes, fit->time_s, fit->npoints, &f, err);
	if (rc == 0) {
		cost->startup_s = f.startup_s;
		cost->per_byte_s = f.per_byte_s;
		fit->r_squared = f.r_squared;
		fit->residual_rms = f.residual_rms;
		fit->residual_max = f.residual_max;
		judge_fit(&f, cost->algorithm, remarks);
	}
	free(sizes);
	return rc;
}

struct progress {
	size_t done, all;
};

static void advance(const struct gf_bench_network *c, struct progress *p,
		    const char *algorithm)
{
	p->done++;
	if (c->progress)
		c->progress(c->progress_ctx, (double)p->done / (double)p->all,
			    algorithm);
}

static void summarise(struct gf_fit *fit, size_t i, struct gf_bench_samples *s)
{
	int chain = chain_length(fit->size_bytes[i]);

	fit->time_s[i] = gf_stat_median(s->values, s->count) / chain;
	fit->spread_s[i] = gf_stat_spread(s->values, s->count) / chain;
}

static int measure_points(const struct gf_bench_network *c,
			  struct gf_allreduce_cost *cost,
			  struct progress *progress, struct gf_error *err)
{
	struct gf_fit *fit = &cost->fit;
	struct gf_bench_samples *samples =
		gf_xcalloc(fit->npoints, sizeof(*samples));
	size_t i;
	int round, rc = 0;

	for (round = 0; round < GF_BENCH_ROUNDS && rc == 0; round++)
		for (i = 0; i < fit->npoints && rc == 0; i++) {
			advance(c, progress, cost->algorithm);
			rc = sit(c, cost->algorithm, fit->size_bytes[i],
				 &samples[i], err);
		}
	for (i = 0; i < fit->npoints; i++) {
		if (rc == 0)
			summarise(fit, i, &samples[i]);
		gf_bench_samples_release(&samples[i]);
	}
	free(samples);
	return rc;
}

static int measure_algorithm(const struct gf_bench_network *c,
			     struct gf_allreduce_cost *cost,
			     struct progress *progress, struct gf_text *remarks,
			     struct gf_error *err)
{
	struct gf_fit *fit = &cost->fit;
	int rc;

	fit->size_bytes =
		gf_bench_sizes(c->min_bytes, c->max_bytes, &fit->npoints);
	fit->time_s = gf_xcalloc(fit->npoints, sizeof(*fit->time_s));
	fit->spread_s = gf_xcalloc(fit->npoints, sizeof(*fit->spread_s));
	rc = measure_points(c, cost, progress, err);
	if (rc == 0)
		rc = gf_bench_fit(cost, remarks, err);
	if (rc == 0 && c->lanes > 1)
		rc = gf_bench_contention(c, cost, err);
	return rc;
}

/* 0 if this algorithm can run here, on all sizes. */
static int can_run(const struct gf_bench_network *c,
		   const struct gf_algorithm *a, struct gf_error *err)
{
	struct gf_coll_args args = {
		.ranks = c->comm->ranks,
		.count_elems = c->max_bytes / 4,
		.elem_bytes = 4,
	};

	if (!a->build && !c->comm->ops->iallreduce)
		return gf_error_set(err, -ENOTSUP,
				    "the transport has no all-reduce");
	return a->applicable ? a->applicable(&args, err) : 0;
}

static int wanted(const struct gf_bench_network *c, const char *name)
{
	size_t i;

	if (!c->algorithms)
		return 1;
	for (i = 0; c->algorithms[i]; i++)
		if (strcmp(c->algorithms[i], name) == 0)
			return 1;
	return 0;
}

/* Entries with their names, one per algorithm to measure. */
static void choose(const struct gf_bench_network *c, struct gf_network *net,
		   struct gf_text *remarks)
{
	struct gf_error why;
	size_t i;

	for (i = 0; gf_algorithms[i]; i++) {
		struct gf_allreduce_cost *cost;

		if (!wanted(c, gf_algorithms[i]->name))
			continue;
		if (can_run(c, gf_algorithms[i], &why) < 0) {
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
	}
}

int gf_bench_network_check(const struct gf_bench_network *c,
			   struct gf_error *err)
{
	size_t i, count;

	for (i = 0; c->algorithms && c->algorithms[i]; i++)
		if (!gf_algorithm_find(c->algorithms[i]))
			return gf_error_set(err, -EINVAL,
					    "there is no algorithm %s",
					    c->algorithms[i]);
	if (c->min_bytes < 4 || c->min_bytes > c->max_bytes)
		return gf_error_set(err, -EINVAL,
				    "want sizes of at least 4 bytes, the "
				    "smallest first, got %zu to %zu",
				    c->min_bytes, c->max_bytes);
	free(gf_bench_sizes(c->min_bytes, c->max_bytes, &count));
	if (count < FEWEST_SIZES)
		return gf_error_set(err, -EINVAL,
				    "want at least %d sizes in powers of two, "
				    "got %zu from %zu to %zu bytes",
				    FEWEST_SIZES, count, c->min_bytes,
				    c->max_bytes);
	return 0;
}

int gf_bench_network(const struct gf_bench_network *c, struct gf_network **out,
		     struct gf_text *remarks, struct gf_error *err)
{
	struct gf_network *net;
	struct progress progress = {0};
	size_t i, count;
	int rc = gf_bench_network_check(c, err);

	if (rc < 0)
		return rc;
	net = gf_xcalloc(1, sizeof(*net));
	net->ranks = c->comm->ranks;
	choose(c, net, remarks);
	if (net->nallreduce == 0)
		rc = gf_error_set(err, -ENOTSUP,
				  "none of the algorithms wanted can run on "
				  "%d ranks here",
				  c->comm->ranks);
	free(gf_bench_sizes(c->min_bytes, c->max_bytes, &count));
	progress.all = count * net->nallreduce * GF_BENCH_ROUNDS;
	for (i = 0; i < net->nallreduce && rc == 0; i++) {
		rc = measure_algorithm(c, &net->allreduce[i], &progress,
				       remarks, err);
		if (rc < 0)
			gf_error_prefix(err, "%s", net->allreduce[i].algorithm);
	}
	if (rc < 0) {
		gf_network_free(net);
		return rc;
	}
	*out = net;
	return 0;
}
