/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/array.h"
#include "base/rng.h"
#include "planner/policies/policy.h"
#include "planner_cases.h"
#include "simulator/whatif/jitter.h"
#include "simulator/predict.h"
#include "simulator/whatif/whatif.h"
#include "selections.h"
#include "test.h"

#define TOLERANCE 1e-9

static struct gf_level two_levels[] = {
	{.name = (char *)"host",
	 .size = 2,
	 .link = (char *)"shm",
	 .bandwidth_bytes_per_s = 8,
	 .latency_s = 0.5},
	{.name = (char *)"net",
	 .size = 4,
	 .link = (char *)"ethernet",
	 .bandwidth_bytes_per_s = 2,
	 .latency_s = 3},
};

/* Prices of split messages: by both halves' entries, by forms, or half of an all-reduce. */
static void test_halves(void)
{
	struct gf_allreduce_cost costs[] = {
		{.algorithm = (char *)"ring", .startup_s = 6, .per_byte_s = 1.5},
		{.algorithm = (char *)"ring",
		 .collective = GF_COLL_REDUCE_SCATTER,
		 .startup_s = 4,
		 .per_byte_s = 1,
		 .larger = &(struct gf_cost_line){10, 2, 1.25, NULL},
		 .nlarger = 1},
		{.algorithm = (char *)"ring",
		 .collective = GF_COLL_ALL_GATHER,
		 .startup_s = 1,
		 .per_byte_s = 0.25},
	};
	struct gf_network whole = {.ranks = 4, .allreduce = costs, .nallreduce = 1};
	struct gf_network one = {.ranks = 4, .allreduce = costs, .nallreduce = 2};
	struct gf_network both = {.ranks = 4, .allreduce = costs, .nallreduce = 3};
	struct gf_network halves = {.ranks = 4, .allreduce = costs + 1, .nallreduce = 2};
	struct gf_level_cost level = {
		.name = (char *)"net", .alpha_s = 1, .beta_s_per_byte = 2, .reduce_s_per_byte = 4};
	struct gf_network per_level = {.ranks = 4, .levels = &level, .nlevels = 1};
	const struct {
		const char *what;
		struct gf_fabric fabric;
		const char *algorithm;
		double startup_s, per_byte_s, below_bytes, gather_s, gather_per_byte_s;
		bool halved;
	} cases[] = {
		{"half of an all-reduce",
		 {&whole, NULL, 0, 4, 0},
		 "ring",
		 6,
		 1.5,
		 INFINITY,
		 3,
		 0.75,
		 true},
		{"an entry of one half alone is none",
		 {&one, NULL, 0, 4, 0},
		 "ring",
		 6,
		 1.5,
		 INFINITY,
		 3,
		 0.75,
		 true},
		{"both, for the sizes of each",
		 {&both, NULL, 0, 4, 0},
		 "ring",
		 5,
		 1.25,
		 10,
		 1,
		 0.25,
		 false},
		{"both without the all-reduce",
		 {&halves, NULL, 0, 4, 0},
		 "ring",
		 5,
		 1.25,
		 10,
		 1,
		 0.25,
		 false},
		/* 7/3 of the rounds, each of 1/8 and not 1/4: so lines hold up to twice the size */
		{"both on other ranks",
		 {&both, NULL, 0, 8, 0},
		 "ring",
		 5 * 7. / 3,
		 1.25 * 7 / 6,
		 20,
		 7. / 3,
		 0.25 * 7 / 6,
		 false},
		/* 3 rounds of a quarter each way; one way adds up what came */
		{"derived: a ring",
		 {&per_level, NULL, 0, 4, 0},
		 "ring",
		 6,
		 6,
		 INFINITY,
		 3,
		 1.5,
		 false},
		{"derived: no halves",
		 {&per_level, NULL, 0, 4, 0},
		 "butterfly",
		 2,
		 12,
		 INFINITY,
		 1,
		 6,
		 true},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_price p = {0};
		struct gf_priced m = {cases[i].algorithm, NULL, 0, 1, .split = true};

		EXPECT(gf_price_message(&cases[i].fabric, &m, &p, NULL) == 0, "%s", cases[i].what);
		EXPECT(p.halved == cases[i].halved, "%s", cases[i].what);
		EXPECT_NEAR(p.line.startup_s, cases[i].startup_s, TOLERANCE, "%s", cases[i].what);
		EXPECT_NEAR(p.line.per_byte_s, cases[i].per_byte_s, TOLERANCE, "%s", cases[i].what);
		EXPECT(p.line.below_bytes == cases[i].below_bytes, "%s: got %g", cases[i].what,
		       p.line.below_bytes);
		EXPECT_NEAR(p.gather.startup_s, cases[i].gather_s, TOLERANCE, "%s", cases[i].what);
		EXPECT_NEAR(p.gather.per_byte_s, cases[i].gather_per_byte_s, TOLERANCE, "%s",
			    cases[i].what);
		m.split = false;
		p.line.startup_s = 0;
		if (cases[i].fabric.network == &both && cases[i].fabric.ranks == 4) {
			EXPECT(gf_price_message(&cases[i].fabric, &m, &p, NULL) == 0, "whole");
			EXPECT_NEAR(p.line.startup_s, 6, TOLERANCE, "a whole message by its own");
		}
	}
}

/* Prices: measured, rescaled, derived; and plans without any. */
static void test_price(void)
{
	struct gf_allreduce_cost ring = {
		.algorithm = (char *)"ring", .startup_s = 6, .per_byte_s = 1.5};
	struct gf_network measured = {.ranks = 4, .allreduce = &ring, .nallreduce = 1};
	struct gf_allreduce_cost tree = {.algorithm = (char *)"tree", .startup_s = 1};
	struct gf_network another = {.ranks = 8, .allreduce = &tree, .nallreduce = 1};
	struct gf_level_cost level = {
		.name = (char *)"net", .alpha_s = 1, .beta_s_per_byte = 2, .reduce_s_per_byte = 4};
	struct gf_network per_level = {.ranks = 4, .levels = &level, .nlevels = 1};
	const struct {
		const char *what;
		struct gf_fabric fabric;
		const char *algorithm;
		struct {
			int rc;
			enum gf_price_origin origin;
			double startup_s, per_byte_s;
			double below_bytes; /* 0: all */
		};
	} cases[] = {
		{"measured", {&measured, NULL, 0, 4, 0}, "ring", {0, GF_PRICE_MEASURED, 6, 1.5}},
		{"rescaled: 2(p-1), (p-1)/p",
		 {&measured, NULL, 0, 8, 0},
		 "ring",
		 {0, GF_PRICE_RESCALED, 14, 1.75}},
		{"rescaled down", {&measured, NULL, 0, 2, 0}, "ring", {0, GF_PRICE_RESCALED, 2, 1}},
		{"rescaled to one rank, which sends nothing",
		 {&measured, NULL, 0, 1, 0},
		 "ring",
		 {0, GF_PRICE_RESCALED, 0, 0}},
		/* a part of n/8 bytes passes 14 hops, near and far by turns:
		 * 7 (0.5 + 3) s and 7 (1/8 + 1/2) n/8. From 10.7 bytes on to wait at a far link,
		 * n/8 / 2, takes longer than a near hop, 0.5 + n/8 / 8. */
		{"derived: 14 hops, near and far by turns",
		 {NULL, two_levels, 2, 8, 0},
		 "ring",
		 {0, GF_PRICE_DERIVED, 24.5, 0.546875, 4. / 3 * 8}},
		{"derived beside a measured other",
		 {&another, two_levels, 2, 8, 0},
		 "ring",
		 {0, GF_PRICE_DERIVED, 24.5, 0.546875, 4. / 3 * 8}},
		{"a measured level, with its reduction",
		 {&per_level, NULL, 0, 4, 0},
		 "ring",
		 {0, GF_PRICE_DERIVED, 6, 6}},
		{"a measured level in place of the nominal one",
		 {&per_level, &two_levels[1], 1, 4, 0},
		 "ring",
		 {0, GF_PRICE_DERIVED, 6, 6}},
		{"halves of a number of ranks that is no power of two",
		 {&per_level, NULL, 0, 6, 0},
		 "rhd",
		 {0, GF_PRICE_DERIVED, 6, 14}},
		{"nothing says", {&measured, NULL, 0, 4, 0}, "library", {-ENOTSUP, 0, 0, 0}},
		{"no such algorithm", {NULL, two_levels, 2, 8, 0}, "pigeon", {-EINVAL, 0, 0, 0}},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_error err = {""};
		struct gf_price p = {0};
		struct gf_priced m = {cases[i].algorithm, NULL, 0, 1};
		int rc = gf_price_message(&cases[i].fabric, &m, &p, &err);

		EXPECT(rc == cases[i].rc, "%s: want %d, got %d: %s", cases[i].what, cases[i].rc, rc,
		       err.text);
		if (rc)
			continue;
		EXPECT(p.origin == cases[i].origin, "%s", cases[i].what);
		EXPECT_NEAR(p.line.startup_s, cases[i].startup_s, TOLERANCE, "%s", cases[i].what);
		EXPECT_NEAR(p.line.per_byte_s, cases[i].per_byte_s, TOLERANCE, "%s", cases[i].what);
		if (cases[i].below_bytes > 0)
			EXPECT_NEAR(p.line.below_bytes, cases[i].below_bytes, TOLERANCE, "%s",
				    cases[i].what);
		EXPECT(p.line.from_bytes == 0 &&
			       (cases[i].below_bytes || isinf(p.line.below_bytes)),
		       "%s: for all sizes, got %g to %g", cases[i].what, p.line.from_bytes,
		       p.line.below_bytes);
	}
}

/* Several lines: each for its sizes, and on other ranks for the sizes whose rounds are as large: a
 * ring of 8 sends an eighth where one of 4 a quarter. */
static void test_lines(void)
{
	struct gf_cost_line larger[] = {{40, 66, 1.5, NULL}, {80, 66, 2, NULL}};
	struct gf_allreduce_cost ring = {.algorithm = (char *)"ring",
					 .startup_s = 6,
					 .per_byte_s = 1.5,
					 .larger = larger,
					 .nlarger = 2};
	struct gf_network measured = {.ranks = 4, .allreduce = &ring, .nallreduce = 1};
	static const struct {
		int ranks;
		double bytes, startup_s, per_byte_s, from_bytes, below_bytes;
	} cases[] = {
		{4, 39, 6, 1.5, 0, 40},        {4, 40, 66, 1.5, 40, 80},
		{4, 1e9, 66, 2, 80, INFINITY}, {8, 79, 14, 1.75, 0, 80},
		{8, 80, 154, 1.75, 80, 160},   {8, 160, 154, 7.0 / 3, 160, INFINITY},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_fabric f = {&measured, NULL, 0, cases[i].ranks, 0};
		struct gf_priced m = {"ring", NULL, 0, cases[i].bytes};
		struct gf_price p = {0};

		EXPECT(gf_price_message(&f, &m, &p, NULL) == 0, "case %zu", i);
		EXPECT_NEAR(p.line.startup_s, cases[i].startup_s, TOLERANCE, "case %zu", i);
		EXPECT_NEAR(p.line.per_byte_s, cases[i].per_byte_s, TOLERANCE, "case %zu", i);
		EXPECT_NEAR(p.line.from_bytes, cases[i].from_bytes, TOLERANCE, "case %zu", i);
		EXPECT(p.line.below_bytes == cases[i].below_bytes ||
			       fabs(p.line.below_bytes - cases[i].below_bytes) < TOLERANCE,
		       "case %zu: below %g", i, p.line.below_bytes);
	}
}

/*
 * Levels with several lines: every round by the line for what it sends. Prices cover all sizes
 * without a gap, do not fall, and where no line had to be raised are the closed form of that
 * message.
 */
static void try_level_lines(const struct gf_fabric *f, const struct gf_cost_net *net,
			    const char *name, bool exactly)
{
	const struct gf_algorithm *a = gf_algorithm_find(name);
	struct gf_priced m = {name, NULL, 0, 0};
	struct gf_price p;
	double before = 0, end = 0;
	size_t lines = 0, n;

	do {
		double first, below;

		m.bytes = end;
		if (gf_price_message(f, &m, &p, NULL) != 0)
			break;
		first = gf_line_s(&p.line, p.line.from_bytes);
		EXPECT(p.line.from_bytes == end && p.line.below_bytes > end,
		       "%s: %g to %g after %g", name, p.line.from_bytes, p.line.below_bytes, end);
		EXPECT(first >= before * (1 - TOLERANCE), "%s: %g after %g", name, first, before);
		m.bytes = isfinite(p.line.below_bytes) ? nextafter(p.line.below_bytes, 0)
						       : 2 * end + 1;
		below = p.line.below_bytes;
		before = gf_line_s(&p.line, m.bytes);
		EXPECT(gf_price_message(f, &m, &p, NULL) == 0 && p.line.below_bytes == below,
		       "%s: %.17g is below %.17g", name, m.bytes, below);
		end = below;
		lines++;
	} while (isfinite(end) && lines < 1000);
	EXPECT(isinf(end), "%s: %zu lines", name, lines);
	for (n = 7 * 4096; n < (1 << 24) && exactly; n *= 2) {
		struct gf_coll_args args = {.ranks = f->ranks, .count_elems = n, .elem_bytes = 4};
		double want = a->cost(&args, net).s;

		if (n % (size_t)f->ranks) /* parts are not alike */
			continue;
		m.bytes = 4 * (double)n;
		EXPECT(gf_price_message(f, &m, &p, NULL) == 0, "%s", name);
		EXPECT_NEAR((gf_line_s(&p.line, m.bytes)) / want, 1, TOLERANCE,
			    "%s of %d, %zu elements", name, f->ranks, n);
	}
}

static void test_level_lines(void)
{
	static const struct gf_cost_line shm[] = {{4096, 6e-6, 1.5e-10, NULL}};
	/* the first ones' costs never fall; where eight share the second ones' link, they would */
	static const struct gf_cost_line tcp[2][2] = {
		{{65536, 2e-3, 9e-9, NULL}, {1 << 20, 3e-3, 9e-9, NULL}},
		{{65536, 2e-4, 8e-9, NULL}, {1 << 20, 7e-4, 7.6e-9, NULL}}};
	struct gf_level_cost costs[] = {
		{.name = (char *)"host",
		 .alpha_s = 2e-6,
		 .beta_s_per_byte = 2.5e-10,
		 .larger = (struct gf_cost_line *)shm,
		 .nlarger = 1},
		{.name = (char *)"net", .alpha_s = 5e-5, .beta_s_per_byte = 9e-9, .nlarger = 2}};
	struct gf_link_cost links[] = {{2e-6, 2.5e-10, 0, shm, 1}, {5e-5, 9e-9, 0, NULL, 2}};
	struct gf_network measured = {.ranks = 8, .levels = costs, .nlevels = 2};
	static const char *const names[] = {"ring",   "rhd", "butterfly", "tree",
					    "linear", "ps",  "direct"};
	static const int counts[] = {2, 7, 8, 56, 64};
	const size_t ncounts = GF_ARRAY_LENGTH(counts);
	size_t i, k;

	for (i = 0; i < 2 * ncounts; i++) {
		int sizes[] = {8, counts[i % ncounts]};
		struct gf_level levels[] = {two_levels[0], two_levels[1]};
		struct gf_fabric f = {&measured, levels, 2, 8 * sizes[1], 0};
		const struct gf_cost_net net = {2, sizes, links, NULL};

		levels[0].size = 8;
		levels[1].size = (size_t)sizes[1];
		costs[1].larger = (struct gf_cost_line *)tcp[i / ncounts];
		links[1].larger = tcp[i / ncounts];
		for (k = 0; k < GF_ARRAY_LENGTH(names); k++)
			try_level_lines(&f, &net, names[k], i < ncounts);
	}
}

/* What may stand in a document, from the first byte to the last: lines that are flat, steep, next
 * to each other or astronomically far out. */
static void draw_level(struct gf_rng *rng, struct gf_level_cost *c)
{
	struct gf_cost_line next;
	size_t from = 1 + (size_t)gf_rng_below(rng, 100);

	c->alpha_s = gf_rng_below(rng, 4)   ? gf_rng_uniform(rng) * 1e-3
		     : gf_rng_below(rng, 2) ? 1e-320
					    : 0;
	c->beta_s_per_byte = gf_rng_below(rng, 4) ? pow(10, -12 + 8 * gf_rng_uniform(rng)) : 0;
	while (c->nlarger < GF_LEVEL_LINES_MOST - 1 && gf_rng_below(rng, 4)) {
		next = (struct gf_cost_line){
			from, gf_rng_uniform(rng) * 1e-2,
			gf_rng_below(rng, 4) ? pow(10, -12 + 8 * gf_rng_uniform(rng)) : 0, NULL};
		gf_cost_line_add(&c->larger, &c->nlarger, next);
		from += 1 + (size_t)pow(2, 40 * gf_rng_uniform(rng));
	}
}

static void test_random_levels(void)
{
	static const char *const names[] = {"ring",   "rhd", "butterfly",   "tree",
					    "linear", "ps",  "blueconnect", "direct"};
	struct gf_level_cost costs[2];
	struct gf_rng rng;
	size_t i, k;
	int round;

	gf_rng_init(&rng, 5, 0);
	for (round = 0; round < 60; round++) {
		struct gf_network measured = {.levels = costs, .nlevels = 2};
		struct gf_level levels[] = {two_levels[0], two_levels[1]};
		struct gf_fabric f = {&measured, levels, 2, 0, 0};

		memset(costs, 0, sizeof(costs));
		for (i = 0; i < 2; i++) {
			costs[i].name = levels[i].name;
			levels[i].size = 1 + (size_t)gf_rng_below(&rng, 40);
			draw_level(&rng, &costs[i]);
		}
		f.ranks = (int)(levels[0].size * levels[1].size);
		for (k = 0; k < GF_ARRAY_LENGTH(names); k++)
			try_level_lines(&f, NULL, names[k], false);
		for (i = 0; i < 2; i++)
			free(costs[i].larger);
	}
}

/* Rounds of 4 ranks: 6 in a ring, 2 of the butterfly, 2 log2(4) of a tree. */
static void test_sets(void)
{
	struct gf_allreduce_cost costs[] = {
		{.algorithm = (char *)"ring", .startup_s = 20, .beside = {.message_slowdown = 2}},
		{.algorithm = (char *)"butterfly", .startup_s = 12},
		{.algorithm = (char *)"tree", .startup_s = 5},
		/* not the runtime's own */
		{.algorithm = (char *)"library", .startup_s = 1000},
	};
	struct gf_level_cost level = {.name = (char *)"net", .alpha_s = 1, .beta_s_per_byte = 2};
	struct gf_network both = {.ranks = 4,
				  .allreduce = costs,
				  .nallreduce = GF_ARRAY_LENGTH(costs),
				  .levels = &level,
				  .nlevels = 1};
	struct gf_network no_levels = both, no_allreduce = both;
	struct gf_fabric f = {&both, NULL, 0, 4, 0};
	struct gf_sim_message m = {.bytes = 8};

	/* 14, 10, 1 */
	EXPECT_NEAR(gf_price_call_s(&f), 10, TOLERANCE, "beside transfers");
	f.ranks = 16;
	EXPECT_NEAR(gf_price_call_s(&f), 10, TOLERANCE, "as measured on 4");
	f.ranks = 4;
	EXPECT(gf_price_sets(&f, GF_WIRE_GATHER, 10, &m, NULL) == 0, "gather");
	EXPECT_NEAR(m.startup_s, 10 + 2 * 1, TOLERANCE, "gather");
	EXPECT_NEAR(m.per_byte_s, 3 * 2, TOLERANCE, "gather");
	no_levels.nlevels = 0;
	f.network = &no_levels;
	EXPECT(gf_price_call_s(&f) == 0, "links by the ring have it in them");
	no_allreduce.nallreduce = 0;
	f.network = &no_allreduce;
	EXPECT(gf_price_call_s(&f) == 0, "unknown");
	f.network = NULL;
	EXPECT(gf_price_call_s(&f) == 0, "no network");
}

static void test_link(void)
{
	struct gf_allreduce_cost ring = {
		.algorithm = (char *)"ring", .startup_s = 6, .per_byte_s = 1.5};
	struct gf_network measured = {.ranks = 4, .allreduce = &ring, .nallreduce = 1};
	struct gf_fabric f = {&measured, NULL, 0, 4, 0};
	struct gf_link_cost link;

	EXPECT(gf_price_link(&f, INFINITY, &link, NULL) == 0, "from a ring");
	EXPECT_NEAR(link.alpha_s, 1, TOLERANCE, "from a ring");
	EXPECT_NEAR(link.beta_s_per_byte, 1, TOLERANCE, "from a ring");
	f = (struct gf_fabric){NULL, two_levels, 2, 8, 0};
	EXPECT(gf_price_link(&f, INFINITY, &link, NULL) == 0, "from levels");
	EXPECT_NEAR(link.alpha_s, 3, TOLERANCE, "from levels");
	EXPECT_NEAR(link.beta_s_per_byte, 0.5, TOLERANCE, "from levels");
}

/*
 * Two messages of 8 elements on 4 ranks, by a ring of 3 s and 1/4 s per byte. A ring passes a byte
 * on 2 * 3/4 = 1.5 times. Forward 1, backward 4.
 *
 *	f32	3 + 32/4 = 11
 *	f16	3 + 16/4 + 1.5 * 32 * (0.1 + 0.2) = 21.4
 *	q8	measured, 1028 bytes for 1024 elements: 5 + 8.03125/2
 *	by the library, whose f16 is encoded and decoded once:
 *		2 + 16/4 + 32 * 0.3 = 15.6
 *
 * A selection of 0.5 + 32 * 0.01 = 0.82 comes on top. With an issue of 1, what is ready at 2 and 5
 * goes at 2 and, if nothing is before it, at 6.
 */
static void test_processing(void)
{
	struct gf_allreduce_cost costs[] = {
		{.algorithm = (char *)"ring", .startup_s = 3, .per_byte_s = 0.25},
		{.algorithm = (char *)"ring",
		 .codec = (char *)"q8",
		 .startup_s = 5,
		 .per_byte_s = 0.5},
		{.algorithm = (char *)"library", .startup_s = 2, .per_byte_s = 0.25},
	};
	struct gf_codec_cost codecs[] = {
		{.of = {.name = (char *)"f16", .device = (char *)"cpu"},
		 .encode_s_per_byte = 0.1,
		 .decode_s_per_byte = 0.2},
		{.of = {.name = (char *)"q8", .device = (char *)"cpu"}, .encode_s_per_byte = 100},
		{.of = {.name = (char *)"f16", .device = (char *)"cuda"}, .encode_s_per_byte = 100},
	};
	struct gf_selection_cost selection = {
		.of = {.name = (char *)"dense", .device = (char *)"cpu"},
		.alpha_s = 0.5,
		.beta_s_per_byte = 0.01};
	static const struct {
		const char *algorithm, *codec;
		bool selects;
		double issue_s, takes_s, first_s;
	} cases[] = {
		{"ring", "f32", false, 0, 11, 2},      {"ring", "f16", false, 0, 21.4, 2},
		{"ring", "q8", false, 0, 9.015625, 2}, {"library", "f16", false, 0, 15.6, 2},
		{"ring", "f16", true, 0, 22.22, 2},    {"ring", "f16", true, 1, 22.22, 2},
	};
	struct gf_network net = {.ranks = 4, .allreduce = costs, .nallreduce = 3};
	struct gf_tensor tensors[2] = {{.count_elems = 8, .ready_s = 1},
				       {.count_elems = 8, .ready_s = 4}};
	struct gf_model_profile model = {.device = (char *)"cpu",
					 .forward_s = 1,
					 .backward_s = 4,
					 .overlap_slowdown = 1,
					 .tensors = tensors,
					 .ntensors = 2};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_message messages[2] = {
			{.algorithm = (char *)cases[i].algorithm, .codec = (char *)cases[i].codec},
			{.first = 1,
			 .last = 1,
			 .algorithm = (char *)cases[i].algorithm,
			 .codec = (char *)cases[i].codec}};
		struct gf_predicted_message times[2];
		struct gf_plan p = {.ranks = 4,
				    .lanes = 1,
				    .model = &model,
				    .network = &net,
				    .processing = {codecs, 3, &selection, cases[i].selects},
				    .messages = messages,
				    .nmessages = 2,
				    .staleness = 1};
		struct gf_fabric f = gf_plan_fabric(&p);
		struct gf_sim_result r = {.messages = times};
		double takes_s = cases[i].takes_s;

		model.issue_s = cases[i].issue_s;
		EXPECT(gf_predict_plan(&p, &f, &r, NULL) == 0, "case %zu", i);
		EXPECT_NEAR(times[0].start_s, cases[i].first_s, TOLERANCE, "case %zu", i);
		EXPECT_NEAR(times[0].end_s, cases[i].first_s + takes_s, TOLERANCE, "case %zu", i);
		EXPECT_NEAR(times[1].ready_s, 5 + cases[i].issue_s, TOLERANCE, "case %zu", i);
		EXPECT_NEAR(r.iteration_s, cases[i].first_s + 2 * takes_s, TOLERANCE, "case %zu",
			    i);
	}
}

/*
 * Gathered sets of 2 among 8 elements, two messages of a model of 64 bytes, on 4 ranks whose links
 *take 1 + 2 per byte: sets of 16 bytes, 2 rounds and 3 sets of them.
 *
 *	transfers	2 * 1 + 3 * 16 * 2 = 98, and as f16 of 5 bytes 2 + 30
 *	by the line	0.5 + 32 * 0.01 = 0.82
 *	by points	0.5 + (4.5 - 0.5) * 32 / 64 = 2.5
 *	what is sent	(1 + 4) * 16 * 0.1 = 8
 *	under f16	1 * 8 * 2 + 4 * 8 * 3 = 112
 *
 * Half of choosing and all of coding holds up backward: what is ready at 2 and 5 lets the other
 * wait.
 */
static void test_processing_of_sets(void)
{
	size_t sizes[] = {16, 48, 80};
	double times[] = {1, 3.5, 5.5};
	struct gf_level_cost level = {.name = (char *)"net", .alpha_s = 1, .beta_s_per_byte = 2};
	struct gf_network net = {.ranks = 4, .levels = &level, .nlevels = 1};
	struct gf_tensor tensors[2] = {{.count_elems = 8, .ready_s = 1},
				       {.count_elems = 8, .ready_s = 4}};
	struct gf_model_profile model = {.device = (char *)"cpu",
					 .forward_s = 1,
					 .backward_s = 4,
					 .overlap_slowdown = 1,
					 .tensors = tensors,
					 .ntensors = 2};
	const struct gf_selection gathered = test_selection("gathered: quarter");
	static const struct {
		const char *codec;
		size_t npoints;
		double sent_s, share, takes_s, ready_s;
	} cases[] = {
		{"f32", 0, 0, 0, 98 + 0.82, 5},
		{"f32", 3, 0, 0, 98 + 2.5, 5},
		{"f32", 3, 0.1, 0, 98 + 2.5 + 8, 5},
		{"f32", 3, 0.1, 0.5, 98 + 2.5 + 8, 5 + 0.5 * 10.5},
		{"f16", 3, 0.1, 0.5, 32 + 2.5 + 8 + 112, 5 + 0.5 * 10.5 + 112},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_codec_cost codec = {
			.of = {.name = (char *)"f16", .device = (char *)"cpu", .backward_share = 1},
			.set_encode_s_per_byte = 2,
			.set_decode_s_per_byte = 3};
		struct gf_selection_cost selection = {
			.of = {.name = (char *)gf_selection_name(&gathered),
			       .device = (char *)"cpu",
			       .backward_share = cases[i].share,
			       .fit = {.npoints = cases[i].npoints,
				       .size_bytes = sizes,
				       .time_s = times}},
			.alpha_s = 0.5,
			.beta_s_per_byte = 0.01,
			.sent_s_per_byte = cases[i].sent_s};
		struct gf_message messages[2] = {
			{.algorithm = (char *)"ring", .codec = (char *)cases[i].codec},
			{.first = 1,
			 .last = 1,
			 .algorithm = (char *)"ring",
			 .codec = (char *)cases[i].codec}};
		struct gf_predicted_message at[2];
		struct gf_plan p = {.ranks = 4,
				    .lanes = 1,
				    .model = &model,
				    .network = &net,
				    .processing = {&codec, 1, &selection, 1},
				    .selection = gathered,
				    .messages = messages,
				    .nmessages = 2,
				    .staleness = 1};
		struct gf_fabric f = gf_plan_fabric(&p);
		struct gf_sim_result r = {.messages = at};

		EXPECT(gf_predict_plan(&p, &f, &r, NULL) == 0, "case %zu", i);
		EXPECT_NEAR(at[0].end_s - at[0].start_s, cases[i].takes_s, TOLERANCE, "case %zu",
			    i);
		EXPECT_NEAR(at[1].ready_s, cases[i].ready_s, TOLERANCE, "case %zu", i);
	}
}

/*
 * A message of 16 elements after backward, by a ring of 4 ranks: encoded and decoded on the 1.5
 * times its bytes that pass each rank. Stale gradients hide the message, but not what it takes from
 * a processor that computes.
 */
static void test_codecs_beside_stale_steps(void)
{
	struct gf_level_cost level = {
		.name = (char *)"net", .alpha_s = 1e-3, .beta_s_per_byte = 1e-3};
	struct gf_network net = {.ranks = 4, .levels = &level, .nlevels = 1};
	struct gf_tensor tensor = {.count_elems = 16, .ready_s = 4};
	struct gf_model_profile model = {.device = (char *)"cpu",
					 .forward_s = 1,
					 .backward_s = 4,
					 .overlap_slowdown = 1,
					 .tensors = &tensor,
					 .ntensors = 1};
	static const struct {
		enum gf_release release;
		int lanes;
		double share;
	} cases[] = {
		{GF_RELEASE_BACKWARD_END, 1, 0}, {GF_RELEASE_BACKWARD_END, 1, 1},
		{GF_RELEASE_READY, 1, 1},        {GF_RELEASE_BACKWARD_END, 2, 1},
		{GF_RELEASE_READY, 2, 0.5},
	};
	const double handled_s = 1.5 * 64 * (0.002 + 0.003);
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_codec_cost codec = {.of = {.name = (char *)"f16",
						     .device = (char *)"cpu",
						     .backward_share = cases[i].share},
					      .encode_s_per_byte = 0.002,
					      .decode_s_per_byte = 0.003};
		struct gf_message message = {.algorithm = (char *)"ring",
					     .codec = (char *)"f16",
					     .release = cases[i].release};
		struct gf_plan p = {.ranks = 4,
				    .lanes = cases[i].lanes,
				    .model = &model,
				    .network = &net,
				    .processing = {&codec, 1, NULL, 0},
				    .messages = &message,
				    .nmessages = 1,
				    .staleness = 2};
		struct gf_fabric f = gf_plan_fabric(&p);
		struct gf_sim_result r = {0};

		EXPECT(gf_predict_plan(&p, &f, &r, NULL) == 0, "case %zu", i);
		EXPECT_NEAR(r.iteration_s, 5 + cases[i].share * handled_s, TOLERANCE, "case %zu",
			    i);
	}
}

/* How staleness changes six of tests/data/vectors.md. */
static void test_stale(void)
{
	struct problem_store s;
	struct gf_sim_result r = {0};
	struct gf_fabric f;
	struct gf_plan p;

	store_case(&s, &six, 1);
	EXPECT(gf_policy_run(&gf_policy_single, &s.problem, &p, NULL) == 0, "single");
	f = gf_plan_fabric(&p);
	p.staleness = 2;
	EXPECT(gf_predict_plan(&p, &f, &r, NULL) == 0, "pipelined");
	EXPECT_NEAR(r.iteration_s, 48, TOLERANCE, "bound by the exchange");
	gf_plan_release(&p);
}

/* And how selections do, one message at the end of backward: what their files say of it, where
 * "why" derives the number. */
static void try_six(struct gf_json_at *at, void *ctx)
{
	const struct gf_select_plan *plan = ctx;
	const size_t last = entry_size(at, "last_elems", 0);
	struct gf_sim_result r = {0};
	struct problem_store s;
	struct gf_fabric f;
	struct gf_plan p;

	store_case(&s, &six, 1);
	EXPECT(gf_policy_run(&gf_policy_single, &s.problem, &p, NULL) == 0, "single");
	f = gf_plan_fabric(&p);
	p.selection = test_selection_at(plan, at, "keys");
	p.threshold_bytes = entry_size(at, "threshold_bytes", p.threshold_bytes);
	p.model->update_s = entry_real(at, "update_s", p.model->update_s);
	if (last) {
		p.model->tensors[5].count_elems = last;
		p.messages[0].first = 5;
	}
	EXPECT(gf_predict_plan(&p, &f, &r, NULL) == 0, "%s", plan->name);
	EXPECT_NEAR(r.iteration_s, entry_real(at, "iteration_s", 0), TOLERANCE, "%s", plan->name);
	p.selection = (struct gf_selection){0};
	gf_plan_release(&p);
}

static void test_six(const struct gf_select_plan *plan, struct entry_facts *f, void *ctx)
{
	(void)ctx;
	entry_rows(f, "six", try_six, (void *)plan);
}

/* The same normal deviates, drawn one by one and as the largest of many. */
static void test_normal(void)
{
	static const struct {
		double u, n, want;
	} cases[] = {
		{0.5, 1, 0},
		{0.975, 1, 1.959963984540054},
		{0.025, 1, -1.959963984540054},
		{1e-9, 1, -5.9978070150076865},
		/* u^(1/2) = 0.5 */
		{0.25, 2, 0},
		/* 1 - 0.5^(1/1e6) */
		{0.5, 1e6, 4.826965122543788},
	};
	struct gf_rng rng;
	double sum = 0, direct = 0;
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		EXPECT_NEAR(gf_normal_largest(cases[i].u, cases[i].n), cases[i].want, 1e-7,
			    "case %zu", i);
	/* draws at the ends are large, and yet numbers */
	EXPECT(gf_normal_largest(0, 1) < -30 && isfinite(gf_normal_largest(0, 1)), "%g",
	       gf_normal_largest(0, 1));
	EXPECT(gf_normal_largest(1, 1) > 8 && isfinite(gf_normal_largest(1, 1)), "%g",
	       gf_normal_largest(1, 1));
	gf_rng_init(&rng, 1, 0);
	for (i = 0; i < 20000; i++) {
		double most = -INFINITY;

		for (k = 0; k < 8; k++)
			most = fmax(most, gf_rng_normal(&rng));
		direct += most / 20000;
		sum += gf_normal_largest(gf_rng_uniform(&rng), 8) / 20000;
	}
	EXPECT(fabs(sum - direct) < 0.02, "mean of the largest of 8: %g, %g", sum, direct);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void test_what_if(void)
{
	struct gf_slow_rank slow = {2, 2};
	struct gf_what_if same = {.iterations = 10}, slower = {.slow = &slow, .nslow = 1};
	struct gf_what_if uneven = {.jitter = 0.1, .runs = 200, .seed = 3};
	struct problem_store s;
	struct gf_outcome o;
	struct gf_plan p;
	double even_s;

	store_case(&s, &six, 1);
	EXPECT(gf_policy_run(&gf_policy_wfbp, &s.problem, &p, NULL) == 0, "wfbp");
	EXPECT(gf_what_if(&p, &same, &o, NULL) == 0, "same");
	even_s = o.iteration_s;
	EXPECT_NEAR(even_s, 67, TOLERANCE, "same");
	EXPECT_NEAR(o.communication_s, 63, TOLERANCE, "4 to 67");
	EXPECT_NEAR(o.total_s, 670, TOLERANCE, "ten");
	gf_outcome_release(&o);
	EXPECT(gf_what_if(&p, &slower, &o, NULL) == 0, "slow rank");
	EXPECT_NEAR(o.iteration_s, 71, TOLERANCE, "ready at 8 instead of 4");
	EXPECT_NEAR(o.exposed_comm_s, 51, TOLERANCE, "slow rank");
	gf_outcome_release(&o);
	EXPECT(gf_what_if(&p, &uneven, &o, NULL) == 0, "jitter");
	EXPECT(o.least_s <= o.p50_s && o.p99_s <= o.most_s && o.p50_s > even_s,
	       "jitter: %g %g %g %g", o.least_s, o.p50_s, o.p99_s, o.most_s);
	gf_outcome_release(&o);
	slow.rank = 4;
	EXPECT(gf_what_if(&p, &slower, &o, NULL) == -EINVAL, "no rank 4");
	gf_plan_release(&p);
}

/* Runs of many messages on many lanes, of which most are read off lines between others: percentiles
 * against the same draws, each simulated by itself. */
static void test_many_at_once(void)
{
	enum { MESSAGES = 300, RANKS_HERE = 4, RUNS_HERE = 4000 };
	static const double shares[] = {0.9, 0.99, 1};
	struct gf_what_if what = {.jitter = 0.1, .runs = RUNS_HERE, .seed = 3};
	struct gf_tensor *tensors = gf_xcalloc(MESSAGES, sizeof(*tensors));
	double *factors = gf_xcalloc(RUNS_HERE, sizeof(*factors));
	struct problem_store s;
	struct gf_outcome o, one;
	struct gf_rng rng;
	struct gf_plan p;
	size_t i;

	store_case(&s, &six, 1);
	gf_rng_init(&rng, 1, 0);
	for (i = 0; i < MESSAGES; i++) {
		tensors[i] = s.tensors[0];
		tensors[i].count_elems = 1 + gf_rng_below(&rng, 30);
		tensors[i].ready_s = s.model.backward_s * (double)(i + 1) / (double)MESSAGES;
	}
	s.model.tensors = tensors;
	s.model.ntensors = MESSAGES;
	EXPECT(!gf_policy_run(&gf_policy_wfbp, &s.problem, &p, NULL), "wfbp");
	p.lanes = MESSAGES;
	for (i = 0; i < MESSAGES; i++)
		p.messages[i].mode = GF_MODE_SIMULTANEOUS;
	gf_plan_set_types(&p);
	EXPECT(!gf_what_if(&p, &what, &o, NULL), "jitter");
	gf_rng_init(&rng, what.seed, 0);
	for (i = 0; i < RUNS_HERE; i++)
		factors[i] = 1 + what.jitter * gf_normal_largest(gf_rng_uniform(&rng), RANKS_HERE);
	for (i = 0; i < GF_ARRAY_LENGTH(shares); i++) {
		const double got[] = {o.p90_s, o.p99_s, o.most_s};
		size_t at = (size_t)ceil(shares[i] * RUNS_HERE) - 1;
		struct gf_slow_rank slow = {0, 0};
		struct gf_what_if alone = {.slow = &slow, .nslow = 1};

		qsort(factors, RUNS_HERE, sizeof(*factors), ascending);
		slow.factor = factors[at];
		EXPECT(!gf_what_if(&p, &alone, &one, NULL), "alone");
		EXPECT_NEAR(got[i] / one.iteration_s, 1, 1e-5, "share %g", shares[i]);
		gf_outcome_release(&one);
	}
	gf_outcome_release(&o);
	gf_plan_release(&p);
	free(factors);
	free(tensors);
}

int main(void)
{
	test_price();
	test_halves();
	test_lines();
	test_level_lines();
	test_random_levels();
	test_sets();
	test_link();
	test_stale();
	test_each_selection(test_six, NULL);
	test_processing();
	test_processing_of_sets();
	test_codecs_beside_stale_steps();
	test_normal();
	test_what_if();
	test_many_at_once();
	return TEST_END();
}
