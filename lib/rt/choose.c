/* SPDX-License-Identifier: BSD-3-Clause */
#include "rt/choose.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"
#include "rt/burst.h"

enum {
	CANDIDATES = 32,
	REPEATS = 16, /* at most, besides the first */
};
/* About so long a candidate is measured, after its first runs. */
static const double budget_s = 0.05;
/* So much slower on its first runs than the best: not measured further. */
static const double hopeless = 2;
/* To be preferred to one before it, a candidate must be faster by this. */
static const double margin = 0.97;

struct picked {
	size_t count_elems;
	struct gf_way way;
};

struct gf_chooser {
	struct gf_chooser_config config;
	int layout[2];
	size_t nlayout;
	struct picked *picked;
	size_t npicked, capacity;
};

int gf_chooser_new(const struct gf_chooser_config *config,
		   struct gf_chooser **chooser, struct gf_error *err)
{
	struct gf_chooser *c = gf_xcalloc(1, sizeof(*c));
	int rc;

	c->config = *config;
	rc = gf_way_layout(config->comm, &c->nlayout, c->layout, err);
	if (rc)
		gf_chooser_free(c);
	else
		*chooser = c;
	return rc;
}

void gf_chooser_free(struct gf_chooser *c)
{
	if (!c)
		return;
	free(c->picked);
	free(c);
}

/* Every way that can run such a message here, in the order of the registry;
 * factors where hosts suggest them. Then the outer stages are tried both ways:
 * halving has fewer rounds, while the pieces of a long message go round a ring
 * without a pause. Collective. */
static size_t list_candidates(const struct gf_chooser *c, size_t count_elems,
			      struct gf_way ways[CANDIDATES])
{
	size_t n = 0, i;

	for (i = 0; gf_algorithms[i] && n < CANDIDATES; i++) {
		struct gf_way way = {.algorithm = gf_algorithms[i]};

		if (c->nlayout && gf_way_takes_factors(way.algorithm)) {
			way.nfactors = c->nlayout;
			memcpy(way.factors, c->layout, sizeof(c->layout));
		}
		if (c->config.same_bits && !way.algorithm->build &&
		    c->config.comm->ranks > 1)
			continue;
		if (gf_way_check(&way, c->config.comm, &c->config.element,
				 count_elems, NULL))
			continue;
		ways[n++] = way;
		if (n < CANDIDATES && gf_way_outer_rings(&way))
			ways[n++] = way;
	}
	return n;
}

/* One run; the slowest rank's time on all ranks. */
static int time_once(const struct gf_chooser *c, struct gf_burst *b, void *data,
		     double *time_s, struct gf_error *err)
{
	struct gf_comm *comm = c->config.comm;
	double start_s, mine, *all;
	int rank, rc;

	c->config.watch->self.calls++;
	rc = gf_comm_barrier(comm, err);
	if (rc)
		return rc;
	start_s = gf_clock_s();
	rc = gf_burst_send(b, data, err);
	mine = gf_clock_s() - start_s;
	if (rc)
		return rc;
	all = gf_xcalloc((size_t)comm->ranks, sizeof(*all));
	c->config.watch->self.calls++;
	rc = gf_comm_allgather(comm, &mine, sizeof(mine), all, err);
	for (rank = 0, *time_s = 0; rank < comm->ranks; rank++)
		*time_s = fmax(*time_s, all[rank]);
	free(all);
	return rc;
}

/* A candidate in the calibration of one size. */
struct trial {
	struct gf_way way;
	struct gf_burst *burst;
	double times[REPEATS];
	double best_s; /* of its first two runs, then their lower quartile */
	bool out;
};

static int open_trial(const struct gf_chooser *c, struct trial *t,
		      size_t count_elems, struct gf_error *err)
{
	size_t lanes = (size_t)c->config.lanes, i;
	struct gf_burst_message *messages =
		gf_xcalloc(lanes, sizeof(*messages));
	int rc;

	for (i = 0; i < lanes; i++)
		messages[i] = (struct gf_burst_message){
			.way = t->way,
			.count_elems = count_elems,
			.element = c->config.element,
			.simultaneous = lanes > 1,
		};
	rc = gf_burst_new(
		&(struct gf_burst_config){
			.comm = c->config.comm,
			.watch = c->config.watch,
			.messages = messages,
			.nmessages = lanes,
			.lanes = c->config.lanes,
			.segment_bytes = c->config.segment_bytes,
		},
		&t->burst, err);
	free(messages);
	return rc;
}

/* The first run of all meets cold memory and connections not yet made. */
static int run_first(const struct gf_chooser *c, struct trial *trials, size_t n,
		     void *data, double *total_s, struct gf_error *err)
{
	double best_s = INFINITY, again_s;
	size_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		struct trial *t = &trials[i];

		rc = time_once(c, t->burst, data, &t->best_s, err);
		if (rc == 0 && t->best_s < budget_s) {
			rc = time_once(c, t->burst, data, &again_s, err);
			t->best_s = fmin(t->best_s, again_s);
		}
		best_s = fmin(best_s, t->best_s);
	}
	for (i = 0, *total_s = 0; i < n; i++) {
		trials[i].out = trials[i].best_s > hopeless * best_s;
		if (!trials[i].out)
			*total_s += trials[i].best_s;
	}
	return rc;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Those that are left take turns. */
static int run_rounds(const struct gf_chooser *c, struct trial *trials,
		      size_t n, void *data, double total_s,
		      struct gf_error *err)
{
	int repeats =
		(int)fmin(REPEATS, fmax(1, (double)n * budget_s / total_s));
	int round, rc = 0;
	size_t i;

	for (round = 0; round < repeats; round++)
		for (i = 0; i < n && rc == 0; i++)
			if (!trials[i].out)
				rc = time_once(c, trials[i].burst, data,
					       &trials[i].times[round], err);
	for (i = 0; i < n; i++) {
		struct trial *t = &trials[i];

		if (t->out || rc)
			continue;
		qsort(t->times, (size_t)repeats, sizeof(*t->times), ascending);
		t->best_s = repeats > 2 ? t->times[repeats / 4]
					: fmin(t->best_s, t->times[0]);
	}
	return rc;
}

static int measure(const struct gf_chooser *c, struct trial *trials, size_t n,
		   void *data, struct gf_way *way, struct gf_error *err)
{
	const struct trial *best = NULL;
	double total_s;
	size_t i;
	int rc = run_first(c, trials, n, data, &total_s, err);

	if (rc == 0)
		rc = run_rounds(c, trials, n, data, total_s, err);
	for (i = 0; i < n; i++)
		if (!trials[i].out &&
		    (!best || trials[i].best_s < margin * best->best_s))
			best = &trials[i];
	if (rc == 0)
		*way = best->way;
	return rc;
}

/* -ENOTSUP and -EINVAL of a candidate are agreed upon, and leave it out. */
static int calibrate(struct gf_chooser *c, size_t count_elems, void *data,
		     struct gf_way *way, struct gf_error *err)
{
	struct trial *trials = gf_xcalloc(CANDIDATES, sizeof(*trials));
	struct gf_way ways[CANDIDATES];
	size_t wanted = list_candidates(c, count_elems, ways), n = 0, i;
	int rc = 0;

	memset(data, 0,
	       (size_t)c->config.lanes * count_elems *
		       c->config.element.size_bytes);
	for (i = 0; i < wanted; i++) {
		trials[n].way = ways[i];
		rc = open_trial(c, &trials[n], count_elems, err);
		if (rc && rc != -ENOTSUP && rc != -EINVAL)
			break;
		n += rc == 0;
	}
	if (n > 0 && i == wanted)
		rc = measure(c, trials, n, data, way, err);
	for (i = 0; i < n; i++)
		gf_burst_free(trials[i].burst);
	free(trials);
	return rc;
}

static bool says(const struct gf_plan *rule, size_t size_bytes)
{
	return rule && strcmp(gf_rule_for(rule->rule, size_bytes)->algorithm,
			      "auto") != 0;
}

int gf_chooser_pick(struct gf_chooser *c, size_t count_elems, void *data,
		    struct gf_way *way, struct gf_error *err)
{
	struct picked *p;
	size_t i;
	int rc;

	for (i = 0; i < c->npicked; i++) {
		if (c->picked[i].count_elems == count_elems) {
			*way = c->picked[i].way;
			return 0;
		}
	}
	if (says(c->config.rule, count_elems * c->config.element.size_bytes))
		rc = gf_way_of_rule(c->config.rule,
				    count_elems * c->config.element.size_bytes,
				    c->config.comm->ranks, way, err);
	else
		rc = calibrate(c, count_elems, data, way, err);
	if (rc)
		return rc;
	p = gf_array_push(&c->picked, &c->npicked, &c->capacity);
	p->count_elems = count_elems;
	p->way = *way;
	return 0;
}
