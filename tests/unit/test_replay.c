/* SPDX-License-Identifier: BSD-3-Clause */

#include "base/array.h"
#include "base/heap.h"
#include "base/rng.h"
#include "collectives/algorithm.h"
#include "documents/algorithm_traits.h"
#include "simulator/prices/price.h"
#include "simulator/replay/fluid.h"
#include "simulator/replay/replay.h"
#include "test.h"

/* Sums of the same terms in another order. */
static const double exact = 1e-11;

#define LEVEL(size_, bandwidth, latency)                                                           \
	{                                                                                          \
		.name = "x", .size = (size_), .link = "x", .bandwidth_bytes_per_s = (bandwidth),   \
		.latency_s = (latency)                                                             \
	}

static void test_events(void)
{
	struct gf_events q = {0};
	struct gf_event event, last = {.at_s = -1};
	struct gf_rng rng;
	int i, round;

	EXPECT(!gf_events_first(&q) && !gf_events_take(&q, &event), "empty");
	gf_rng_init(&rng, 1, 0);
	for (i = 0; i < 1000; i++) /* ten times, a hundred events each */
		gf_events_add(&q, (struct gf_event){.at_s = (double)gf_rng_below(&rng, 10),
						    .id = (size_t)i});
	for (round = 0; gf_events_take(&q, &event); round++) {
		EXPECT(event.at_s > last.at_s || (event.at_s == last.at_s && event.id > last.id),
		       "event %zu at %g after %zu at %g", event.id, event.at_s, last.id, last.at_s);
		last = event;
	}
	EXPECT(round == 1000, "%d came out", round);
	gf_events_release(&q);
}

static const double reduce_s_per_byte = 2e-10;

/* The closed forms' view of a topology; the caller frees sizes and links. */
static struct gf_cost_net net_of(const struct gf_level *levels, size_t nlevels)
{
	struct gf_link_cost *links = gf_xcalloc(nlevels, sizeof(*links));
	int *sizes = gf_xcalloc(nlevels, sizeof(*sizes));
	size_t i;

	for (i = 0; i < nlevels; i++) {
		sizes[i] = (int)levels[i].size;
		links[i] = (struct gf_link_cost){
			.alpha_s = levels[i].latency_s,
			.beta_s_per_byte = 1 / levels[i].bandwidth_bytes_per_s,
			.gamma_s_per_byte = reduce_s_per_byte,
		};
	}
	return (struct gf_cost_net){nlevels, sizes, links};
}

/* Builds an algorithm's schedules for all ranks and replays them as one message, alone on the
 * levels. */
static int replay_alone(const struct gf_algorithm *a, const struct gf_coll_args *args,
			const struct gf_replay_input *on, double *end_s, struct gf_error *err)
{
	struct gf_schedule *s = gf_xcalloc((size_t)args->ranks, sizeof(*s));
	struct gf_replay_message message = {s, {.bytes = (double)args->elem_bytes}, 0};
	struct gf_replay_input in = *on;
	struct gf_replay_result result;
	int rank, rc = 0;

	in.ranks = args->ranks;
	in.messages = &message;
	in.nmessages = 1;
	for (rank = 0; !rc && rank < args->ranks; rank++)
		rc = gf_algorithm_schedule(a, args, rank, &s[rank], err);
	if (!rc)
		rc = gf_replay(&in, &result, err);
	if (!rc) {
		*end_s = result.end_s;
		gf_replay_result_release(&result);
	}
	for (rank = 0; rank < args->ranks; rank++)
		gf_schedule_release(&s[rank]);
	free(s);
	return rc;
}

/*
 * Replay against cost, one message and one segment. Where p (where ranks fold, the power of two
 * below) divides the message they are equal. Elsewhere parts differ by one element, and cost takes
 * the longer one in each round: replay may differ by so many elements' time. A message of fewer
 * elements than ranks takes fewer rounds where ranks were folded in, but never longer.
 */
enum { SLACK_ELEMS = 16, SLACK_ELEMS_SHORT = 32 };

static void compare_lines(const struct gf_algorithm *a, struct gf_coll_args *args,
			  const struct gf_level *levels, size_t nlevels,
			  const struct gf_cost_lines *lines)
{
	struct gf_cost_net net = net_of(levels, nlevels);
	struct gf_replay_input on = {.net = &net};
	struct gf_link_cost *links = (struct gf_link_cost *)net.links;
	size_t p = (size_t)args->ranks, n = args->count_elems, i;
	double element_s =
		(double)args->elem_bytes * (net.links[0].beta_s_per_byte + reduce_s_per_byte);
	double want, got = NAN, slack;
	struct gf_error err = {""};

	for (i = 0; lines && i < nlevels; i++) {
		links[i].larger = lines[i].larger;
		links[i].nlarger = lines[i].nlarger;
	}
	want = a->cost(args, &net).s;
	slack = exact * want;
	while (gf_algorithm_has(a->name, GF_ALGORITHM_FOLDS) && p & (p - 1))
		p &= p - 1;
	if (n < p)
		slack += SLACK_ELEMS_SHORT * element_s;
	else if (n % p)
		slack += SLACK_ELEMS * element_s;
	EXPECT(!replay_alone(a, args, &on, &got, &err), "%s: %s", a->name, err.text);
	EXPECT(got <= want + slack, "%s p %d n %zu: cost %.9g, replay %.9g", a->name, args->ranks,
	       n, want, got);
	if (n >= p || p == (size_t)args->ranks)
		EXPECT(got >= want - slack, "%s p %d n %zu: cost %.9g, replay %.9g", a->name,
		       args->ranks, n, want, got);
	free((void *)net.sizes);
	free((void *)net.links);
}

static void compare(const struct gf_algorithm *a, struct gf_coll_args *args,
		    const struct gf_level *levels, size_t nlevels)
{
	compare_lines(a, args, levels, nlevels, NULL);
}

/* Every algorithm and size, on the level as it is, and where larger messages start later: some go
 * faster then, and even larger ones slower. Costs do not fall, and no part of a message is as large
 * as a line begins with. */
static const struct gf_cost_line asks_first[] = {
	{1050, 9e-5, 8e-9, NULL},
	{18100, 4e-4, 6e-9, NULL},
	{200100, 4e-4, 9e-9, NULL},
};
static const struct gf_cost_lines uniform_lines[] = {
	{.larger = asks_first, .nlarger = GF_ARRAY_LENGTH(asks_first)}};

static void test_uniform(const struct gf_cost_lines *lines)
{
	static const struct gf_level net[] = {LEVEL(2, 1.25e8, 5e-5)};
	static const int ranks[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
				    12, 13, 14, 15, 16, 17, 24, 32, 48, 64, 96};
	size_t i, p, n;

	for (i = 0; gf_algorithms[i]; i++)
		for (p = 0; p < GF_ARRAY_LENGTH(ranks) && gf_algorithms[i]->build; p++) {
			size_t r = (size_t)ranks[p];
			size_t sizes[] = {0, 1, r - 1, r, r + 1, 37, 1001, r * 4800, 1000003};

			for (n = 0; n < GF_ARRAY_LENGTH(sizes); n++) {
				struct gf_coll_args args = {
					.ranks = ranks[p],
					.count_elems = sizes[n],
					.elem_bytes = 4,
				};

				compare_lines(gf_algorithms[i], &args, net, 1, lines);
				if (!gf_algorithms[i]->owned)
					continue;
				args.half = GF_COLL_REDUCE_SCATTER;
				compare_lines(gf_algorithms[i], &args, net, 1, lines);
				args.half = GF_COLL_ALL_GATHER;
				compare_lines(gf_algorithms[i], &args, net, 1, lines);
			}
		}
}

static void test_servers(void)
{
	static const struct gf_level net[] = {LEVEL(2, 1.25e8, 5e-5)};
	int ranks, servers;

	for (ranks = 2; ranks <= 9; ranks++)
		for (servers = 1; servers < ranks; servers++) {
			struct gf_coll_args args = {
				.ranks = ranks,
				.count_elems = (size_t)(ranks * servers) * 500,
				.elem_bytes = 4,
				.servers = servers,
			};

			if (servers > ranks - servers && servers % (ranks - servers))
				continue; /* workers unevenly loaded */
			compare(gf_algorithm_find("ps"), &args, net, 1);
		}
}

static void test_sparse(void)
{
	static const struct gf_level net[] = {LEVEL(2, 1.25e8, 5e-5)};
	int ranks;

	for (ranks = 1; ranks <= 33; ranks++) {
		struct gf_coll_args args = {
			.ranks = ranks,
			.count_elems = (size_t)ranks,
			.elem_bytes = 4000,
			.half = GF_COLL_ALL_GATHER,
		};

		compare(gf_sparse_find("gather"), &args, net, 1);
	}
}

static void test_levels(void)
{
	static const struct gf_cost_lines lines[] = {
		{.larger = asks_first + 1, .nlarger = 1},
		{.larger = asks_first, .nlarger = 3},
		{.larger = asks_first, .nlarger = 2},
	};
	static const struct {
		int factors[3];
		struct gf_level levels[3];
	} cases[] = {
		{{4, 16, 3},
		 {LEVEL(4, 32e9, 250e-6), LEVEL(16, 12.5e9, 250e-6), LEVEL(3, 200e9, 250e-6)}},
		{{2, 4}, {LEVEL(2, 8e9, 1e-6), LEVEL(4, 1.25e8, 5e-5)}},
		{{8, 3}, {LEVEL(8, 8e9, 1e-6), LEVEL(3, 1.25e9, 5e-5)}},
		{{6, 5}, {LEVEL(6, 8e9, 1e-6), LEVEL(5, 1.25e9, 5e-5)}},
		{{2, 3, 4}, {LEVEL(2, 8e9, 1e-6), LEVEL(3, 1.25e9, 5e-6), LEVEL(4, 2e9, 5e-5)}},
		/* an outer level that is the faster one */
		{{4, 4, 2}, {LEVEL(4, 1e9, 1e-6), LEVEL(4, 1e9, 1e-5), LEVEL(2, 64e9, 1e-5)}},
	};
	static const char *const everywhere[] = {"blueconnect"};
	static const char *const powers[] = {"rhd", "butterfly", "tree"};
	size_t i, k, nlevels;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_coll_args args = {.ranks = 1, .elem_bytes = 4};

		for (nlevels = 0; nlevels < 3 && cases[i].factors[nlevels]; nlevels++)
			args.ranks *= cases[i].factors[nlevels];
		args.count_elems = (size_t)args.ranks * 9600;
		args.factors = cases[i].factors;
		args.nfactors = nlevels;
		for (k = 0; k < GF_ARRAY_LENGTH(everywhere); k++) {
			compare(gf_algorithm_find(everywhere[k]), &args, cases[i].levels, nlevels);
			compare_lines(gf_algorithm_find(everywhere[k]), &args, cases[i].levels,
				      nlevels, lines);
		}
		for (k = 0; k < GF_ARRAY_LENGTH(powers); k++)
			if (!(args.ranks & (args.ranks - 1)))
				compare(gf_algorithm_find(powers[k]), &args, cases[i].levels,
					nlevels);
		/* the ring of masters meets one kind of link only with two levels: with three, its
		 * closed form is Eq. 4's upper bound */
		if (nlevels == 2)
			compare(gf_algorithm_find("hierarchical"), &args, cases[i].levels, nlevels);
	}
}

static double ring_s(size_t messages, size_t segment_elems, double gamma, const double *slowdown,
		     const double *late_s)
{
	static const int size = 8;
	const struct gf_link_cost link = {1e-3, 1e-6, gamma};
	const struct gf_cost_net net = {1, &size, &link};
	struct gf_coll_args args = {
		.ranks = 8,
		.count_elems = 80000,
		.elem_bytes = 1,
		.segment_elems = segment_elems,
	};
	struct gf_schedule s[8];
	struct gf_replay_message at_once[4];
	struct gf_replay_input in = {
		.ranks = 8,
		.net = &net,
		.messages = at_once,
		.nmessages = messages,
		.slowdown = slowdown,
		.late_s = late_s,
	};
	struct gf_replay_result result;
	double end_s;
	size_t i;
	int rank;

	for (rank = 0; rank < 8; rank++)
		if (gf_algorithm_schedule(gf_algorithm_find("ring"), &args, rank, &s[rank], NULL))
			abort();
	for (i = 0; i < messages; i++)
		at_once[i] = (struct gf_replay_message){s, {.bytes = 1}, 0};
	if (gf_replay(&in, &result, NULL))
		abort();
	end_s = result.end_s;
	gf_replay_result_release(&result);
	for (rank = 0; rank < 8; rank++)
		gf_schedule_release(&s[rank]);
	return end_s;
}

static void test_ring(void)
{
	static const double slow[] = {1, 1, 1, 3, 1, 1, 1, 1};
	static const double late[] = {0, 0, 0, 0, 0, 2, 0, 0};
	/* 14 rounds of 1 ms and 10 ms, 7 reductions of 5 ms */
	const double gamma = 5e-7, alone = 14 * 0.011 + 7 * 0.005;
	double got;

	EXPECT_NEAR(ring_s(1, 0, gamma, NULL, NULL), alone, exact, "alone");
	EXPECT_NEAR(ring_s(2, 0, 0, NULL, NULL), 14 * 0.021, exact,
		    "two at once: all bytes take twice as long");
	EXPECT_NEAR(ring_s(4, 0, 0, NULL, NULL), 14 * 0.041, exact, "four");
	got = ring_s(2, 0, gamma, NULL, NULL);
	EXPECT(got > 14 * 0.020 && got < 2 * alone, "one reduces while the other moves: %g", got);
	got = ring_s(1, 1000, gamma, NULL, NULL);
	EXPECT(got >= 14 * 0.010 && got < 14 * 0.010 + 0.02,
	       "segments hide reductions and latency: %g", got);
	/* all parts pass the slow rank: its link in each of 14 rounds */
	got = ring_s(1, 0, gamma, slow, NULL);
	EXPECT(got > 14 * 0.030 && got < 14 * 0.036 + 7 * 0.015, "a slow rank: %g", got);
	EXPECT_NEAR(ring_s(1, 0, gamma, NULL, late), 2 + alone, exact, "a late rank");
}

/* Several messages at once against one, on two hosts of four ranks. */
static void test_contention(void)
{
	static const int sizes[] = {4, 2};
	/* a fast host: what enters the outer level is what counts */
	static const struct gf_link_cost links[] = {{1e-9, 1e-12, 0}, {1e-9, 8e-9, 0}};
	const struct gf_cost_net net = {2, sizes, links};
	static const struct {
		const char *algorithm;
		int ranks, n;
		double want;
	} cases[] = {
		/* a ring fills the links in every round */
		{"ring", 8, 2, 2},
		{"ring", 8, 3, 3},
		/* one transfer at a time, and both messages' at the same */
		{"tree", 8, 2, 2},
		/* more steps than are replayed */
		{"ring", 100, 2, 0},
		{"ring", 1, 2, 0},
		{"library", 8, 2, 0},
	};
	struct gf_derived d;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_coll_args args = {.ranks = cases[i].ranks, .elem_bytes = 4};
		const struct gf_algorithm *a = gf_algorithm_find(cases[i].algorithm);
		const struct gf_derived_cost *c;

		d = (struct gf_derived){.lanes = 3};
		c = gf_derived_find(&d, a, &args, &net);
		EXPECT(!c->contention == (cases[i].want == 0), "case %zu: %s", i,
		       c->contention ? "known" : "unknown");
		EXPECT(!d.unknown == (cases[i].ranks < 100), "case %zu", i);
		EXPECT(c == gf_derived_find(&d, a, &args, &net), "case %zu: kept", i);
		if (c->contention)
			EXPECT_NEAR(gf_contention_gamma(c->contention, 1 << 20, cases[i].n),
				    cases[i].want, 1e-2, "case %zu", i);
		gf_derived_release(&d);
	}
	d.lanes = 1;
	EXPECT(!gf_derived_find(&d, gf_algorithm_find("ring"),
				&(struct gf_coll_args){.ranks = 8, .elem_bytes = 4}, &net)
			->contention,
	       "one lane");
	gf_derived_release(&d);
}

/* What shares replays makes none again, but counts them, and comes to the same. */
static void test_shared(void)
{
	static const int sizes[] = {2, 0};
	static const struct gf_link_cost links[] = {{1e-9, 1e-12, 0}, {1e-6, 8e-9, 0}};
	const struct gf_cost_net net = {2, sizes, links, NULL};
	const struct gf_coll_args args = {.ranks = 7, .count_elems = 13, .elem_bytes = 4};
	const struct gf_algorithm *a = gf_algorithm_find("ring");
	struct gf_replays replays = {0};
	struct gf_derived d[] = {
		{.lanes = 2}, {.lanes = 2, .replays = &replays}, {.lanes = 2, .replays = &replays}};
	const struct gf_derived_cost *c[GF_ARRAY_LENGTH(d)];
	size_t i, k, benches[GF_ARRAY_LENGTH(d)];
	double s[GF_ARRAY_LENGTH(d)];

	for (i = 0; i < GF_ARRAY_LENGTH(d); i++) {
		c[i] = gf_derived_find(&d[i], a, &args, &net);
		s[i] = gf_derived_message_s(&d[i], a, &args, &net, 52);
		benches[i] = replays.nbenches;
		EXPECT(d[i].nreplayed == d[0].nreplayed && s[i] == s[0] && s[i] > 0, "%zu", i);
		EXPECT(c[i]->nlines == c[0]->nlines && c[i]->nlines && c[i]->contention, "%zu", i);
		for (k = 0; k < c[i]->nlines; k++)
			EXPECT(c[i]->lines[k].startup_s == c[0]->lines[k].startup_s, "%zu", i);
	}
	EXPECT(benches[0] == 0 && benches[1] == 2 && benches[2] == 2, "%zu benches", benches[2]);
	for (i = 0; i < GF_ARRAY_LENGTH(d); i++)
		gf_derived_release(&d[i]);
	gf_replays_release(&replays);
}

int main(void)
{
	test_events();
	test_uniform(NULL);
	test_uniform(uniform_lines);
	test_servers();
	test_sparse();
	test_levels();
	test_ring();
	test_contention();
	test_shared();
	return TEST_END();
}
