/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/algorithm.h"
#include "collectives/verify.h"
#include "collectives/way.h"
#include "documents/algorithm_traits.h"
#include "entry_facts.h"
#include "layouts.h"
#include "test.h"

static const int ranks_list[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
				 12, 13, 14, 15, 16, 17, 24, 32, 48, 64, 96};

/* Sizes as a factor and a term of p: 0, 1, p - 1, p, p + 1, odd, large. */
static const struct {
	size_t times, plus;
	int minus;
} sizes[] = {
	{0, 0, 0}, {0, 1, 0}, {1, 0, 1}, {1, 0, 0}, {1, 1, 0}, {0, 37, 0}, {0, 301, 0}, {20, 5, 0},
};

/* 0: whole; 1 and 7 cut everything; 100 leaves most whole. */
static const size_t segments[] = {0, 1, 7, 100};

static struct gf_schedule *build_all(const struct gf_algorithm *a, const struct gf_coll_args *args,
				     struct gf_error *err)
{
	struct gf_schedule *s = gf_xcalloc((size_t)args->ranks, sizeof(*s));
	int rank;

	for (rank = 0; rank < args->ranks; rank++)
		if (gf_algorithm_schedule(a, args, rank, &s[rank], err)) {
			while (rank-- > 0)
				gf_schedule_release(&s[rank]);
			free(s);
			return NULL;
		}
	return s;
}

static void free_all(struct gf_schedule *s, int ranks)
{
	int rank;

	for (rank = 0; rank < ranks; rank++)
		gf_schedule_release(&s[rank]);
	free(s);
}

static void verify_half(const struct gf_algorithm *a, const struct gf_coll_args *args,
			const char *owners)
{
	struct gf_error err = {""};
	struct gf_schedule *s = build_all(a, args, &err);

	EXPECT(s, "%s p %d: %s", a->name, args->ranks, err.text);
	if (!s)
		return;
	EXPECT(!gf_verify(s, args->ranks, args->half, &err),
	       "%s half %d p %d n %zu segment %zu owners %s lossy %d: %s", a->name, (int)args->half,
	       args->ranks, args->count_elems, args->segment_elems, owners, args->lossy, err.text);
	free_all(s, args->ranks);
}

/* Each half, with the algorithm's own parts and with those of callers. */
static void verify(const struct gf_algorithm *a, struct gf_coll_args *args)
{
	size_t i;

	args->half = GF_COLL_WHOLE;
	if (args->copies < 2)
		verify_half(a, args, "none");
	if (!a->owned)
		return;
	for (args->half = GF_COLL_REDUCE_SCATTER; args->half <= GF_COLL_ALL_GATHER; args->half++) {
		verify_half(a, args, "its own");
		for (i = 0; i < GF_ARRAY_LENGTH(layouts) && args->ranks <= 9; i++) {
			struct gf_layout owners = layout_of(layouts[i].write, gf_coll_sharers(args),
							    args->count_elems);

			args->owners = &owners;
			args->lossy = !args->segment_elems;
			verify_half(a, args, layouts[i].name);
			args->owners = NULL;
			args->lossy = false;
			free((void *)owners.pieces);
		}
	}
}

static size_t size_of(size_t n, int ranks)
{
	return sizes[n].times * (size_t)ranks + sizes[n].plus - (size_t)sizes[n].minus;
}

static void test_verified(void)
{
	size_t i, p, n, g;

	for (i = 0; gf_algorithms[i]; i++) {
		if (!gf_algorithms[i]->build || !entry_is_wanted(gf_algorithms[i]->name))
			continue;
		for (p = 0; p < GF_ARRAY_LENGTH(ranks_list); p++)
			for (n = 0; n < GF_ARRAY_LENGTH(sizes); n++)
				for (g = 0; g < GF_ARRAY_LENGTH(segments); g++) {
					int ranks = ranks_list[p];
					struct gf_coll_args args = {
						.ranks = ranks,
						.count_elems = size_of(n, ranks),
						.elem_bytes = 4,
						.segment_elems = segments[g],
					};

					/* of the large ones: whole, and one in segments */
					if (ranks > 17 && g && (g != 2 || n != 6))
						continue;
					if (ranks > 48 && n == 7)
						continue;
					if (!test_tries(p + n + g, 2))
						continue;
					verify(gf_algorithms[i], &args);
				}
	}
}

/* Every way to write p as a product of two, whole and in segments. */
static void test_two_factors(void)
{
	static const char *const names[] = {"blueconnect", "hierarchical"};
	size_t i, p, n;
	int d;

	for (i = 0; i < GF_ARRAY_LENGTH(names); i++)
		for (p = 0; p < GF_ARRAY_LENGTH(ranks_list); p++)
			for (d = 1; d <= ranks_list[p]; d++)
				for (n = 0; n < GF_ARRAY_LENGTH(sizes); n++) {
					int ranks = ranks_list[p];
					int factors[] = {d, ranks / d};
					struct gf_coll_args args = {
						.ranks = ranks,
						.count_elems = size_of(n, ranks),
						.elem_bytes = 4,
						.factors = factors,
						.nfactors = 2,
					};

					if (ranks % d || (ranks > 17 && n != 2 && n != 6) ||
					    !test_tries(p + n + (size_t)d, 2))
						continue;
					verify(gf_algorithm_find(names[i]), &args);
					args.segment_elems = 5;
					if (ranks <= 12)
						verify(gf_algorithm_find(names[i]), &args);
					/* halves within groups of d ranks */
					args.copies = ranks / d;
					if (ranks <= 16 && args.copies > 1 && d > 1 &&
					    gf_algorithm_has(names[i], GF_ALGORITHM_COPIES))
						verify(gf_algorithm_find(names[i]), &args);
				}
}

static void test_stages(void)
{
	static const struct {
		int factors[4];
		const char *stages[4];
	} cases[] = {
		{{3, 2, 2}, {NULL}},
		{{2, 2, 3}, {NULL}},
		{{1, 12, 1}, {NULL}},
		{{4, 16, 3}, {NULL}},
		{{4, 4, 4}, {"ring", "ring", "ring"}},
		{{4, 4, 4}, {"halving", "ring", "halving"}},
		{{8, 3, 2, 2}, {"shm", "ring", "nccl", "halving"}},
		{{16, 6}, {"halving", "ring"}},
		{{5, 7}, {"nccl", "shm"}},
	};
	size_t i, k, n;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		for (n = 0; n < GF_ARRAY_LENGTH(sizes); n++) {
			struct gf_coll_args args = {
				.ranks = 1,
				.elem_bytes = 4,
				.factors = cases[i].factors,
			};

			for (k = 0; k < 4 && cases[i].factors[k]; k++)
				args.ranks *= cases[i].factors[k];
			args.nfactors = k;
			args.count_elems = size_of(n, args.ranks);
			if (cases[i].stages[0])
				args.stage_algorithms = cases[i].stages;
			verify(gf_algorithm_find("blueconnect"), &args);
		}
}

static void test_servers(void)
{
	int ranks, servers;
	size_t n;

	for (ranks = 2; ranks <= 12; ranks++)
		for (servers = 1; servers < ranks; servers++)
			for (n = 0; n < GF_ARRAY_LENGTH(sizes); n++) {
				struct gf_coll_args args = {
					.ranks = ranks,
					.count_elems = size_of(n, ranks),
					.elem_bytes = 4,
					.servers = servers,
				};

				if (!test_tries((size_t)ranks + (size_t)servers + n, 2))
					continue;
				verify(gf_algorithm_find("ps"), &args);
				args.segment_elems = 11;
				verify(gf_algorithm_find("ps"), &args);
			}
}

/* Sparse sets: slots gathered from all ranks, and the tree of merges. */
static void test_sparse(void)
{
	size_t p;

	for (p = 0; p < GF_ARRAY_LENGTH(ranks_list); p++) {
		struct gf_coll_args args = {
			.ranks = ranks_list[p],
			.count_elems = (size_t)ranks_list[p],
			.elem_bytes = 800,
			.half = GF_COLL_ALL_GATHER,
		};
		struct gf_error err = {""};
		struct gf_schedule *s;

		s = build_all(gf_sparse_find("gather"), &args, &err);
		EXPECT(s && !gf_verify(s, args.ranks, GF_COLL_ALL_GATHER, &err), "gather p %d: %s",
		       args.ranks, err.text);
		free_all(s, args.ranks);
		args.count_elems = 1;
		args.half = GF_COLL_WHOLE;
		s = build_all(gf_sparse_find("gtopk"), &args, &err);
		EXPECT(s && !gf_verify(s, args.ranks, GF_COLL_WHOLE, &err), "gtopk p %d: %s",
		       args.ranks, err.text);
		free_all(s, args.ranks);
	}
}

static void test_sparse_refused(void)
{
	struct gf_coll_args args = {.ranks = 4, .count_elems = 3};
	struct gf_error err = {""};
	struct gf_schedule s;

	EXPECT(gf_algorithm_schedule(gf_sparse_find("gather"), &args, 0, &s, &err) == -EINVAL,
	       "gather");
	EXPECT_TEXT(err.text, "gather: want one slot per rank (4), got 3");
	EXPECT(gf_algorithm_schedule(gf_sparse_find("gtopk"), &args, 0, &s, &err) == -EINVAL,
	       "gtopk");
	EXPECT_TEXT(err.text, "gtopk: want one set per rank, got 3");
	args.copies = 2;
	args.half = GF_COLL_REDUCE_SCATTER;
	EXPECT(gf_algorithm_schedule(gf_algorithm_find("ring"), &args, 0, &s, &err) == -ENOTSUP &&
		       gf_algorithm_schedule(gf_algorithm_find("blueconnect"), &args, 0, &s,
					     &err) == -EINVAL,
	       "copies without stages");
	EXPECT_TEXT(err.text, "factors: want inner ones whose product is the 2 ranks of a copy");
	args.copies = 0;
	args.half = GF_COLL_ALL_GATHER;
	EXPECT(gf_algorithm_schedule(gf_sparse_find("gtopk"), &args, 0, &s, &err) == -ENOTSUP,
	       "no halves");
	EXPECT(!gf_algorithm_find("gather") && !gf_sparse_find("ring"), "tables");
}

/* The two halves of an entry say the same. */
static void test_traits(void)
{
	const struct gf_algorithm *const *a;

	for (a = gf_algorithms; *a; a++) {
		EXPECT(!((*a)->traits & GF_ALGORITHM_SETS), "%s: sets", (*a)->name);
		EXPECT(!((*a)->traits & GF_ALGORITHM_HALVES) == !(*a)->owned, "%s: halves",
		       (*a)->name);
		EXPECT(!((*a)->traits & GF_ALGORITHM_ENCODED) == !(*a)->build, "%s: encoded",
		       (*a)->name);
		EXPECT(!((*a)->traits & GF_ALGORITHM_SAME_BITS) == !(*a)->build, "%s: same bits",
		       (*a)->name);
		EXPECT((*a)->traits & GF_ALGORITHM_LEVELS ||
			       !((*a)->traits & (GF_ALGORITHM_STAGES | GF_ALGORITHM_TWO_LEVELS)),
		       "%s: levels", (*a)->name);
	}
	for (a = gf_sparse_algorithms; *a; a++)
		EXPECT(gf_algorithm_has((*a)->name, GF_ALGORITHM_SETS | GF_ALGORITHM_SAME_BITS),
		       "%s: sets", (*a)->name);
	EXPECT(!gf_algorithm_has("carrier-pigeon", GF_ALGORITHM_ENCODED) &&
		       gf_algorithm_has("ring", GF_ALGORITHM_ENCODED | GF_ALGORITHM_HALVES) &&
		       !gf_algorithm_has("tree", GF_ALGORITHM_ENCODED | GF_ALGORITHM_HALVES),
	       "all of several traits");
}

/* A plan's message becomes a schedule's arguments. */
static void test_way_of_message(void)
{
	static const struct {
		const char *algorithm, *stages[2];
		int factors[2];
		size_t nstages;
		int servers, want_servers, rc;
		const char *text;
	} cases[] = {
		{"ring", {NULL}, {0}, 0, 0, 0, 0, NULL},
		{"ring", {NULL}, {0}, 0, 1, 0, 0, NULL},
		{"ps", {NULL}, {0}, 0, 1, 1, 0, NULL},
		{"blueconnect", {"shm", "ring"}, {2, 4}, 2, 0, 0, 0, NULL},
		{"hierarchical", {"ring", "ring"}, {4, 2}, 2, 0, 0, 0, NULL},
		{"pigeon",
		 {NULL},
		 {0},
		 0,
		 0,
		 0,
		 -ENOTSUP,
		 "this build has no algorithm \"pigeon\""},
		{"blueconnect",
		 {"ring", "star"},
		 {2, 4},
		 2,
		 0,
		 0,
		 -EINVAL,
		 "stage 1: want ring, halving, shm, mpi or nccl, got \"star\""},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_stage stages[2] = {{0}};
		struct gf_message m = {
			.algorithm = (char *)cases[i].algorithm,
			.stages = stages,
			.nstages = cases[i].nstages,
		};
		struct gf_error err = {""};
		struct gf_coll_args args;
		struct gf_way way;

		for (k = 0; k < m.nstages; k++) {
			stages[k].factor = cases[i].factors[k];
			stages[k].algorithm = (char *)cases[i].stages[k];
		}
		EXPECT(gf_way_of_message(&m, &way, &err) == cases[i].rc, "row %zu: %s", i,
		       err.text);
		if (cases[i].rc) {
			EXPECT_TEXT(err.text, cases[i].text);
			continue;
		}
		way.servers = cases[i].servers;
		args = gf_way_args(&way, 8);
		EXPECT(way.algorithm == gf_algorithm_find(m.algorithm) && args.ranks == 8 &&
			       args.servers == cases[i].want_servers &&
			       args.nfactors == m.nstages && !args.factors == !m.nstages &&
			       !args.stage_algorithms == !m.nstages,
		       "row %zu", i);
		for (k = 0; k < args.nfactors; k++)
			EXPECT(args.factors[k] == stages[k].factor &&
				       !strcmp(args.stage_algorithms[k], stages[k].algorithm),
			       "row %zu, stage %zu", i, k);
	}
}

/* The worked table of ring.c's header. */
static void test_ring_table(void)
{
	static const int sent[4][6] = {
		{3, 2, 1, 0, 3, 2},
		{0, 3, 2, 1, 0, 3},
		{1, 0, 3, 2, 1, 0},
		{2, 1, 0, 3, 2, 1},
	};
	struct gf_coll_args args = {.ranks = 4, .count_elems = 4, .elem_bytes = 4};
	struct gf_error err = {""};
	struct gf_schedule *s = build_all(gf_algorithm_find("ring"), &args, &err);
	size_t i, k;
	int rank;

	for (rank = 0; rank < 4; rank++)
		for (i = k = 0; i < s[rank].nsteps; i++) {
			const struct gf_step *step = &s[rank].steps[i];

			if (step->op != GF_STEP_SEND)
				continue;
			EXPECT((int)step->range.first == sent[rank][k] &&
				       step->peer == (rank + 1) % 4,
			       "rank %d round %zu: %zu to %d", rank, k, step->range.first,
			       step->peer);
			k++;
		}
	free_all(s, 4);
}

/* tests/data/vectors.md, BlueConnect: 12 = 3 x 2 x 2. */
static void test_blueconnect_vector(void)
{
	static const int factors[] = {3, 2, 2};
	static const size_t want_owned[] = {0, 4, 8, 2, 6, 10, 1, 5, 9, 3, 7, 11};
	static const int want_groups[3][12] = {
		/* the first rank of each rank's group */
		{0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9},
		{0, 1, 2, 0, 1, 2, 6, 7, 8, 6, 7, 8},
		{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5},
	};
	struct gf_coll_args args = {
		.ranks = 12,
		.count_elems = 12,
		.elem_bytes = 4,
		.factors = factors,
		.nfactors = 3,
	};
	const struct gf_algorithm *a = gf_algorithm_find("blueconnect");
	struct gf_error err = {""};
	struct gf_schedule *s = build_all(a, &args, &err);
	size_t i;
	int rank;

	for (rank = 0; rank < 12; rank++) {
		struct gf_range owned = a->owned(&args, rank);

		EXPECT(owned.first == want_owned[rank] && owned.count == 1, "rank %d owns %zu+%zu",
		       rank, owned.first, owned.count);
		for (i = 0; i < s[rank].nsteps; i++) {
			const struct gf_step *step = &s[rank].steps[i];
			const int *groups = want_groups[step->stage];

			EXPECT(groups[step->peer] == groups[rank], "rank %d stage %d meets rank %d",
			       rank, step->stage, step->peer);
		}
	}
	free_all(s, 12);
}

/* Senders, receivers and parts, round after round, as in the headers' tables.
 */
static void expect_sends(const char *name, int ranks, size_t elems, const char *const *want)
{
	struct gf_coll_args args = {.ranks = ranks, .count_elems = elems, .elem_bytes = 4};
	struct gf_error err = {""};
	struct gf_schedule *s = build_all(gf_algorithm_find(name), &args, &err);
	int rank;
	size_t i;

	for (rank = 0; rank < ranks; rank++) {
		char got[256] = "";

		for (i = 0; i < s[rank].nsteps; i++) {
			const struct gf_step *step = &s[rank].steps[i];

			if (step->op == GF_STEP_SEND)
				sprintf(got + strlen(got), "%s%zu+%zu>%d", got[0] ? " " : "",
					step->range.first, step->range.count, step->peer);
		}
		EXPECT_TEXT(got, want[rank]);
	}
	free_all(s, ranks);
}

/* As the entries' files have them (tests/entries/README). */
static void test_tables(void)
{
	size_t i;

	for (i = 0; gf_algorithms[i]; i++) {
		char *text = entry_lines("algorithm", gf_algorithms[i]->name), *line, *rest = text;
		const char *rows[16];
		int ranks, rank;
		size_t elems;

		while ((line = strsep(&rest, "\n"))) {
			if (sscanf(line, "sends %d %zu", &ranks, &elems) != 2)
				continue;
			for (rank = 0; rank < ranks && rank < 16; rank++)
				rows[rank] = rest ? strsep(&rest, "\n") : "";
			expect_sends(gf_algorithms[i]->name, ranks, elems, rows);
		}
		free(text);
	}
}

/* In segments, a host's ranks go through the parts of the message in the order in which the
 * master's ring sends them first, and has them last. */
static void test_turns(void)
{
	enum { PARTS = 4, PART = 40 };
	int factors[] = {3, PARTS}, rank;
	struct gf_coll_args args = {
		.ranks = 3 * PARTS,
		.count_elems = PARTS * PART,
		.elem_bytes = 4,
		.segment_elems = 4,
		.factors = factors,
		.nfactors = 2,
	};
	struct gf_error err = {""};
	struct gf_schedule *s = build_all(gf_algorithm_find("hierarchical"), &args, &err);

	for (rank = 0; rank < args.ranks; rank++) {
		int turn[] = {1, 0, 0}, place = rank / 3;
		size_t i;

		for (i = 0; i < s[rank].nsteps; i++) {
			const struct gf_step *step = &s[rank].steps[i];
			int part = (int)(step->range.first / PART);
			int *at = &turn[step->stage];
			int now = (place + 2 * PARTS - *at) % PARTS;

			if (step->stage == 1)
				continue;
			if (part != now)
				now = (place + 2 * PARTS - ++*at) % PARTS;
			EXPECT(part == now, "rank %d, stage %d, turn %d: %d", rank, step->stage,
			       *at, part);
		}
		EXPECT(turn[0] == PARTS && turn[2] == PARTS - 1, "rank %d: %d and %d turns", rank,
		       turn[0], turn[2]);
	}
	free_all(s, args.ranks);
}

/* What linear costs, rank by rank: the way to rank 0, and at the end what leaves the units that
 * rank 0 is in. */
static double linear_s(const struct gf_cost_net *net, int ranks, double bytes)
{
	struct gf_cost_round all = {ranks, 1, ranks, 1};
	double total = gf_cost_link(net, &all, bytes).alpha_s, most = 0;
	long long unit = 1;
	size_t i;
	int rank;

	for (rank = 1; rank < ranks; rank++) {
		struct gf_cost_round one = {rank + 1, rank, 2, 1};
		struct gf_link_cost link = gf_cost_link(net, &one, bytes);

		total += gf_cost_send_reduce(&link, bytes).s;
	}
	for (i = 0; i < net->nlevels && unit < ranks; i++) {
		double beta = net->links[i].beta_s_per_byte * (double)(ranks - unit);

		most = beta > most ? beta : most;
		unit *= i + 1 < net->nlevels ? net->sizes[i] : ranks;
	}
	return total + most * bytes;
}

/* And for as many ranks as there may be it takes no longer to say. */
static void test_linear_cost(void)
{
	static const struct gf_link_cost links[] = {{1, 8, 2}, {10, 4, 1}, {100, 64, 3}};
	static const int units[][3] = {{8, 4, 2}, {1, 3, 5}, {4, 1, 1}};
	const struct gf_algorithm *a = gf_algorithm_find("linear");
	size_t levels, i;
	int ranks;

	for (i = 0; i < GF_ARRAY_LENGTH(units); i++) {
		for (levels = 1; levels <= 3; levels++) {
			struct gf_cost_net net = {levels, units[i], links};

			for (ranks = 2; ranks <= 70; ranks++) {
				struct gf_coll_args args = {
					.ranks = ranks, .count_elems = 3, .elem_bytes = 4};

				EXPECT_NEAR(a->cost(&args, &net).s, linear_s(&net, ranks, 12), 1e-9,
					    "%d ranks, %zu levels", ranks, levels);
			}
		}
	}
	for (ranks = 1 << 10; ranks <= 1 << 24; ranks *= 2) {
		struct gf_cost_net net = {2, units[0], links + 1};
		struct gf_coll_args args = {.ranks = ranks, .count_elems = 1, .elem_bytes = 1};

		EXPECT_NEAR(a->cost(&args, &net).s,
			    7 * 15. + (ranks - 8) * 167. + 100 + 64. * (ranks - 8), 1e-9,
			    "%d ranks", ranks);
	}
}

/* Where two ranks meet. */
static double latency_s(const struct gf_cost_net *net, int a, int b)
{
	size_t i;

	for (i = 0; i + 1 < net->nlevels; i++) {
		a /= net->sizes[i];
		b /= net->sizes[i];
		if (a == b)
			break;
	}
	return net->links[i].alpha_s;
}

/* Round by round: in round k, min(k, p - k, u) messages out of u ranks. The last rank takes one
 * from each other, after the latency of its way. */
static double direct_s(const struct gf_cost_net *net, int ranks, double bytes)
{
	double total = 0, most = 0, alpha = 0, gamma = 0, beta;
	size_t i;
	int k, unit;

	for (k = 1; k < ranks; k++) {
		beta = 0;
		total += latency_s(net, ranks - 1, k - 1);
		for (i = 0, unit = 1; i < net->nlevels && unit < ranks; i++) {
			const struct gf_link_cost *l = &net->links[i];
			int sharing = k < ranks - k ? k : ranks - k;

			sharing = sharing < unit ? sharing : unit;
			beta = fmax(beta, l->beta_s_per_byte * sharing);
			most = fmax(most, l->beta_s_per_byte * unit * (ranks - unit));
			alpha = fmax(alpha, l->alpha_s);
			gamma = fmax(gamma, l->gamma_s_per_byte);
			unit *= i + 1 < net->nlevels ? net->sizes[i] : ranks;
		}
		total += beta * bytes;
	}
	return total + alpha + (ranks - 1) * gamma * bytes + most * bytes;
}

/* And for as many ranks as there may be it takes no longer to say. */
static void test_direct_cost(void)
{
	static const struct gf_link_cost links[] = {
		{1, 8, 3}, {10, 4, 3}, {100, 64, 3}, {100, 1, 3}};
	static const int units[][4] = {{8, 4, 2, 1}, {1, 3, 5, 2}, {4, 1, 1, 3}, {3, 2, 2, 2}};
	const struct gf_algorithm *a = gf_algorithm_find("direct");
	size_t levels, i, from;
	int ranks;

	for (i = 0; i < GF_ARRAY_LENGTH(units); i++)
		for (from = 0; from < 4; from++)
			for (levels = 1; levels <= 4 - from; levels++)
				for (ranks = 2; ranks <= 70; ranks++) {
					struct gf_cost_net net = {levels, units[i], links + from};
					struct gf_coll_args args = {.ranks = ranks,
								    .count_elems = (size_t)ranks,
								    .elem_bytes = 4};

					EXPECT_NEAR(a->cost(&args, &net).s,
						    direct_s(&net, ranks, 4), 1e-9,
						    "%d ranks, levels %zu + %zu", ranks, from,
						    levels);
				}
	for (ranks = 1 << 10; ranks <= 1 << 24; ranks *= 2) {
		struct gf_cost_net net = {1, units[0], links};
		struct gf_coll_args args = {
			.ranks = ranks, .count_elems = (size_t)ranks, .elem_bytes = 1};

		EXPECT_NEAR(a->cost(&args, &net).s, ranks + (ranks - 1) * 19., 1e-9, "%d ranks",
			    ranks);
	}
}

int main(void)
{
	test_verified();
	test_two_factors();
	test_stages();
	test_servers();
	test_ring_table();
	test_tables();
	test_turns();
	test_linear_cost();
	test_direct_cost();
	test_blueconnect_vector();
	test_sparse();
	test_sparse_refused();
	test_traits();
	test_way_of_message();
	return TEST_END();
}
