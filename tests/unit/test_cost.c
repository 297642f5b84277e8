/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "collectives/algorithm.h"
#include "cost/primitives.h"
#include "entry_facts.h"
#include "test.h"

/* Formulas against each other: only rounding differs. */
static const double exact = 1e-12;
/* Against figures of the paper, printed with one decimal. */
static const double printed_ms = 0.05;

/* 4 GPUs, 16 hosts, 3 racks; 32 GB/s, 100 Gb/s, 16 x 100 Gb/s. */
static const int cluster_sizes[] = {4, 16, 3};
static const struct gf_link_cost cluster_links[] = {
	{250e-6, 1 / 32e9, 0}, {250e-6, 1 / 12.5e9, 0}, {250e-6, 1 / 200e9, 0}};
static const struct gf_cost_net cluster = {3, cluster_sizes, cluster_links};

static void test_links(void)
{
	static const int sizes[] = {4, 3, 2};
	static const struct gf_link_cost links[] = {{1, 10, 0.1}, {2, 10, 0.2}, {3, 10, 0.3}};
	static const struct gf_cost_net net = {3, sizes, links};
	/* beta in units of 10: the most messages on a link, as all are alike */
	static const struct {
		const char *what;
		struct gf_cost_round round;
		double alpha_s, messages;
	} cases[] = {
		{"inside hosts", {24, 1, 4, 1}, 1, 1},
		{"pairs inside hosts", {24, 2, 2, 2}, 1, 1},
		{"ring of all", {24, 1, 24, 1}, 3, 1},
		{"same places of hosts", {24, 4, 3, 4}, 2, 4},
		{"their masters", {24, 4, 3, 1}, 2, 1},
		{"across racks", {24, 12, 2, 12}, 3, 12},
		{"across racks, masters", {24, 12, 2, 1}, 3, 1},
		{"rings of 6 hosts", {24, 4, 6, 4}, 3, 4},
		{"pairs 2 hosts apart", {24, 8, 2, 8}, 3, 4},
		{"groups of 6 across hosts of 4", {24, 1, 6, 1}, 2, 2},
		{"groups of 3 across hosts of 4", {24, 1, 3, 1}, 2, 2},
		{"nobody", {24, 24, 1, 24}, 1, 1},
		{"more ranks than the levels say", {48, 24, 2, 24}, 3, 12},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_link_cost got = gf_cost_link(&net, &cases[i].round, 1);

		EXPECT(got.alpha_s == cases[i].alpha_s, "%s: alpha %g", cases[i].what, got.alpha_s);
		EXPECT(got.beta_s_per_byte == 10 * cases[i].messages, "%s: beta %g", cases[i].what,
		       got.beta_s_per_byte);
	}
}

/* Rounds by the line for what they send; and for what scales it holds. */
static void test_lines(void)
{
	static const int sizes[] = {4, 3};
	static const struct gf_cost_line near[] = {{100, 5, 8, NULL}};
	static const struct gf_cost_line far[] = {{64, 7, 9, NULL}, {512, 9, 12, NULL}};
	static const struct gf_link_cost links[] = {{1, 10, 0.1, near, 1}, {2, 10, 0.2, far, 2}};
	static const struct gf_cost_round inside = {12, 1, 4, 1};
	static const struct gf_cost_round across = {12, 4, 3, 4};
	static const struct {
		const struct gf_cost_round *round;
		double bytes, alpha_s, beta_s_per_byte, below_scale;
	} cases[] = {
		{&inside, 99, 1, 10, 100. / 99},
		{&inside, 100, 5, 8, 0},
		{&across, 0, 2, 40, 0},
		{&across, 63, 2, 40, 64. / 63},
		/* four share the way out of their group, by the outer line */
		{&across, 64, 7, 36, 100. / 64},
		{&across, 128, 7, 36, 4},
		{&across, 512, 9, 48, 0},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		static const double longer = 4096;
		struct gf_cost_net net = {2, sizes, links, NULL};
		double below = cases[i].below_scale, shorter;

		/* then a shorter one, by the same line */
		for (shorter = 1; shorter <= longer; shorter *= longer) {
			struct gf_link_cost got =
				gf_cost_link(&net, cases[i].round, cases[i].bytes / shorter);

			EXPECT(got.alpha_s == cases[i].alpha_s &&
				       got.beta_s_per_byte == cases[i].beta_s_per_byte &&
				       !got.larger,
			       "case %zu: alpha %g, beta %g", i, got.alpha_s, got.beta_s_per_byte);
			EXPECT_NEAR(got.below_scale, shorter * below, 1e-9, "case %zu", i);
			net.scale = &longer;
		}
	}
}

/* Message by message: the most that leave, or enter, one unit of ranks. */
static long long count_crossing(const struct gf_cost_round *round, int unit)
{
	int span = round->stride * round->factor, r, next;
	long long in[64] = {0}, out[64] = {0}, most = 0;

	for (r = 0; r < round->ranks; r++) {
		next = r + round->stride;
		if (next / span != r / span)
			next -= span;
		if (r % round->stride >= round->active || next >= round->ranks ||
		    next / unit == r / unit)
			continue;
		out[r / unit]++;
		in[next / unit]++;
	}
	for (r = 0; r < 64; r++)
		most = fmax(most, fmax(in[r], out[r]));
	return most;
}

static void try_round(struct gf_cost_round round)
{
	static const struct gf_link_cost links[] = {{1, 0, 0}, {2, 1, 0}};
	int unit;

	for (unit = 1; unit <= round.ranks; unit++) {
		const struct gf_cost_net net = {2, &unit, links};
		struct gf_link_cost got = gf_cost_link(&net, &round, 1);
		long long want = count_crossing(&round, unit);

		/* units as large as all ranks have no level above them */
		EXPECT(got.beta_s_per_byte == (double)want && got.alpha_s == (want ? 2 : 1),
		       "%d ranks, %d of each %d groups of %d, units of %d: want %lld on a link, "
		       "got %g",
		       round.ranks, round.active, round.stride, round.factor, unit, want,
		       got.beta_s_per_byte);
	}
}

/* Groups that lie across units and do not fill the ranks among them. */
static void test_crossing(void)
{
	struct gf_cost_round r;

	for (r.ranks = 1; r.ranks <= 40; r.ranks++)
		for (r.stride = 1; r.stride <= r.ranks; r.stride++)
			for (r.factor = 1; r.factor * r.stride < r.ranks + 2 * r.stride; r.factor++)
				for (r.active = 1; r.active <= r.stride;
				     r.active += 1 + r.stride / 4)
					try_round(r);
}

/* A round ends with its slowest message, which may be a near one. */
static void test_slow_inside(void)
{
	static const int sizes[] = {2, 2, 1, 4};
	static const struct gf_link_cost links[] = {{1, 1, 0}, {250, 1, 0}, {900, 1, 0}, {3, 1, 0}};
	static const struct gf_cost_net net = {4, sizes, links};
	static const struct {
		const char *what;
		struct gf_cost_round round;
		double alpha_s;
	} cases[] = {
		{"ring of all", {16, 1, 16, 1}, 250},
		{"ring of half", {16, 1, 8, 1}, 250},
		{"same places of hosts", {16, 2, 2, 2}, 250},
		{"pairs inside", {16, 1, 2, 1}, 1},
		{"across the outermost", {16, 4, 4, 4}, 3},
		{"across it, far", {16, 8, 2, 8}, 3},
		{"nobody", {16, 16, 1, 16}, 1},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_link_cost got = gf_cost_link(&net, &cases[i].round, 1);

		EXPECT(got.alpha_s == cases[i].alpha_s, "%s: alpha %g", cases[i].what, got.alpha_s);
	}
}

/* tests/data/vectors.md, BlueConnect: 192 ranks, 100 MB. The ring's figure there, 111.4 ms, takes
 * every hop to go as fast as the slowest. Hop by hop it is two laps less two hops inside a host: a
 * lap has 144 hops at 32 GB/s and 48 at 12.5, of 520,833 bytes and 250 us each:
 * 2 (144 * 266.276 + 48 * 291.667 - 266.276) us = 104.155 ms. */
static void test_blueconnect_figures(void)
{
	static const int by_level[] = {4, 16, 3}, by_host[] = {4, 48};
	static const struct {
		const char *algorithm;
		const int *factors;
		size_t nfactors;
		double want_ms;
	} cases[] = {
		{"blueconnect", by_level, 3, 24.4},
		{"blueconnect", by_host, 2, 44.9},
		{"hierarchical", by_host, 2, 51.0},
		{"ring", NULL, 0, 104.155},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_coll_args args = {
			.ranks = 192,
			.count_elems = 100000000,
			.elem_bytes = 1,
			.factors = cases[i].factors,
			.nfactors = cases[i].nfactors,
		};
		double got = gf_algorithm_find(cases[i].algorithm)->cost(&args, &cluster).s;

		EXPECT(fabs(got * 1e3 - cases[i].want_ms) <= printed_ms,
		       "%s of %zu factors: want %.1f ms, got %.4f", cases[i].algorithm,
		       cases[i].nfactors, cases[i].want_ms, got * 1e3);
	}
}

/* By which algorithm a stage of blueconnect costs less. */
static void test_stages(void)
{
	static const int factors[] = {4, 16, 3};
	/* 16 hosts of 2 in one group: both send the same over the network, a ring at once, halving
	 * after a round inside the host */
	static const int one[] = {1, 32};
	static const int hosts[] = {2, 16};
	static const struct gf_link_cost slow[] = {{1e-6, 1e-9, 0}, {1e-6, 1e-8, 0}};
	static const struct gf_cost_net ethernet = {2, hosts, slow};
	static const struct {
		const struct gf_cost_net *net;
		int ranks;
		size_t count;
		const int *factors;
		size_t nfactors, stage;
		bool halving;
	} cases[] = {
		{&cluster, 192, 25000000, factors, 3, 0, true},
		{&cluster, 192, 25000000, factors, 3, 1, true},
		{&ethernet, 32, 25000000, one, 2, 1, false},
		{&ethernet, 32, 32, one, 2, 1, true},
	};
	const struct gf_algorithm *a = gf_algorithm_find("blueconnect");
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const char *names[] = {"ring", "ring", "ring"};
		struct gf_coll_args args = {
			.ranks = cases[i].ranks,
			.count_elems = cases[i].count,
			.elem_bytes = 4,
			.factors = cases[i].factors,
			.nfactors = cases[i].nfactors,
			.stage_algorithms = names,
		};
		double ring = a->cost(&args, cases[i].net).s, halving;

		names[cases[i].stage] = "halving";
		halving = a->cost(&args, cases[i].net).s;
		EXPECT(cases[i].halving ? halving < ring : ring < halving,
		       "case %zu: ring %g s, halving %g s", i, ring, halving);
	}
}

/* "7", "7/8": moves *text past it. */
static double read_ratio(char **text)
{
	double of = strtod(*text, text);

	return **text == '/' ? of / strtod(*text + 1, text) : of;
}

/* "cost RANKS WORDS: A B C", as tests/entries/README has it. */
static void expect_formula(const struct gf_algorithm *a, char *line)
{
	static const struct gf_link_cost link = {3e-5, 8e-9, 2e-10};
	static const struct gf_cost_net net = {1, NULL, &link};
	struct gf_coll_args args = {.count_elems = 720720, .elem_bytes = 4};
	char *at = line + strlen("cost "), *numbers = strchr(line, ':'), *word;
	const double bytes = 4 * 720720;
	int factors[8];
	double want, got;

	EXPECT(numbers, "%s: %s", a->name, line);
	if (!numbers)
		return;
	*numbers++ = '\0';
	args.ranks = (int)strtol(at, &at, 10);
	while ((word = strsep(&at, " "))) {
		if (strcmp(word, "reduce-scatter") == 0)
			args.half = GF_COLL_REDUCE_SCATTER;
		else if (strcmp(word, "all-gather") == 0)
			args.half = GF_COLL_ALL_GATHER;
		else if (strcmp(word, "servers") == 0 && at)
			args.servers = (int)strtol(at, &at, 10);
		else if (strcmp(word, "factors") == 0)
			for (args.factors = factors; at && *at && args.nfactors < 8;)
				factors[args.nfactors++] = (int)strtol(at, &at, 10);
		else
			EXPECT(!*word, "%s: %s: no such word", a->name, word);
	}
	want = link.alpha_s * read_ratio(&numbers);
	want += bytes * link.beta_s_per_byte * read_ratio(&numbers);
	want += bytes * link.gamma_s_per_byte * read_ratio(&numbers);
	got = a->cost(&args, &net).s;
	EXPECT(fabs(got - want) <= exact * want, "%s p %d: want %.12g, got %.12g", a->name,
	       args.ranks, want, got);
	args.count_elems = 0;
	EXPECT(a->cost(&args, &net).s == 0, "%s of nothing", a->name);
}

/* The headers' formulas where everything divides: every algorithm has one. */
static void test_formulas(void)
{
	size_t i;

	for (i = 0; gf_algorithms[i]; i++) {
		char *text = entry_lines("algorithm", gf_algorithms[i]->name), *line, *rest = text;
		size_t n = 0;

		while ((line = strsep(&rest, "\n")))
			if (strncmp(line, "cost ", strlen("cost ")) == 0) {
				expect_formula(gf_algorithms[i], line);
				n++;
			}
		EXPECT(n || !entry_is_wanted(gf_algorithms[i]->name),
		       "tests/entries/algorithm/%s.txt: want a cost", gf_algorithms[i]->name);
		free(text);
	}
}

/* gTop-k section IV: 100 MiB at density .001, Table I. */
static void test_sparse_figures(void)
{
	static const struct gf_link_cost ethernet = {0.436e-3, 9e-9, 0};
	static const struct gf_cost_net net = {1, NULL, &ethernet};
	static const struct {
		int ranks;
		double topk_ms, gtopk_ms;
	} cases[] = {
		{8, 14.520, 13.941},
		{32, 60.69, 23.23},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_coll_args args = {
			.ranks = cases[i].ranks,
			.count_elems = (size_t)cases[i].ranks,
			.elem_bytes = 2 * 104857,
		};
		double got = gf_sparse_find("gather")->cost(&args, &net).s;

		EXPECT(fabs(got * 1e3 - cases[i].topk_ms) <= printed_ms / 10, "gather p %d: %.4f ms",
		       args.ranks, got * 1e3);
		args.count_elems = 1;
		got = gf_sparse_find("gtopk")->cost(&args, &net).s;
		EXPECT(fabs(got * 1e3 - cases[i].gtopk_ms) <= printed_ms / 10,
		       "gtopk p %d: %.4f ms", args.ranks, got * 1e3);
	}
}

/* 10^5 ranks, on levels that no group fits. */
static void test_many_ranks(void)
{
	static const int sizes[] = {8, 5, 2500};
	static const struct gf_cost_net net = {3, sizes, cluster_links};
	static const int factors[] = {16, 25, 250};
	struct gf_coll_args args = {
		.ranks = 100000,
		.count_elems = 25000000,
		.elem_bytes = 4,
		.factors = factors,
		.nfactors = 3,
	};
	size_t i;

	for (i = 0; gf_algorithms[i]; i++) {
		double got = gf_algorithms[i]->cost(&args, &net).s;

		EXPECT(got > 0.005 && got < 1e4, "%s: %g s", gf_algorithms[i]->name, got);
	}
}

int main(void)
{
	test_links();
	test_lines();
	test_crossing();

	test_slow_inside();
	test_blueconnect_figures();
	test_stages();
	test_formulas();
	test_sparse_figures();
	test_many_ranks();
	return TEST_END();
}
