/* SPDX-License-Identifier: BSD-3-Clause */
/* Proofs of schedules before they run: what is at fault is refused, and named, on all ranks; the
 * rest is a line each. */
#include <errno.h>

#include "base/array.h"
#include "profiler/contest/allreduce.h"
#include "collectives/prove.h"
#include "ranks.h"

enum { RANKS = 4, ELEMS = 8 };

/*
 * A ring of 4 ranks and 8 elements: steps 0..5 send and add in turn, 6..11 send and receive; rank r
 * sends to r + 1; part k is data[2k..2k+2).
 */
static const struct fault {
	const char *what;
	void (*put)(struct gf_schedule *s); /* into the schedule of any rank */
	const char *want;                   /* NULL: there is none */
} * fault;

/* Rank 1 takes rank 0's share of part 3 in place of its own. */
static void leave_out(struct gf_schedule *s)
{
	if (s->rank != 1)
		return;
	s->steps[1].op = GF_STEP_RECV;
	gf_schedule_finish(s);
}

/* Rank 2 adds the finished sum of part 1 to what it has of it. */
static void add_twice(struct gf_schedule *s)
{
	if (s->rank != 2)
		return;
	s->steps[7].op = GF_STEP_RECV_REDUCE;
	gf_schedule_finish(s);
}

static void race(struct gf_schedule *s)
{
	if (s->rank == 1)
		s->steps[2].ndeps = 0;
}

static void leave_range(struct gf_schedule *s)
{
	if (s->rank == 3)
		s->steps[0].range.first = ELEMS - 1;
}

static void leave_ranks(struct gf_schedule *s)
{
	if (s->rank == 3)
		s->steps[0].peer = RANKS;
}

/* All wait for their left neighbour before they send. */
static void wait_in_a_circle(struct gf_schedule *s)
{
	struct gf_step send = s->steps[0];

	s->steps[0] = s->steps[1];
	s->steps[1] = send;
	s->steps[1].after = 1;
	gf_schedule_finish(s);
}

static void nothing(struct gf_schedule *s)
{
	(void)s;
}

static const struct fault faults[] = {
	{"none", nothing, NULL},
	{"a contribution is missing", leave_out, "rank 0 data[6] lacks rank 1's contribution"},
	{"a contribution counts twice", add_twice,
	 "rank 0 data[2] counts rank 2's contribution twice"},
	{"a race", race, "rank 1 steps 1 and 2 both touch data[6] in no order"},
	{"a step out of the message", leave_range,
	 "rank 3 step 0 touches data[7..9) of 8 elements"},
	{"a step to a rank that is not there", leave_ranks,
	 "rank 3 step 0: want a peer among 4 ranks, got 4"},
	{"a circle of waiting", wait_in_a_circle,
	 "rank 0 step 0 (receive from rank 3) waits for ever"},
};

static int build(void *ctx, int rank, struct gf_schedule *s, struct gf_error *err)
{
	const struct gf_coll_args *args = ctx;
	int rc = gf_algorithm_schedule(gf_algorithm_find("ring"), args, rank, s, err);

	if (!rc)
		fault->put(s);
	return rc;
}

static void test_faults(void)
{
	struct gf_coll_args args = {.ranks = RANKS, .count_elems = ELEMS, .elem_bytes = 4};
	struct gf_way way = {.algorithm = gf_algorithm_find("ring")};
	char line[256];

	for (fault = faults; fault < faults + GF_ARRAY_LENGTH(faults); fault++) {
		struct gf_text out = {0};
		struct gf_error err = {""};
		size_t steps = 77;
		int rc = gf_prove(RANKS, GF_COLL_WHOLE, build, &args, &steps, &err);

		EXPECT(rc == (fault->want != NULL), "%s: %d", fault->what, rc);
		EXPECT(steps == (fault->want ? 77 : 48), "%s: %zu steps", fault->what, steps);
		EXPECT_TEXT(err.text, fault->want ? fault->want : "");
		rc = gf_prove_line(&way, &args, "f32", build, &args, &out, &err);
		EXPECT(rc == (fault->want != NULL), "%s: %d", fault->what, rc);
		snprintf(line, sizeof(line), "ring, 8 elements, f32, 4 ranks%s",
			 fault->want ? ": "
				     : ": 48 steps, every contribution exactly once, no race, no "
				       "deadlock\n");
		if (fault->want) {
			strcat(line, fault->want);
			EXPECT_TEXT(err.text, line);
			EXPECT(!out.data, "%s", out.data);
		} else {
			EXPECT_TEXT(out.data, line);
			/* the same words are not proved twice */
			EXPECT(!gf_prove_line(&way, &args, "f32", NULL, NULL, &out, &err), "%s",
			       err.text);
			EXPECT_TEXT(out.data, line);
		}
		gf_text_release(&out);
	}
}

static int refuse(void *ctx, int rank, struct gf_schedule *s, struct gf_error *err)
{
	(void)ctx;
	(void)s;
	return gf_error_set(err, -EINVAL, "rank %d: refused", rank);
}

static void test_bounds(void)
{
	struct gf_coll_args args = {.ranks = 2, .count_elems = 1 << 20, .elem_bytes = 4};
	struct gf_way way = {.algorithm = gf_algorithm_find("ring")};
	struct gf_text out = {0};
	struct gf_error err = {""};
	size_t steps;

	EXPECT(gf_prove(2, GF_COLL_WHOLE, refuse, NULL, &steps, &err) == -EINVAL, "%s", err.text);
	EXPECT_TEXT(err.text, "rank 0: refused");
	EXPECT(gf_prove(GF_PROVE_RANKS_MOST + 1, GF_COLL_WHOLE, refuse, NULL, &steps, &err) ==
		       -ENOTSUP,
	       "%s", err.text);
	EXPECT_TEXT(err.text, "want at most 256 ranks for a proof, got 257");
	args.segment_elems = 2;
	EXPECT(gf_prove_line(&way, &args, "f32", NULL, NULL, &out, &err) == -ENOTSUP, "%s",
	       err.text);
	EXPECT_TEXT(err.text, "ring, 1048576 elements, f32, 2 ranks, segments of 2: want at most "
			      "1000000 steps of all ranks for a proof, got more");
	gf_text_release(&out);
}

/* --- before a measurement ------------------------------------------------- */

/* Rank 1 takes what rank 0 has, and rank 0 nothing. */
static void build_faulty(const struct gf_coll_args *args, int rank, struct gf_schedule *s)
{
	const struct gf_range all = gf_data(0, args->count_elems);

	if (rank == 0)
		gf_schedule_send(s, 1, all);
	else
		gf_schedule_recv(s, 0, all);
}

static const struct gf_algorithm faulty = {.name = "faulty", .build = build_faulty};

static void contest_on(struct gf_comm *c, void *ctx)
{
	const bool at_fault = ctx;
	struct gf_text proofs = {0};
	const struct gf_contest_allreduce_config config = {
		.comm = c,
		.element = gf_element_number(GF_F32, GF_OP_SUM),
		.lanes = 2,
		.repeats = 2,
		.checks = 1,
		.timeout_s = TEST_PATIENCE_S,
		.proofs = &proofs,
	};
	struct gf_way ways[] = {{.algorithm = gf_algorithm_find("ring")},
				{.algorithm = at_fault ? &faulty : NULL}};
	struct gf_contest_row rows[2];
	struct gf_contest_allreduce *b = NULL;
	struct gf_error err = {""};
	int rc = gf_contest_allreduce_open(&config, 100, &b, &err);

	EXPECT(rc == 0, "%s", err.text);
	rc = gf_contest_allreduce_size(b, ways, 2, 100, rows, &err);
	EXPECT(rc == at_fault && !c->broken, "%d: %s", rc, err.text);
	if (at_fault) {
		EXPECT_TEXT(err.text, "rank 0: faulty, 100 elements, f32, 2 ranks, segments of "
				      "14336: rank 0 data[0] lacks rank 1's contribution");
		/* and the ranks are still together */
		ways[1] = ways[0];
		rc = gf_contest_allreduce_size(b, ways, 2, 50, rows, &err);
		EXPECT(rc == 0, "%s", err.text);
	} else {
		EXPECT(rows[1].way.algorithm->build, "chosen: %s", rows[1].way.algorithm->name);
	}
	/* both messages of a contestant have the same schedule */
	EXPECT(!proofs.data == (c->rank > 0), "lines on rank 0 alone");
	EXPECT(c->rank || !strncmp(proofs.data, "ring, 100 elements", 18), "%s", proofs.data);
	gf_contest_allreduce_close(b);
	gf_text_release(&proofs);
}

int main(void)
{
	watchdog(120);
	test_faults();
	test_bounds();
	on_ranks(2, contest_on, NULL);
	on_ranks(2, contest_on, (void *)"faulty");
	return TEST_END();
}
