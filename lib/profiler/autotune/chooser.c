/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/autotune/chooser.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/rng.h"
#include "documents/algorithm_traits.h"
#include "runtime/engine/burst.h"

static const double margin = 0.97;

/* The fastest of a rival's n runs may take this many times the best one's median.
 * tests/unit/test_rivals.c plays games against them: where a fifth of the runs takes three times as
 * long, a rival that is faster by a fifth wins 190 games of 200. */
static double allowance(size_t n)
{
	static const double allowed[] = {4, 3, 2, 1.7, 1.5, 1.4, 1.3, 1.2, 1.1, 1.1, 1.1, 1.1};

	return n > GF_ARRAY_LENGTH(allowed) ? 1.05 : allowed[n > 0 ? n - 1 : 0];
}

void gf_rival_add(struct gf_rival *r, double time_s)
{
	size_t k;

	assert(r->n < GF_RIVAL_TIMES);
	for (k = r->n++; k > 0 && r->times[k - 1] > time_s; k--)
		r->times[k] = r->times[k - 1];
	r->times[k] = time_s;
}

double gf_rival_time_s(const struct gf_rival *r)
{
	assert(r->n > 0);
	return r->times[r->n / 4];
}

size_t gf_rivals_weed(struct gf_rival *rivals, size_t n)
{
	size_t best = gf_rivals_best(rivals, n), left = 0, i;
	double median_s;

	if (best == n)
		return 0;
	median_s = rivals[best].times[rivals[best].n / 2];
	for (i = 0; i < n; i++) {
		struct gf_rival *r = &rivals[i];

		if (r->out)
			continue;
		r->out = i != best && r->times[0] > allowance(r->n) * median_s;
		left += !r->out;
	}
	return left;
}

size_t gf_rivals_near(struct gf_rival *rivals, size_t n, double times)
{
	size_t best = gf_rivals_best(rivals, n), left = 0, i;

	for (i = 0; best < n && i < n; i++) {
		struct gf_rival *r = &rivals[i];

		if (r->out)
			continue;
		r->out = i != best && gf_rival_time_s(r) > times * gf_rival_time_s(&rivals[best]);
		left += !r->out;
	}
	return left;
}

size_t gf_rivals_best(const struct gf_rival *rivals, size_t n)
{
	size_t best = n, i;

	for (i = 0; i < n; i++)
		if (!rivals[i].out &&
		    (best == n ||
		     gf_rival_time_s(&rivals[i]) < margin * gf_rival_time_s(&rivals[best])))
			best = i;
	return best;
}

enum {
	CANDIDATES = 32,
	FEWEST = 3, /* rounds, if they fit into longest_s */
	FINAL = 5,  /* and of those that are close to the best then */
	FIRST_RUNS = 10,
};
/* The time to measure a candidate after its first runs, about; and the most time for all candidates
 * together, but for a first round. */
static const double budget_s = 0.05, longest_s = 2;
/* The time for the first runs of a short message. */
static const double short_s = 1e-3;
/*
 * Runs of a short message follow each other without a meeting. The last rank to come to a barrier
 * leaves it first, by the time that a byte takes to the others. So a single run that needs one such
 * time seems to need two, as many as a run there and back; of 32 runs it needs 33 and the other 64.
 * A chain is that long, or as long as a millisecond.
 */
enum { LONGEST_CHAIN = 32 };
static const double chain_s = 1e-3;
/* A candidate this much slower on its first runs than the best is not measured further. */
static const double hopeless = 2;
/* A candidate is close to the best within this many times the best's time. */
static const double close_behind = 1.15;
/* Long messages: a candidate is not run even once if its busiest link carries this many times the
 * bytes of the least. One such run would take longer than all the others together. */
static const double wasteful = 4, long_bytes = 1 << 20;

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
	/* Of the calibration under way. */
	size_t message_bytes; /* all lanes */
	int chain;            /* runs in one go */
};

int gf_chooser_new(const struct gf_chooser_config *config, struct gf_chooser **chooser,
		   struct gf_error *err)
{
	struct gf_chooser *c = gf_xcalloc(1, sizeof(*c));
	int rc;

	c->config = *config;
	rc = gf_choose_layout(config->comm, &c->nlayout, c->layout, err);
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

/* Bytes through the busiest link, where all are alike. */
static double busiest_bytes(const struct gf_chooser *c, const struct gf_way *way,
			    size_t count_elems)
{
	static const struct gf_link_cost byte_s = {.beta_s_per_byte = 1};
	const struct gf_cost_net net = {.nlevels = 1, .links = &byte_s};
	struct gf_coll_args args = gf_way_args(way, c->config.comm->ranks);

	args.count_elems = count_elems;
	args.elem_bytes = c->config.element.size_bytes;
	args.half = c->config.half;
	return way->algorithm->cost(&args, &net).s;
}

/* Without the wasteful ones; returns how many are left. One rank alone sends nothing, whatever the
 * way. */
static size_t drop_wasteful(const struct gf_chooser *c, struct gf_way *ways, size_t n,
			    size_t count_elems)
{
	double least = INFINITY;
	size_t i, left = 0;

	if (c->config.comm->ranks < 2 ||
	    (double)count_elems * (double)c->config.element.size_bytes < long_bytes)
		return n;
	for (i = 0; i < n; i++)
		least = fmin(least, busiest_bytes(c, &ways[i], count_elems));
	for (i = 0; i < n; i++)
		if (busiest_bytes(c, &ways[i], count_elems) < wasteful * least)
			ways[left++] = ways[i];
	return left;
}

/* Every way that can run such a message here, in the order of the registry; factors where hosts
 * suggest them, and no way twice. Then the outer stages are tried both ways: the pieces of a long
 * message go round a ring without a pause and for less of the processor, while halving has fewer
 * rounds. Collective. */
static size_t list_candidates(const struct gf_chooser *c, size_t count_elems,
			      struct gf_way ways[CANDIDATES])
{
	size_t n = 0, i;

	for (i = 0; gf_algorithms[i] && n < CANDIDATES; i++) {
		struct gf_way way = {.algorithm = gf_algorithms[i]}, rings;

		if (c->nlayout && gf_way_takes_factors(way.algorithm)) {
			way.nfactors = c->nlayout;
			memcpy(way.factors, c->layout, sizeof(c->layout));
		}
		if (c->config.same_bits && !way.algorithm->build && c->config.comm->ranks > 1)
			continue;
		if (c->config.reproducible &&
		    !gf_algorithm_reproduces(way.algorithm->name,
					     c->config.element.codec ? c->config.element.codec->name
								     : "f32"))
			continue;
		/* without servers this is direct once more */
		if (gf_algorithm_has(way.algorithm->name, GF_ALGORITHM_SERVERS))
			continue;
		if (gf_way_undivided(&way))
			continue;
		if (gf_choose_check(&way, c->config.comm, &c->config.element, c->config.half,
				    count_elems, NULL))
			continue;
		rings = way;
		if (n < CANDIDATES - 1 && gf_way_outer_rings(&rings))
			ways[n++] = rings;
		ways[n++] = way;
	}
	return drop_wasteful(c, ways, n, count_elems);
}

/* One run of a candidate, or the mean of a chain of them; all ranks get the slowest rank's time.
 * Every rank writes its messages first, as backward would. Otherwise messages left in caches by one
 * candidate may make the next seem twice as fast as it is. */
static int time_once(const struct gf_chooser *c, struct gf_burst *b, void *data, double *time_s,
		     struct gf_error *err)
{
	struct gf_comm *comm = c->config.comm;
	double start_s, mine, *all;
	int rank, rc, i;

	memset(data, 0, c->message_bytes);
	c->config.watch->self.calls++;
	rc = gf_comm_barrier(comm, err);
	if (rc)
		return rc;
	start_s = gf_clock_s();
	for (i = 0; i < c->chain && rc == 0; i++)
		rc = gf_burst_send(b, data, err);
	mine = (gf_clock_s() - start_s) / c->chain;
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
	double first_s; /* the best of its first runs */
};

/* All of them. */
struct trials {
	size_t n;
	struct trial trials[CANDIDATES];
	struct gf_rival rivals[CANDIDATES];
	size_t turns[CANDIDATES];
	struct gf_rng rng; /* alike on all ranks */
};

static int open_trial(const struct gf_chooser *c, struct trial *t, const struct gf_layout *owners,
		      size_t count_elems, struct gf_error *err)
{
	size_t lanes = (size_t)c->config.lanes, i;
	GF_FREED struct gf_burst_message *messages = gf_xcalloc(lanes, sizeof(*messages));
	int rc;

	for (i = 0; i < lanes; i++)
		messages[i] = (struct gf_burst_message){
			.way = t->way,
			.half = c->config.half,
			.owners = owners,
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
	return rc;
}

/* One candidate's: two, if they are not long, and more of short messages, of which even the second
 * says little. */
static int run_first_of(const struct gf_chooser *c, struct trial *t, void *data,
			struct gf_error *err)
{
	double spent_s = 0, time_s = 0;
	int rc = 0, k;

	t->first_s = INFINITY;
	for (k = 0; rc == 0 && k < FIRST_RUNS; k++) {
		if (k > 0 && spent_s >= (k < 2 ? budget_s : short_s))
			break;
		rc = time_once(c, t->burst, data, &time_s, err);
		spent_s += time_s;
		t->first_s = fmin(t->first_s, time_s);
	}
	return rc;
}

/* The first run of all meets cold memory and connections not yet made. */
static int run_first(struct gf_chooser *c, struct trials *all, void *data, struct gf_error *err)
{
	double best_s = INFINITY;
	int rc = 0;

	c->chain = 1;
	for (size_t i = 0; i < all->n && rc == 0; i++) {
		rc = run_first_of(c, &all->trials[i], data, err);
		best_s = fmin(best_s, all->trials[i].first_s);
	}
	for (size_t i = 0; i < all->n && rc == 0; i++)
		all->rivals[i].out = all->trials[i].first_s > hopeless * best_s;
	c->chain = (int)fmax(1, fmin(LONGEST_CHAIN, chain_s / best_s));
	return rc;
}

/* Those that are in take turns, drawn anew for each round. */
static int run_round(const struct gf_chooser *c, struct trials *all, void *data, double *spent_s,
		     struct gf_error *err)
{
	double time_s;
	size_t k, i;
	int rc = 0;

	gf_rng_shuffle(&all->rng, all->turns, all->n);
	for (k = 0; k < all->n && rc == 0; k++) {
		i = all->turns[k];
		if (all->rivals[i].out)
			continue;
		rc = time_once(c, all->trials[i].burst, data, &time_s, err);
		if (rc)
			break;
		gf_rival_add(&all->rivals[i], time_s);
		*spent_s += c->chain * time_s;
	}
	return rc;
}

/* Rounds until one is left, or as long as it may take; then some more of those that three rounds do
 * not tell apart. */
static int measure(struct gf_chooser *c, struct trials *all, void *data, struct gf_way *way,
		   struct gf_error *err)
{
	double enough_s = budget_s * (double)all->n, spent_s = 0;
	bool several = true, final = false;
	int rc = run_first(c, all, data, err), round, last = 0;

	for (round = 0; rc == 0 && several && round < GF_RIVAL_TIMES; round++) {
		if (spent_s > longest_s || (final && round >= last && spent_s > 2 * enough_s))
			break;
		if (!final && spent_s > enough_s && round >= FEWEST) {
			final = true;
			last = round + FINAL;
			if (gf_rivals_near(all->rivals, all->n, close_behind) < 2)
				break;
		}
		rc = run_round(c, all, data, &spent_s, err);
		several = rc == 0 && gf_rivals_weed(all->rivals, all->n) > 1;
	}
	if (rc == 0)
		*way = all->trials[gf_rivals_best(all->rivals, all->n)].way;
	return rc;
}

/* -ENOTSUP and -EINVAL of a candidate are agreed upon, and leave it out. */
static int calibrate(struct gf_chooser *c, size_t count_elems, void *data, struct gf_way *way,
		     struct gf_error *err)
{
	GF_FREED struct trials *all = gf_xcalloc(1, sizeof(*all));
	struct gf_way ways[CANDIDATES];
	size_t wanted = list_candidates(c, count_elems, ways), i;
	struct gf_layout even = {0};
	int rc = 0;

	if (c->config.half)
		even = gf_layout_even(c->config.comm->ranks, count_elems);
	c->message_bytes = (size_t)c->config.lanes * count_elems * c->config.element.size_bytes;
	gf_rng_init(&all->rng, count_elems, 0);
	for (i = 0; i < wanted; i++) {
		all->trials[all->n].way = ways[i];
		all->turns[all->n] = all->n;
		rc = open_trial(c, &all->trials[all->n], &even, count_elems, err);
		if (rc && rc != -ENOTSUP && rc != -EINVAL)
			break;
		all->n += rc == 0;
	}
	if (all->n > 0 && i == wanted)
		rc = measure(c, all, data, way, err);
	else if (wanted == 0)
		rc = gf_error_set(
			err, -ENOTSUP,
			"want an algorithm for %zu elements of %zu bytes on %d ranks, found none",
			count_elems, c->config.element.size_bytes, c->config.comm->ranks);
	for (i = 0; i < all->n; i++)
		gf_burst_free(all->trials[i].burst);
	free((void *)even.pieces);
	return rc;
}

int gf_chooser_pick(struct gf_chooser *c, size_t count_elems, void *data, struct gf_way *way,
		    struct gf_error *err)
{
	const size_t size_bytes = count_elems * c->config.element.size_bytes;
	const struct gf_plan *rule = c->config.rule;
	struct picked *p;
	int rc;

	for (size_t i = 0; i < c->npicked; i++) {
		if (c->picked[i].count_elems == count_elems) {
			*way = c->picked[i].way;
			return 0;
		}
	}
	if (rule && strcmp(gf_rule_for(rule->rule, size_bytes)->algorithm, "auto") != 0)
		rc = gf_choose_by_rule(rule, size_bytes, c->config.comm->ranks, way, err);
	else
		rc = calibrate(c, count_elems, data, way, err);
	if (rc)
		return rc;
	p = gf_array_push(&c->picked, &c->npicked, &c->capacity);
	p->count_elems = count_elems;
	p->way = *way;
	return 0;
}
