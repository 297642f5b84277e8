/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prices on levels against the steps themselves: what a plan of one message is predicted to take is
 * what its replay takes, on the shipped topologies and on random ones; and closed forms against
 * chains of hops, counted one by one.
 */
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/rng.h"
#include "base/file.h"
#include "collectives/algorithm.h"
#include "documents/stream.h"
#include "planner/policies/policy.h"
#include "simulator/replay/replay_plan.h"
#include "test.h"

/* Every figure must be so close; replays of the same steps are closer. */
static const double asked = 0.01;
static const double exact = 1e-9;

/* --- plans of one message ------------------------------------------------- */

struct one {
	struct gf_tensor tensor;
	struct gf_model_profile model;
	struct gf_problem problem;
	struct gf_stage stages[4];
};

/* A message of that many f32, on the levels. */
static void one_message(struct one *o, const struct gf_level *levels, size_t nlevels,
			size_t count_elems, const char *algorithm)
{
	memset(o, 0, sizeof(*o));
	o->tensor = (struct gf_tensor){.name = (char *)"t", .count_elems = count_elems};
	o->model = (struct gf_model_profile){
		.name = (char *)"one",
		.tensors = &o->tensor,
		.ntensors = 1,
		.overlap_slowdown = 1,
	};
	o->problem = (struct gf_problem){
		.model = &o->model,
		.fabric.levels = levels,
		.fabric.nlevels = nlevels,
		.fabric.ranks = gf_levels_ranks(levels, nlevels),
		.lanes = 1,
		.algorithm = algorithm,
	};
}

/* The plan's prediction against its replay. */
static void try_one(struct one *o, double tolerance, const char *where)
{
	struct gf_derived derived = {0};
	struct gf_what_if nothing = {0};
	struct gf_error err = {""};
	struct gf_text notes = {0};
	struct gf_replayed r;
	struct gf_plan p;
	int rc;

	/* the menu and the prediction replay once */
	o->problem.fabric.derived = &derived;
	rc = gf_policy_run(gf_policy_find("single"), &o->problem, &p, &err);
	gf_derived_release(&derived);
	EXPECT(rc == 0, "%s, %s: %s", where, o->problem.algorithm, err.text);
	if (rc)
		return;
	rc = gf_replay_plan(&p, &nothing, &r, &notes, &err);
	EXPECT(rc == 0, "%s, %s: %s", where, o->problem.algorithm, err.text);
	if (rc == 0) {
		EXPECT_NEAR(p.predicted->iteration_s / r.outcome.iteration_s, 1, tolerance,
			    "%s, %d ranks, %zu elements by %s", where, o->problem.fabric.ranks,
			    o->tensor.count_elems, o->problem.algorithm);
		gf_replayed_release(&r);
	}
	gf_text_release(&notes);
	gf_plan_release(&p);
}

/* All that have steps. */
static const char *algorithms[32];
static size_t nalgorithms;

/* Random factors of all ranks, in at most four stages, or in two. */
static void draw_factors(struct gf_rng *rng, struct one *o, size_t most)
{
	int rest = o->problem.fabric.ranks, f;
	size_t n = 0;

	while (rest > 1) {
		do {
			f = 2 + (int)gf_rng_below(rng, (uint64_t)rest - 1);
		} while (rest % f);
		if (n + 1 == most)
			f = rest;
		o->stages[n++] = (struct gf_stage){.factor = f};
		rest /= f;
	}
	/* a prime number of ranks has no two */
	if (n < 2)
		o->problem.algorithm = "ring";
	o->problem.factors = n < 2 ? NULL : o->stages;
	o->problem.nfactors = n < 2 ? 0 : n;
}

static void draw_levels(struct gf_rng *rng, struct gf_level *levels, size_t n)
{
	static const uint64_t most[] = {0, 32, 6, 3};
	double rate = pow(10, 9.5 + 1.5 * gf_rng_uniform(rng));
	double latency = pow(10, -6.3 + gf_rng_uniform(rng));
	size_t i;

	for (i = 0; i < n; i++) {
		levels[i] = (struct gf_level){
			.name = (char *)"x",
			.link = (char *)"x",
			.size = 2 + gf_rng_below(rng, most[n] - 1),
			.bandwidth_bytes_per_s = rate,
			.latency_s = latency,
		};
		/* further out slower, mostly, and later */
		rate *= pow(10, -1.3 + 1.6 * gf_rng_uniform(rng));
		latency *= pow(10, -0.2 + 1.2 * gf_rng_uniform(rng));
	}
}

/* 4 KiB to 64 MiB. */
static void test_random(void)
{
	const size_t n = nalgorithms;
	struct gf_level levels[3];
	struct gf_rng rng;
	struct one o;
	size_t i, nlevels;
	char where[32];

	gf_rng_init(&rng, 14, 2);
	for (i = 0; i < 200; i++) {
		nlevels = 1 + (size_t)gf_rng_below(&rng, 3);
		draw_levels(&rng, levels, nlevels);
		one_message(&o, levels, nlevels, (size_t)pow(2, 10 + 14 * gf_rng_uniform(&rng)),
			    algorithms[i % n]);
		if (!strcmp(o.problem.algorithm, "blueconnect"))
			draw_factors(&rng, &o, 4);
		if (!strcmp(o.problem.algorithm, "hierarchical"))
			draw_factors(&rng, &o, 2);
		if (!strcmp(o.problem.algorithm, "ps")) {
			o.problem.fabric.servers++;
		}
		snprintf(where, sizeof(where), "topology %zu", i);
		if (!test_tries(i / n, 4))
			continue;
		try_one(&o, nlevels > 1 ? exact : asked, where);
	}
}

/* As the planner decomposes them. On more than 32 ranks p * p steps are too many for a test of
 * seconds; rings are counted in test_ring. */
static void try_shipped(const char *path, size_t number)
{
	struct gf_documents d = {0};
	struct gf_error err = {""};
	char *text = NULL;
	size_t size, i, elems;
	struct one o;

	EXPECT(!gf_file_read(path, &text, &size, &err) &&
		       !gf_documents_add_text(&d, text, size, path, &err),
	       "%s", err.text);
	for (i = 0; d.topology && i < nalgorithms; i++)
		for (elems = 1024; elems <= 1 << 24; elems <<= 7) {
			const struct gf_topology *t = d.topology;
			bool few = strcmp(algorithms[i], "direct") && strcmp(algorithms[i], "ps") &&
				   strcmp(algorithms[i], "ring");

			one_message(&o, t->levels, t->nlevels, elems, algorithms[i]);
			if (t->ranks > 32 ? few && elems == 1 << 17 && test_tries(i + number, 2)
					  : test_tries(i + (elems == 1 << 17), 2))
				try_one(&o, asked, path);
		}
	free(text);
	gf_documents_release(&d);
}

static void test_shipped(void)
{
	const char *source = getenv("GF_SOURCE");
	char *pattern = gf_xasprintf("%s/share/topologies/*.json", source ? source : ".");
	glob_t found = {0};
	size_t i;

	glob(pattern, 0, NULL, &found);
	EXPECT(found.gl_pathc > 0, "%s is empty", pattern);
	for (i = 0; i < found.gl_pathc; i++)
		try_shipped(found.gl_pathv[i], i);
	globfree(&found);
	free(pattern);
}

/* --- closed forms --------------------------------------------------------- */

struct network {
	int sizes[3];
	struct gf_link_cost links[3];
	struct gf_cost_net cost;
	int ranks;
};

static void draw_network(struct gf_rng *rng, struct network *n)
{
	struct gf_level levels[3];
	size_t i;

	n->cost = (struct gf_cost_net){1 + (size_t)gf_rng_below(rng, 3), n->sizes, n->links, NULL};
	draw_levels(rng, levels, n->cost.nlevels);
	n->ranks = 1;
	for (i = 0; i < n->cost.nlevels; i++) {
		n->sizes[i] = (int)levels[i].size * (i ? 1 : 12);
		n->ranks *= n->sizes[i];
		n->links[i] = (struct gf_link_cost){
			.alpha_s = levels[i].latency_s,
			.beta_s_per_byte = 1 / levels[i].bandwidth_bytes_per_s,
		};
	}
}

/* Where two ranks meet. */
static size_t level_of(const struct network *n, int a, int b)
{
	size_t i = 0;

	while (i + 1 < n->cost.nlevels && (a /= n->sizes[i]) != (b /= n->sizes[i]))
		i++;
	return i;
}

/*
 * A ring part by part: rank r sends in round k what it has received in round k
 * - 1; that passes the hop's latency, waits until what r sent before has left,
 * and flows at the rate of the slowest level on its way.
 */
static double ring_s(const struct network *n, double bytes)
{
	int p = n->ranks, rounds = 2 * (p - 1), k, r;
	double *has = gf_xcalloc((size_t)p, sizeof(*has));
	double *gets = gf_xcalloc((size_t)p, sizeof(*gets));
	double *left = gf_xcalloc((size_t)p, sizeof(*left)), end_s = 0;

	for (k = 0; k < rounds; k++) {
		for (r = 0; r < p; r++) {
			int next = (r + 1) % p;
			size_t level = level_of(n, r, next), i;
			double beta = 0;

			for (i = 0; i <= level; i++)
				beta = fmax(beta, n->links[i].beta_s_per_byte);
			left[r] = fmax(has[r] + n->links[level].alpha_s, left[r]) + beta * bytes;
			gets[next] = left[r];
		}
		memcpy(has, gets, (size_t)p * sizeof(*has));
	}
	for (r = 0; r < p; r++)
		end_s = fmax(end_s, has[r]);
	free(has);
	free(gets);
	free(left);
	return end_s;
}

static void try_ring(const struct network *n, double part, size_t which)
{
	struct gf_coll_args args = {
		.ranks = n->ranks,
		.count_elems = (size_t)n->ranks * (size_t)part,
		.elem_bytes = 4,
	};
	double got = gf_algorithm_find("ring")->cost(&args, &n->cost).s;

	EXPECT_NEAR(got / ring_s(n, 4 * part), 1, asked, "network %zu, %d ranks, parts of %g",
		    which, n->ranks, part);
}

/* On many ranks, where replays are too long; and on those of
 * share/topologies/gradientflow-cluster-v.json. */
static void test_ring(void)
{
	struct network n = {.sizes = {4, 2, 64},
			    .links = {{5e-6, 1 / 12e9, 0}, {5e-6, 1 / 12e9, 0}, {1e-5, 1 / 7e9, 0}},
			    .ranks = 512};
	struct gf_rng rng;
	double part;
	size_t i;

	n.cost = (struct gf_cost_net){3, n.sizes, n.links, NULL};
	for (part = 1; part < 1 << 20; part *= 8)
		try_ring(&n, part, 0);

	gf_rng_init(&rng, 15, 1);
	for (i = 1; i <= 200; i++) {
		do {
			draw_network(&rng, &n);
		} while (n.ranks <= 100);
		part = round(pow(2, 2 + 16 * gf_rng_uniform(&rng)));
		try_ring(&n, part, i);
	}
}

/*
 * Two hosts of four, 1 s and 1 s/B inside, 10 s and 2 s/B between; 8 bytes. tree: rounds of
 * distance 1 and 2 inside hosts, 4 between, one message on a link: 2 (2 (1 + 8) + 10 + 16).
 * hierarchical: a half of a ring of 4 inside hosts, 3 (1 + 2) s, and the gather's 2 + 4 bytes from
 * places 1 and 2, twice each; a ring of 2 masters, 2 (10 + 8) s.
 */
static void test_by_hand(void)
{
	static const int sizes[] = {4, 2}, factors[] = {4, 2};
	static const struct gf_link_cost links[] = {{1, 1, 0}, {10, 2, 0}};
	static const struct gf_cost_net net = {2, sizes, links, NULL};
	static const struct {
		const char *algorithm;
		size_t nfactors;
		double want_s;
	} cases[] = {
		{"tree", 0, 88},
		{"hierarchical", 2, 18 + 2 * (1 + 2 + 1 + 4) + 36},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_coll_args args = {
			.ranks = 8,
			.count_elems = 8,
			.elem_bytes = 1,
			.factors = cases[i].nfactors ? factors : NULL,
			.nfactors = cases[i].nfactors,
		};

		EXPECT_NEAR(gf_algorithm_find(cases[i].algorithm)->cost(&args, &net).s,
			    cases[i].want_s, exact, "%s", cases[i].algorithm);
	}
}

/* The library is whatever is cheapest for the size, and its lines go on where the last one ends. */
static void test_library(void)
{
	static const char *const names[] = {"ring", "rhd", "butterfly", "tree"};
	struct gf_level levels[] = {{.name = (char *)"gpu",
				     .link = (char *)"x",
				     .size = 4,
				     .bandwidth_bytes_per_s = 12e9,
				     .latency_s = 5e-6},
				    {.name = (char *)"net",
				     .link = (char *)"x",
				     .size = 8,
				     .bandwidth_bytes_per_s = 1.18e9,
				     .latency_s = 2e-5}};
	struct gf_derived derived = {.lanes = 1};
	struct gf_fabric f = {.levels = levels, .nlevels = 2, .ranks = 32};
	struct gf_price p, one;
	double bytes, want_s;
	size_t round, i, lines;

	for (round = 0; round < 2; round++, f.derived = &derived) {
		for (bytes = 16; bytes < 1e10; bytes *= 3) {
			want_s = INFINITY;
			for (i = 0; i < GF_ARRAY_LENGTH(names); i++) {
				gf_price_message(
					&f,
					&(struct gf_priced){.algorithm = names[i], .bytes = bytes},
					&one, NULL);
				want_s = fmin(want_s, gf_line_s(&one.line, bytes));
			}
			gf_price_message(
				&f, &(struct gf_priced){.algorithm = "library", .bytes = bytes}, &p,
				NULL);
			EXPECT_NEAR(gf_line_s(&p.line, bytes) / want_s, 1, 1e-8, "%g bytes", bytes);
		}
		for (bytes = 0, lines = 0; isfinite(bytes) && lines < 100;
		     bytes = p.line.below_bytes, lines++) {
			gf_price_message(
				&f, &(struct gf_priced){.algorithm = "library", .bytes = bytes}, &p,
				NULL);
			EXPECT(gf_line_holds(&p.line, bytes), "%g to %g at %g", p.line.from_bytes,
			       p.line.below_bytes, bytes);
		}
		EXPECT(lines > 1 && lines < 20, "%zu lines", lines);
	}
	gf_derived_release(&derived);
}

int main(void)
{
	for (size_t i = 0; gf_algorithms[i]; i++)
		if (gf_algorithms[i]->build)
			algorithms[nalgorithms++] = gf_algorithms[i]->name;
	test_by_hand();
	test_ring();
	test_library();
	test_random();
	test_shipped();
	return TEST_END();
}
