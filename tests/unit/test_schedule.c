/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>

#include "base/array.h"
#include "base/rng.h"
#include "base/text.h"
#include "collectives/algorithm.h"
#include "collectives/schedule.h"
#include "test.h"

static void test_parts(void)
{
	static const struct {
		size_t first, count;
		int parts, index;
		size_t want_first, want_count;
	} cases[] = {
		{0, 12, 4, 0, 0, 3},     {0, 12, 4, 3, 9, 3}, {0, 10, 4, 0, 0, 3},
		{0, 10, 4, 1, 3, 3},     {0, 10, 4, 2, 6, 2}, {0, 10, 4, 3, 8, 2},
		{100, 10, 4, 2, 106, 2}, {0, 2, 5, 1, 1, 1},  {0, 2, 5, 2, 2, 0},
		{0, 2, 5, 4, 2, 0},      {7, 0, 3, 2, 7, 0},  {0, 9, 1, 0, 0, 9},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_range whole = gf_data(cases[i].first, cases[i].count);
		struct gf_range part = gf_range_part(whole, cases[i].parts, cases[i].index);

		EXPECT(part.first == cases[i].want_first && part.count == cases[i].want_count,
		       "case %zu: got %zu+%zu", i, part.first, part.count);
	}
}

/* One step per letter, over data[first, first + count) unless said otherwise: s send, r recv, R
 * recv-reduce; c copy and d reduce take from scratch[0..). */
struct step_case {
	char verb;
	size_t first, count;
	const char *want; /* its dependencies */
};

static void append(struct gf_schedule *s, const struct step_case *c)
{
	struct gf_range range = gf_data(c->first, c->count);
	struct gf_range scratch = {GF_BUFFER_SCRATCH, 0, c->count};

	switch (c->verb) {
	case 's':
		gf_schedule_send(s, 1, range);
		break;
	case 'r':
		gf_schedule_recv(s, 1, range);
		break;
	case 'R':
		gf_schedule_recv_reduce(s, 1, range);
		break;
	case 'c':
		gf_schedule_copy(s, range, scratch);
		break;
	case 'd':
		gf_schedule_reduce(s, range, scratch);
		break;
	case 'k':
		gf_schedule_copy(s, scratch, range);
		break;
	default:
		abort();
	}
}

static void test_dependencies(void)
{
	static const struct {
		const char *what;
		struct step_case steps[8];
	} cases[] = {
		{"readers do not wait for readers",
		 {{'s', 0, 4, ""}, {'s', 0, 4, ""}, {'s', 2, 4, ""}}},
		{"read after write", {{'r', 0, 4, ""}, {'s', 2, 1, "0"}}},
		{"write after read", {{'s', 0, 4, ""}, {'r', 3, 2, "0"}}},
		{"write after write", {{'r', 0, 4, ""}, {'r', 0, 4, "0"}}},
		{"neighbours do not touch", {{'r', 0, 4, ""}, {'r', 4, 4, ""}, {'s', 4, 4, "1"}}},
		{"a writer drops the writer that its reader waits for",
		 {{'r', 0, 4, ""}, {'s', 0, 4, "0"}, {'r', 0, 4, "1"}}},
		{"but not when another piece needs it",
		 {{'r', 0, 4, ""}, {'r', 4, 4, ""}, {'s', 0, 4, "0"}, {'r', 0, 8, "1 2"}}},
		{"all readers since the last writer",
		 {{'s', 0, 1, ""},
		  {'s', 1, 1, ""},
		  {'s', 0, 2, ""},
		  {'R', 0, 2, "0 1 2"},
		  {'s', 0, 1, "3"}}},
		{"a receive-and-reduce reads and writes",
		 {{'R', 0, 2, ""}, {'R', 0, 2, "0"}, {'s', 0, 2, "1"}}},
		{"pieces of one range",
		 {{'r', 0, 2, ""},
		  {'r', 2, 2, ""},
		  {'r', 4, 2, ""},
		  {'s', 1, 4, "0 1 2"},
		  {'s', 1, 1, "0"}}},
		{"copies and reductions through scratch",
		 {{'k', 0, 4, ""},
		  {'r', 0, 4, "0"},
		  {'d', 0, 2, "1"},
		  {'k', 2, 2, "2"},
		  {'c', 4, 4, "0 3"}}},
	};
	size_t i, k, d;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_schedule s;

		gf_schedule_init(&s, 0, 2, 16);
		gf_schedule_scratch(&s, 4);
		for (k = 0; k < 8 && cases[i].steps[k].verb; k++)
			append(&s, &cases[i].steps[k]);
		gf_schedule_finish(&s);
		EXPECT(s.nsteps == k, "%s", cases[i].what);
		for (k = 0; k < s.nsteps; k++) {
			char got[64] = "";

			for (d = 0; d < s.steps[k].ndeps; d++)
				sprintf(got + strlen(got), "%s%u", d ? " " : "",
					s.deps[s.steps[k].first_dep + d]);
			EXPECT(!strcmp(got, cases[i].steps[k].want),
			       "%s: step %zu: want \"%s\", got \"%s\"", cases[i].what, k,
			       cases[i].steps[k].want, got);
		}
		gf_schedule_release(&s);
	}
}

static void print_range(struct gf_text *t, struct gf_range range)
{
	gf_text_addf(t, "%s[%zu..%zu)", gf_buffer_name(range.buffer), range.first,
		     range.first + range.count);
}

static char *print_schedule(const struct gf_schedule *s)
{
	static const char *const names[] = {
		[GF_STEP_SEND] = "send",
		[GF_STEP_RECV] = "recv",
		[GF_STEP_RECV_REDUCE] = "recv-reduce",
		[GF_STEP_COPY] = "copy",
		[GF_STEP_REDUCE] = "reduce",
		[GF_STEP_ROUND] = "round",
	};
	struct gf_text t = {0};
	size_t i, k;

	gf_text_addf(&t, "rank %d of %d: %zu elements, %zu scratch\n", s->rank, s->ranks,
		     s->count_elems, s->scratch_elems);
	for (i = 0; i < s->nsteps; i++) {
		const struct gf_step *step = &s->steps[i];

		gf_text_addf(&t, "%4zu  stage %d  %-11s  ", i, step->stage, names[step->op]);
		print_range(&t, step->range);
		if (step->op == GF_STEP_COPY || step->op == GF_STEP_REDUCE) {
			gf_text_addf(&t, " from ");
			print_range(&t, step->from);
		} else if (step->peer >= 0) {
			gf_text_addf(&t, " %s %d #%u", step->op == GF_STEP_SEND ? "to" : "from",
				     step->peer, step->match);
		}
		for (k = 0; k < step->ndeps; k++)
			gf_text_addf(&t, "%s%u", k ? ", " : "  after ",
				     s->deps[step->first_dep + k]);
		gf_text_addf(&t, "\n");
	}
	return gf_text_take(&t);
}

static void test_verbs(void)
{
	struct gf_schedule s;
	struct gf_range scratch;
	char *text;

	gf_schedule_init(&s, 1, 3, 10);
	scratch = gf_schedule_scratch(&s, 4);
	EXPECT(gf_schedule_scratch(&s, 2).first == 4, "scratch grows");
	gf_schedule_send(&s, 0, gf_data(0, 4));
	gf_schedule_send(&s, 2, gf_data(0, 0)); /* nothing: not appended */
	gf_schedule_send(&s, 2, gf_data(4, 4));
	gf_schedule_stage(&s, 1);
	gf_schedule_send(&s, 0, gf_data(4, 4));
	gf_schedule_after(&s, 0);
	gf_schedule_recv(&s, 0, scratch);
	gf_schedule_reduce(&s, gf_data(0, 4), scratch);
	gf_schedule_recv_reduce(&s, 0, gf_data(0, 4));
	gf_schedule_copy(&s, gf_data(6, 4), scratch);
	gf_schedule_finish(&s);
	text = print_schedule(&s);
	EXPECT_TEXT(text,
		    "rank 1 of 3: 10 elements, 6 scratch\n"
		    "   0  stage 0  send         data[0..4) to 0 #0\n"
		    "   1  stage 0  send         data[4..8) to 2 #0\n"
		    "   2  stage 1  send         data[4..8) to 0 #1  after 0\n"
		    "   3  stage 1  recv         scratch[0..4) from 0 #0\n"
		    "   4  stage 1  reduce       data[0..4) from scratch[0..4)  after 0, 3\n"
		    "   5  stage 1  recv-reduce  data[0..4) from 0 #1"
		    "  after 4\n"
		    "   6  stage 1  copy         data[6..10) from scratch[0..4)  after 1, 2, 3\n");
	free(text);
	gf_schedule_release(&s);
	gf_schedule_release(&s);
	gf_schedule_release(NULL);
}

/* Random steps; every conflicting pair must be ordered, by brute force over the transitive closure,
 * and every dependency must have a reason. */
enum { STEPS = 60 };

static bool overlap(struct gf_range a, struct gf_range b)
{
	return a.count && b.count && a.buffer == b.buffer && a.first < b.first + b.count &&
	       b.first < a.first + a.count;
}

static bool conflict(const struct gf_step *a, const struct gf_step *b)
{
	bool a_writes = a->op != GF_STEP_SEND, b_writes = b->op != GF_STEP_SEND;

	return ((a_writes || b_writes) && overlap(a->range, b->range)) ||
	       (a_writes && overlap(a->range, b->from)) || (b_writes && overlap(a->from, b->range));
}

static void add_random(struct gf_schedule *s, struct gf_rng *rng)
{
	struct gf_range a = gf_data(gf_rng_below(rng, 24), 0), b;

	a.count = 1 + gf_rng_below(rng, 24 - a.first);
	b = (struct gf_range){GF_BUFFER_SCRATCH, gf_rng_below(rng, 8), a.count};
	switch (gf_rng_below(rng, 6)) {
	case 0:
		gf_schedule_send(s, 1, a);
		break;
	case 1:
		gf_schedule_recv(s, 1, a);
		break;
	case 2:
		gf_schedule_recv_reduce(s, 1, a);
		break;
	case 3:
		gf_schedule_copy(s, a, b);
		break;
	case 4:
		gf_schedule_reduce(s, b, a);
		break;
	default:
		gf_schedule_send(s, 1, b);
		break;
	}
}

static void check_random(const struct gf_schedule *s, unsigned seed)
{
	static bool before[STEPS][STEPS];
	size_t i, k, d;

	memset(before, 0, sizeof(before));
	for (i = 0; i < s->nsteps; i++) {
		for (d = 0; d < s->steps[i].ndeps; d++) {
			size_t dep = s->deps[s->steps[i].first_dep + d];

			EXPECT(conflict(&s->steps[dep], &s->steps[i]),
			       "seed %u: %zu needs not wait for %zu", seed, i, dep);
			before[dep][i] = true;
			for (k = 0; k < dep; k++)
				before[k][i] |= before[k][dep];
		}
		for (k = 0; k < i; k++)
			EXPECT(before[k][i] || !conflict(&s->steps[k], &s->steps[i]),
			       "seed %u: %zu must wait for %zu", seed, i, k);
	}
}

static void test_random(void)
{
	unsigned seed;
	int i;

	for (seed = 0; seed < 200; seed++) {
		struct gf_schedule s;
		struct gf_rng rng;

		gf_rng_init(&rng, seed, 0);
		gf_schedule_init(&s, 0, 2, 24);
		gf_schedule_scratch(&s, 32);
		for (i = 0; i < STEPS; i++)
			add_random(&s, &rng);
		gf_schedule_finish(&s);
		check_random(&s, seed);
		gf_schedule_release(&s);
	}
}

/* A long schedule stays linear: as many dependencies as its ranges ask for. */
static void test_long(void)
{
	const struct gf_algorithm *ring = gf_algorithm_find("ring");
	struct gf_coll_args args = {
		.ranks = 64,
		.count_elems = 64 * 400,
		.elem_bytes = 4,
		.segment_elems = 1,
	};
	struct gf_schedule s;
	struct gf_error err;

	EXPECT(!gf_algorithm_schedule(ring, &args, 5, &s, &err), "%s", err.text);
	EXPECT(s.nsteps == 4 * 63 * 400, "%zu", s.nsteps);
	EXPECT(s.ndeps < s.nsteps, "%zu", s.ndeps);
	gf_schedule_release(&s);
}

/* The last step of that kind and stage that a step waits for directly; the number of the step among
 * them, or -1. */
static int waits_for(const struct gf_schedule *s, const struct gf_step *step, bool send, int stage)
{
	int found = -1, number = 0;
	size_t i;
	uint32_t k;

	for (i = 0; i < s->nsteps; i++) {
		if (s->steps[i].stage != stage || (s->steps[i].op == GF_STEP_SEND) != send)
			continue;
		for (k = 0; k < step->ndeps; k++)
			if (s->deps[step->first_dep + k] == i)
				found = number;
		number++;
	}
	return found;
}

/* Of one rank: the outer stage's k-th send of its first part waits for the k-th segment that the
 * inner stage has reduced. On the way back the inner stage's sends wait for the incoming segments,
 * one after the other. */
static void check_order(const struct gf_schedule *s, int first_part)
{
	int sent = 0, last = -1, got;
	size_t i;

	for (i = 0; i < s->nsteps; i++) {
		const struct gf_step *step = &s->steps[i];

		if (step->op != GF_STEP_SEND)
			continue;
		if (step->stage == 1 && sent < first_part) {
			got = waits_for(s, step, false, 0);
			EXPECT(got == sent, "rank %d: send %d waits for %d", s->rank, sent, got);
			sent++;
		} else if (step->stage == 0 && sent) {
			got = waits_for(s, step, false, 1);
			EXPECT(got > last,
			       "rank %d: step %zu waits for %d "
			       "after %d",
			       s->rank, i, got, last);
			last = got;
		}
	}
	EXPECT(sent == first_part && last > 0, "rank %d: %d, %d", s->rank, sent, last);
}

static void test_order(void)
{
	enum { PART = 6 };
	static const struct {
		const char *outer;
		int hosts, first_part;
	} cases[] = {
		{"ring", 4, PART},
		{"ring", 3, PART},
		{"halving", 4, 2 * PART},
	};
	struct gf_schedule s;
	struct gf_error err;
	size_t c;
	int rank;

	for (c = 0; c < GF_ARRAY_LENGTH(cases); c++) {
		int factors[] = {2, cases[c].hosts};
		const char *stages[] = {"shm", cases[c].outer};
		struct gf_coll_args args = {
			.ranks = 2 * cases[c].hosts,
			.count_elems = (size_t)(2 * cases[c].hosts) * PART,
			.elem_bytes = 4,
			.segment_elems = 1,
			.factors = factors,
			.stage_algorithms = stages,
			.nfactors = 2,
		};

		for (rank = 0; rank < args.ranks; rank++) {
			EXPECT(!gf_algorithm_schedule(gf_algorithm_find("blueconnect"), &args, rank,
						      &s, &err),
			       "%s", err.text);
			check_order(&s, cases[c].first_part);
			gf_schedule_release(&s);
		}
	}
}

static void test_arguments(void)
{
	static const int three_two[] = {3, 2}, three_zero[] = {3, 0};
	static const int large[] = {1 << 30, 1 << 30, 1 << 30};
	static const char *const tree[] = {"ring", "tree"};
	static const char *const halving[] = {"halving", "ring"};
	static const struct {
		const char *algorithm;
		struct gf_coll_args args;
		int rank, rc;
		const char *want;
	} cases[] = {
		{"ring", {.ranks = 0}, 0, -EINVAL, "ranks: want 1 to 16777216, got 0"},
		{"ring", {.ranks = 4}, 4, -EINVAL, "rank: want 0 to 3, got 4"},
		{"ring",
		 {.ranks = 4, .servers = 4},
		 0,
		 -EINVAL,
		 "servers: want 0 to 3 of 4 ranks, got 4"},
		{"ring",
		 {.ranks = 4, .factors = three_two, .nfactors = 2},
		 0,
		 -EINVAL,
		 "factors: want a product of 4 (the ranks), got at "
		 "least 6"},
		{"ring",
		 {.ranks = 12, .factors = three_two, .nfactors = 2},
		 0,
		 -EINVAL,
		 "factors: want a product of 12 (the ranks), got 6"},
		{"ring",
		 {.ranks = 4, .factors = large, .nfactors = 3},
		 0,
		 -EINVAL,
		 "factors: want a product of 4 (the ranks), got at "
		 "least 1073741824"},
		{"ring",
		 {.ranks = 3, .factors = three_zero, .nfactors = 2},
		 0,
		 -EINVAL,
		 "factors: want integers >= 1, got 0"},
		{"ring",
		 {.ranks = 6, .factors = three_two, .stage_algorithms = tree, .nfactors = 2},
		 0,
		 -EINVAL,
		 "stage 1: want ring, halving, shm, mpi or nccl, got \"tree\""},
		{"ring",
		 {.ranks = 6, .factors = three_two, .stage_algorithms = halving, .nfactors = 2},
		 0,
		 -EINVAL,
		 "stage 0: halving wants a power of two, got factor 3"},
		{"library", {.ranks = 2}, 0, -ENOTSUP, "library has no steps of its own"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_error err = {""};
		struct gf_schedule s;
		int rc = gf_algorithm_schedule(gf_algorithm_find(cases[i].algorithm),
					       &cases[i].args, cases[i].rank, &s, &err);

		EXPECT(rc == cases[i].rc, "case %zu: %d", i, rc);
		EXPECT_TEXT(err.text, cases[i].want);
	}
	EXPECT(!gf_algorithm_find("rin"), "no such name");
}

int main(void)
{
	test_parts();
	test_dependencies();
	test_verbs();
	test_random();
	test_long();
	test_order();
	test_arguments();
	return TEST_END();
}
