/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/network.h"

#include <math.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/registry.h"
#include "profiler/curve.h"
#include "profiler/network_parts.h"
#include "collectives/algorithm.h"
#include "cost/stat.h"
#include "documents/algorithm_traits.h"

/* The levels' share of the time. */
static const double levels_share = 0.25;
/* A round of a level is short: more of them tell no more. */
enum { LEVEL_REPEATS = 60 };

struct run {
	const struct gf_measure_network *config;
	struct gf_measure_limits limits;
	struct gf_network_device *gpus; /* NULL: between hosts */
	double began_s, fair_s;         /* fair_s: an equal share of the time */
	size_t *twins;                  /* of each entry; itself: it has none */
	size_t distinct;                /* so many are yet to be measured */
	/* Progress: what is measured, and which part of the whole it is. */
	const char *what;
	double first, part;
};

static void advance(void *ctx, double fraction)
{
	const struct run *r = ctx;
	const struct gf_measure_network *c = r->config;

	if (c->progress)
		c->progress(c->progress_ctx, r->first + fraction * r->part, r->what);
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
	size_t others_bytes;            /* profiler/chain.h */
};

static int sit(void *ctx, const struct gf_measure_sitting *s, struct gf_measure_samples *samples,
	       struct gf_error *err)
{
	const struct subject *subject = ctx;
	struct gf_measure_exchange_config config = {
		.comm = subject->config->comm,
		.by = subject->cost,
		.half = subject->cost->collective,
		.count_elems = s->bytes / 4,
		.messages = s->messages,
		.lanes = s->lanes,
		.compute_threads = subject->config->threads,
		.callers_memory = subject->config->callers_memory &&
				  subject->cost->collective == GF_COLL_WHOLE,
		.others_bytes = subject->others_bytes,
		.timeout_s = subject->config->timeout_s,
	};

	if (subject->gpus)
		return gf_network_device_sit(subject->gpus, subject->cost, s, samples, err);
	return gf_measure_exchange_sitting(&config, &s->budget, samples, err);
}

static int measure_algorithm(struct run *r, const struct gf_network *net,
			     struct gf_allreduce_cost *cost, struct gf_text *remarks,
			     struct gf_error *err)
{
	struct gf_measure_curve_config config = curve_config(r);
	struct subject s = {r->config, cost, r->gpus};
	struct gf_measure_subject subject = {r->what, sit, &s};
	int rc = gf_measure_curve(&config, &subject, cost, remarks, err);

	if (rc < 0) {
		gf_error_prefix(err, "%s", r->what);
		return rc;
	}
	gf_measure_contention_floor(net, r->config->levels, r->config->nlevels,
				    r->config->comm->local_ranks, cost, remarks);
	return 0;
}

/* Copies the costs of an algorithm that takes the same steps. */
static void take_over(struct gf_allreduce_cost *cost, const struct gf_allreduce_cost *twin,
		      struct gf_text *remarks)
{
	struct gf_allreduce_cost copy;
	GF_FREED char *own = gf_allreduce_text(cost), *like = gf_allreduce_text(twin);

	gf_allreduce_cost_copy(&copy, twin);
	free(copy.algorithm);
	gf_stages_free(copy.stages, copy.nstages);
	copy.algorithm = cost->algorithm;
	copy.stages = cost->stages;
	copy.nstages = cost->nstages;
	*cost = copy;
	gf_text_addf(remarks, "\t%s takes the same steps as %s on these ranks, and has its costs\n",
		     own, like);
}

static int measure_entry(struct run *r, struct gf_network *net, size_t i, struct gf_text *remarks,
			 struct gf_error *err)
{
	/* an algorithm that overran does not starve those that follow */
	double passed_s = gf_clock_s() - r->began_s, n = (double)r->distinct--;
	GF_FREED char *label = gf_allreduce_text(&net->allreduce[i]);
	int rc = gf_measure_slowest(r->config->comm, &passed_s, 1, err);

	r->limits.budget_s = fmax(r->config->budget_s - passed_s, 0.5 * r->fair_s * n) / n;
	r->what = label;
	rc = rc ?: measure_algorithm(r, net, &net->allreduce[i], remarks, err);
	r->first += r->part;
	r->what = NULL;
	return rc;
}

static int measure_each(struct run *r, struct gf_network *net, struct gf_text *remarks,
			struct gf_error *err)
{
	size_t i, twin;
	int rc = 0;

	for (i = 0; i < net->nallreduce && rc == 0; i++) {
		twin = r->twins[i];
		if (twin < i)
			take_over(&net->allreduce[i], &net->allreduce[twin], remarks);
		else
			rc = measure_entry(r, net, i, remarks, err);
	}
	return rc;
}

/* The first entry that goes by stages, before others of other stages. */
static size_t base_of(const struct gf_network *net)
{
	size_t i = 0;

	while (i < net->nallreduce &&
	       !gf_algorithm_has(net->allreduce[i].algorithm, GF_ALGORITHM_STAGES))
		i++;
	return i;
}

/* So many entries may follow: the best of each stage together, for the shortest and for the longest
 * messages. */
static size_t count_together(const struct gf_network *net)
{
	size_t base = base_of(net);

	return base < net->nallreduce && net->allreduce[base].nstages > 1 ? 2 : 0;
}

static int measure_together(struct run *r, struct gf_network *net, struct gf_text *remarks,
			    struct gf_error *err)
{
	size_t base = base_of(net), most = count_together(net), k, n;
	struct gf_stage *stages;
	int rc = 0;

	for (k = 0; k < most && rc == 0; k++) {
		const struct gf_fit *fit = &net->allreduce[base].fit;
		size_t at = k ? fit->npoints - 1 : 0;

		n = gf_measure_stages_together(net, base, (double)fit->size_bytes[at], &stages);
		if (!n)
			continue;
		gf_measure_entry_add(net, net->allreduce[base].algorithm, stages, n);
		n = net->nallreduce;
		r->twins = gf_xreallocarray(r->twins, n, sizeof(*r->twins));
		r->twins[n - 1] = n - 1;
		rc = measure_entry(r, net, n - 1, remarks, err);
	}
	return rc;
}

/* The middle size of an algorithm again: the logarithm of the time's quotient.
 */
static int look_again(struct run *r, const struct gf_allreduce_cost *cost, double *difference,
		      struct gf_error *err)
{
	const struct gf_measure_pace pace = {cost->startup_s, cost->per_byte_s, 0};
	struct subject subject = {r->config, cost, r->gpus};
	size_t middle = cost->fit.npoints / 2;
	struct gf_measure_sitting sitting = {
		.bytes = cost->fit.size_bytes[middle],
		.messages = gf_measure_chain(&pace, cost->fit.size_bytes[middle]),
		.lanes = 1,
		.budget = gf_measure_round(&r->limits.point),
	};
	GF_RELEASED(gf_measure_samples_release) struct gf_measure_samples samples = {0};
	double time_s = 0;
	int rc = sit(&subject, &sitting, &samples, err);

	if (rc == 0)
		time_s = gf_stat_median(samples.values, samples.count) / sitting.messages;
	*difference = time_s > 0 ? log(time_s / cost->fit.time_s[middle]) : 0;
	return rc;
}

static int find_drift(struct run *r, struct gf_network *net, struct gf_error *err)
{
	GF_FREED double *differences = gf_xcalloc(net->nallreduce, sizeof(double));
	size_t n = 0, i;
	int rc = 0;

	for (i = 0; i < net->nallreduce && rc == 0; i++)
		if (r->twins[i] == i)
			rc = look_again(r, &net->allreduce[i], &differences[n++], err);
	if (rc == 0)
		net->drift = fmin(gf_stat_next_difference(differences, n), 1);
	return rc;
}

/* --- the whole gradient ----------------------------------------------------- */

/* Another point of a fit, beyond the others, and its lines anew. */
static int add_point(struct gf_allreduce_cost *cost, size_t bytes,
		     const struct gf_measure_samples *samples, struct gf_error *err)
{
	struct gf_fit *fit = &cost->fit;
	const size_t n = fit->npoints + 1;

	fit->size_bytes = gf_xreallocarray(fit->size_bytes, n, sizeof(*fit->size_bytes));
	fit->time_s = gf_xreallocarray(fit->time_s, n, sizeof(*fit->time_s));
	fit->spread_s = gf_xreallocarray(fit->spread_s, n, sizeof(*fit->spread_s));
	fit->size_bytes[n - 1] = bytes;
	fit->time_s[n - 1] = gf_stat_median(samples->values, samples->count);
	fit->spread_s[n - 1] = gf_stat_spread(samples->values, samples->count);
	fit->npoints = n;
	return gf_measure_fit(cost, GF_FIT_LINES_MOST, err);
}

/* A repeat that is not counted and two that are. */
enum { GRADIENT_REPEATS = 3 };

/* The entry by which the gradient seems the fastest, if it was not measured by that one, and does
 * not take longer than the whole budget; or NULL. */
static const struct gf_allreduce_cost *unmeasured(const struct run *r, const struct gf_network *net,
						  size_t bytes)
{
	const struct gf_allreduce_cost *cost = gf_network_cheapest(net, (double)bytes);
	struct gf_cost_lines lines;

	if (!bytes || !cost || !cost->fit.npoints ||
	    cost->fit.size_bytes[cost->fit.npoints - 1] >= bytes)
		return NULL;
	lines = gf_allreduce_lines(cost);
	return GRADIENT_REPEATS * gf_cost_lines_s(&lines, (double)bytes) > r->config->budget_s
		       ? NULL
		       : cost;
}

/* Lines of short messages say little of a long one, and the best plan may send the whole gradient
 * at once. The entry that is the fastest by its lines measures that message. Another entry that is
 * faster then measures the message, too, and so on. */
static int measure_gradient(struct run *r, struct gf_network *net, struct gf_error *err)
{
	const size_t bytes = r->config->gradient_bytes / 4 * 4;
	const struct gf_measure_sitting sitting = {bytes, 1, 1, {0, 2, 2}};
	const struct gf_allreduce_cost *cost;
	int rc = 0;

	while (rc == 0 && (cost = unmeasured(r, net, bytes))) {
		struct subject subject = {r->config, cost, r->gpus, gf_measure_others_bytes(bytes)};
		GF_RELEASED(gf_measure_samples_release) struct gf_measure_samples samples = {0};
		const size_t at = (size_t)(cost - net->allreduce);

		rc = sit(&subject, &sitting, &samples, err);
		for (size_t i = at; i < net->nallreduce && rc == 0; i++)
			if (r->twins[i] == at)
				rc = add_point(&net->allreduce[i], bytes, &samples, err);
	}
	return rc;
}

/* --- halves ----------------------------------------------------------------- */

static bool wants(const struct run *r, const struct gf_allreduce_cost *cost, enum gf_coll_half half)
{
	const struct gf_measure_network *c = r->config;

	return c->collectives && gf_names_index(c->collectives, gf_coll_half_names[half]) >= 0 &&
	       gf_measure_has_half(c, cost, half);
}

/* So many entries are measured of its way. */
static size_t count_kinds(const struct run *r, const struct gf_allreduce_cost *cost)
{
	return 1U + wants(r, cost, GF_COLL_REDUCE_SCATTER) + wants(r, cost, GF_COLL_ALL_GATHER);
}

/* The entries that are there, as each half: those of twins once. */
static int measure_halves(struct run *r, struct gf_network *net, struct gf_text *remarks,
			  struct gf_error *err)
{
	const size_t n = net->nallreduce;
	size_t *halves = gf_xcalloc(n + 1, sizeof(*halves)), i, k;
	int rc = 0;

	for (k = n; k < 3 * n && rc == 0; k++) {
		const enum gf_coll_half half = k / n;
		const struct gf_allreduce_cost whole = net->allreduce[i = k % n];

		halves[i] = wants(r, &whole, half) ? net->nallreduce : 0;
		if (!halves[i])
			continue;
		gf_measure_entry_add(net, whole.algorithm,
				     gf_stages_copy(whole.stages, whole.nstages), whole.nstages);
		net->allreduce[halves[i]].collective = half;
		if (r->twins[i] < i && halves[r->twins[i]])
			take_over(&net->allreduce[halves[i]], &net->allreduce[halves[r->twins[i]]],
				  remarks);
		else
			rc = measure_entry(r, net, halves[i], remarks, err);
	}
	free(halves);
	return rc;
}

static int measure_algorithms(struct run *r, struct gf_network *net, struct gf_text *remarks,
			      struct gf_error *err)
{
	int rc = gf_measure_twins(r->config->comm, net, &r->twins, err);

	/* NCCL may take whole stages in steps of its own */
	for (size_t i = 0; r->gpus && i < net->nallreduce; i++)
		r->twins[i] = i;
	r->distinct = count_together(net);
	if (r->distinct)
		r->distinct *= count_kinds(r, &net->allreduce[base_of(net)]);
	for (size_t i = 0; i < net->nallreduce; i++)
		if (r->twins[i] == i)
			r->distinct += count_kinds(r, &net->allreduce[i]);
	r->fair_s = r->config->budget_s / (double)r->distinct;
	r->first = r->part;
	r->part = (1 - r->first) / (double)r->distinct;
	rc = rc ?: measure_each(r, net, remarks, err);
	rc = rc ?: measure_together(r, net, remarks, err);
	rc = rc ?: measure_gradient(r, net, err);
	rc = rc ?: find_drift(r, net, err);
	rc = rc ?: measure_halves(r, net, remarks, err);
	free(r->twins);
	return rc;
}

static int measure_levels(struct run *r, struct gf_network *net, struct gf_text *remarks,
			  struct gf_error *err)
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

int gf_measure_network_check(const struct gf_measure_network *c, struct gf_error *err)
{
	int known;

	for (size_t i = 0; c->collectives && c->collectives[i]; i++)
		if (gf_names_find(gf_coll_half_names, c->collectives[i], &known, err)) {
			gf_error_prefix(err, "--collectives");
			return -EINVAL;
		}
	for (size_t i = 0; c->algorithms && c->algorithms[i]; i++)
		if (!gf_algorithm_find(c->algorithms[i]))
			return gf_registry_refuse(&(struct gf_registry){gf_algorithms},
						  "--algorithms", NULL, c->algorithms[i], err);
	if (c->min_bytes < 4 || c->min_bytes > c->max_bytes)
		return gf_error_set(
			err, -EINVAL,
			"--points: min_bytes: want from 4 to the --max-bytes, got %zu and %zu",
			c->min_bytes, c->max_bytes);
	if (c->max_bytes / 32 < c->min_bytes)
		return gf_error_set(err, -EINVAL,
				    "--max-bytes: want at least 32 times min_bytes of --points, "
				    "got %zu and %zu",
				    c->max_bytes, c->min_bytes);
	return 0;
}

int gf_measure_network(const struct gf_measure_network *c, struct gf_network **out,
		       struct gf_text *remarks, struct gf_error *err)
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
		.began_s = gf_clock_s(),
	};
	struct gf_network *net;
	int rc = gf_measure_network_check(c, err);

	if (rc < 0)
		return rc;
	net = gf_xcalloc(1, sizeof(*net));
	net->ranks = c->comm->ranks;
	rc = gf_measure_entries(c, net, remarks, err);
	if (rc == 0 && net->nallreduce == 0)
		rc = gf_error_set(err, -ENOTSUP,
				  "none of the algorithms wanted can run on %d ranks here",
				  c->comm->ranks);
	if (rc == 0 && c->device && c->device->nccl)
		rc = gf_network_device_open(c, &r.gpus, err);
	rc = rc ?: measure_levels(&r, net, remarks, err);
	rc = rc ?: measure_algorithms(&r, net, remarks, err);
	gf_network_device_close(r.gpus);
	if (rc < 0) {
		gf_network_free(net);
		return rc;
	}
	*out = net;
	return 0;
}
