/* SPDX-License-Identifier: BSD-3-Clause */
/* The verifier must refuse what is wrong, and say what. */
#include <errno.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/algorithm.h"
#include "collectives/verify.h"
#include "test.h"

enum { RANKS = 4, ELEMS = 8 };

static void build(struct gf_schedule *s, enum gf_coll_half half)
{
	struct gf_coll_args args = {
		.ranks = RANKS,
		.count_elems = ELEMS,
		.elem_bytes = 4,
		.half = half,
	};
	int rank;

	for (rank = 0; rank < RANKS; rank++)
		if (gf_algorithm_schedule(gf_algorithm_find("ring"), &args, rank, &s[rank], NULL))
			abort();
}

static void release(struct gf_schedule *s)
{
	int rank;

	for (rank = 0; rank < RANKS; rank++)
		gf_schedule_release(&s[rank]);
}

/* Takes a step out, renumbers the messages after it, derives again. */
static void drop(struct gf_schedule *s, size_t step)
{
	struct gf_step gone = s->steps[step];
	size_t i;

	s->nsteps--;
	memmove(&s->steps[step], &s->steps[step + 1], (s->nsteps - step) * sizeof(*s->steps));
	for (i = step; i < s->nsteps; i++)
		if (s->steps[i].peer == gone.peer &&
		    (s->steps[i].op == GF_STEP_SEND) == (gone.op == GF_STEP_SEND))
			s->steps[i].match--;
	gf_schedule_finish(s);
}

/*
 * Ring, p = 4, n = 8: steps 0..5 are send and recv-reduce in turn, 6..11 send and recv; rank r
 * sends to r + 1, part k is data[2k..2k+2).
 */
static void nothing(struct gf_schedule *s)
{
	(void)s;
}

static void drop_send(struct gf_schedule *s)
{
	drop(&s[1], 4);
}

static void drop_receive(struct gf_schedule *s)
{
	drop(&s[2], 11);
}

static void drop_both(struct gf_schedule *s)
{
	/* rank 0's last all-gather message to rank 1: part 2 */
	drop(&s[0], 10);
	drop(&s[1], 11);
}

static void drop_reduction(struct gf_schedule *s)
{
	/* rank 0's first message to rank 1: its own share of part 3 */
	drop(&s[0], 0);
	drop(&s[1], 1);
}

static void swap_peers(struct gf_schedule *s)
{
	s[3].steps[2].peer = 1;
}

static void to_itself(struct gf_schedule *s)
{
	s[3].steps[2].peer = 3;
}

static void peer_outside(struct gf_schedule *s)
{
	s[0].steps[1].peer = RANKS;
}

static void swap_matches(struct gf_schedule *s)
{
	/* the first two messages of rank 2 change places */
	s[2].steps[0].match = 1;
	s[2].steps[2].match = 0;
}

static void same_match(struct gf_schedule *s)
{
	s[2].steps[2].match = 0;
}

static void drop_dependency(struct gf_schedule *s)
{
	/* the second send no longer waits for the first reduction */
	s[1].steps[2].ndeps = 0;
}

static void drop_write_after_read(struct gf_schedule *s)
{
	/* step 7 overwrites part 3, which step 2 of rank 0 sends */
	s[0].steps[7].ndeps = 0;
}

static void forward_dependency(struct gf_schedule *s)
{
	s[1].deps[s[1].steps[2].first_dep] = 2;
}

static void reduce_twice(struct gf_schedule *s)
{
	/* rank 2 adds the finished sum of part 1 instead of taking it */
	size_t i;

	for (i = 6; i < s[2].nsteps; i++)
		if (s[2].steps[i].op == GF_STEP_RECV && s[2].steps[i].range.first == 2)
			s[2].steps[i].op = GF_STEP_RECV_REDUCE;
	gf_schedule_finish(&s[2]);
}

static void overwrite(struct gf_schedule *s)
{
	s[1].steps[1].op = GF_STEP_RECV;
	gf_schedule_finish(&s[1]);
}

static void short_send(struct gf_schedule *s)
{
	s[0].steps[0].range.count = 1;
	gf_schedule_finish(&s[0]);
}

static void empty(struct gf_schedule *s)
{
	s[0].steps[0].range.count = 0;
}

static void outside(struct gf_schedule *s)
{
	s[0].steps[0].range.first = ELEMS - 1;
}

static void far_outside(struct gf_schedule *s)
{
	s[0].steps[0].range.first = SIZE_MAX;
}

static void no_scratch(struct gf_schedule *s)
{
	s[0].steps[0].range.buffer = GF_BUFFER_SCRATCH;
	s[0].steps[0].range.first = 0;
}

static void unwritten_scratch(struct gf_schedule *s)
{
	no_scratch(s);
	s[0].scratch_elems = ELEMS;
	gf_schedule_finish(&s[0]);
}

static void other_elements(struct gf_schedule *s)
{
	/* rank 0 sends part 2 in place of part 3 */
	s[0].steps[0].range.first = 4;
	gf_schedule_finish(&s[0]);
}

static void misplaced(struct gf_schedule *s)
{
	/* the last all-gather round: rank 2 passes part 3 on as part 0 */
	s[2].steps[10].range.first = 6;
	gf_schedule_finish(&s[2]);
}

/* A finished schedule takes steps again: its counters are what it has. */
static void reopen(struct gf_schedule *s)
{
	uint32_t i;

	s->nsent = gf_xcalloc((size_t)s->ranks, sizeof(*s->nsent));
	s->nreceived = gf_xcalloc((size_t)s->ranks, sizeof(*s->nreceived));
	for (i = 0; i < s->nsteps; i++) {
		const struct gf_step *step = &s->steps[i];

		if (step->peer < 0)
			continue;
		if (step->op == GF_STEP_SEND)
			s->nsent[step->peer]++;
		else
			s->nreceived[step->peer]++;
	}
}

/* Every rank keeps a copy of its own part 0 before anything else. */
static struct gf_range keep_first(struct gf_schedule *s)
{
	struct gf_range keep = gf_schedule_scratch(s, 2);
	struct gf_step copy;

	reopen(s);
	gf_schedule_copy(s, keep, gf_data(0, 2));
	copy = s->steps[s->nsteps - 1];
	memmove(&s->steps[1], &s->steps[0], (s->nsteps - 1) * sizeof(*s->steps));
	s->steps[0] = copy;
	return keep;
}

static void other_order(struct gf_schedule *s)
{
	/* rank 0 replaces part 0's sum by one of its own: (0+2)+1)+3 where the
	 * ring adds ((1+2)+3)+0 */
	struct gf_range keep;
	int rank;

	for (rank = 1; rank < RANKS; rank++) {
		keep = keep_first(&s[rank]);
		gf_schedule_send(&s[rank], 0, keep);
		gf_schedule_finish(&s[rank]);
	}
	keep = keep_first(&s[0]);
	gf_schedule_recv_reduce(&s[0], 2, keep);
	gf_schedule_recv_reduce(&s[0], 1, keep);
	gf_schedule_recv_reduce(&s[0], 3, keep);
	gf_schedule_copy(&s[0], gf_data(0, 2), keep);
	gf_schedule_finish(&s[0]);
}

static void same_order(struct gf_schedule *s)
{
	/* the same sum with every pair of operands the other way round:
	 * 0 + (3 + (2 + 1)) */
	struct gf_range keep[RANKS];
	int rank;

	for (rank = 0; rank < RANKS; rank++)
		keep[rank] = keep_first(&s[rank]);
	for (rank = 1; rank < RANKS; rank++) {
		struct gf_range sum = gf_schedule_scratch(&s[rank], 2);

		if (rank == 1) {
			gf_schedule_send(&s[1], 2, keep[1]);
			continue;
		}
		gf_schedule_recv(&s[rank], rank - 1, sum);
		gf_schedule_reduce(&s[rank], keep[rank], sum);
		gf_schedule_send(&s[rank], (rank + 1) % RANKS, keep[rank]);
	}
	gf_schedule_recv(&s[0], 3, gf_data(0, 2));
	gf_schedule_reduce(&s[0], gf_data(0, 2), keep[0]);
	for (rank = 0; rank < RANKS; rank++)
		gf_schedule_finish(&s[rank]);
}

static void deadlock(struct gf_schedule *s)
{
	/* everyone waits for the message from the left before sending any */
	int rank;

	for (rank = 0; rank < RANKS; rank++) {
		struct gf_step send = s[rank].steps[0];

		s[rank].steps[0] = s[rank].steps[1];
		s[rank].steps[1] = send;
		s[rank].steps[1].after = 1;
		gf_schedule_finish(&s[rank]);
	}
}

static void other_rank(struct gf_schedule *s)
{
	s[1].rank = 2;
}

static void other_length(struct gf_schedule *s)
{
	s[3].count_elems = ELEMS + 1;
}

static void other_contributors(struct gf_schedule *s)
{
	s[3].contributors = 3;
}

static void copy_onto_itself(struct gf_schedule *s)
{
	gf_schedule_copy(&s[0], gf_data(0, 4), gf_data(3, 4));
	gf_schedule_finish(&s[0]);
}

static void copy_lengths(struct gf_schedule *s)
{
	gf_schedule_copy(&s[0], gf_data(0, 4), gf_data(4, 4));
	s[0].steps[s[0].nsteps - 1].from.count = 3;
	gf_schedule_finish(&s[0]);
}

static void owned_twice(struct gf_schedule *s)
{
	s[2].owned[0].first = 3;
}

static void owned_not(struct gf_schedule *s)
{
	s[2].owned[0].count = 1;
}

static void owned_outside(struct gf_schedule *s)
{
	s[3].owned[0].count = 3;
}

static void unfinished(struct gf_schedule *s)
{
	/* the last message from rank 0 to rank 1 does not take place */
	drop(&s[0], 4);
	drop(&s[1], 5);
}

static void not_ours(struct gf_schedule *s)
{
	/* rank 0 gathers from what it does not own */
	s[0].steps[0].range.first = 2;
	gf_schedule_finish(&s[0]);
}

static const struct {
	const char *what;
	enum gf_coll_half half;
	void (*mutate)(struct gf_schedule *s);
	const char *want; /* NULL: passes */
} cases[] = {
	{"a ring", GF_COLL_WHOLE, nothing, NULL},
	{"its first half", GF_COLL_REDUCE_SCATTER, nothing, NULL},
	{"its second half", GF_COLL_ALL_GATHER, nothing, NULL},
	{"the same sums, operands exchanged", GF_COLL_WHOLE, same_order, NULL},
	{"a dropped send", GF_COLL_WHOLE, drop_send,
	 "rank 1 sends 5 messages to rank 2, which receives 6"},
	{"a dropped receive", GF_COLL_WHOLE, drop_receive,
	 "rank 1 sends 6 messages to rank 2, which receives 5"},
	{"a dropped all-gather message", GF_COLL_WHOLE, drop_both,
	 "rank 1 data[4] lacks rank 2's contribution"},
	{"a dropped reduction", GF_COLL_WHOLE, drop_reduction,
	 "rank 0 data[6] lacks rank 0's contribution"},
	{"swapped peers", GF_COLL_WHOLE, swap_peers,
	 "rank 3 sends 5 messages to rank 0, which receives 6"},
	{"a message to itself", GF_COLL_WHOLE, to_itself,
	 "rank 3 step 2: want a peer among 4 ranks, got 3"},
	{"a peer that is not there", GF_COLL_WHOLE, peer_outside,
	 "rank 0 step 1: want a peer among 4 ranks, got 4"},
	{"swapped messages", GF_COLL_WHOLE, swap_matches,
	 "rank 3 step 1 adds element 0 to element 2"},
	{"two messages of one number", GF_COLL_WHOLE, same_match,
	 "message 1 from rank 2 to 3 is numbered 0 and 1"},
	{"a dropped dependency", GF_COLL_WHOLE, drop_dependency,
	 "rank 1 steps 1 and 2 both touch data[6] in no order"},
	{"a dropped write after read", GF_COLL_WHOLE, drop_write_after_read,
	 "rank 0 steps 0 and 7 both touch data[6] in no order"},
	{"a dependency on what comes later", GF_COLL_WHOLE, forward_dependency,
	 "rank 1 step 2 depends on step 2, which is not before it"},
	{"a contribution twice", GF_COLL_WHOLE, reduce_twice,
	 "rank 0 data[2] counts rank 2's contribution twice"},
	{"a share overwritten", GF_COLL_WHOLE, overwrite,
	 "rank 0 data[6] lacks rank 1's contribution"},
	{"a short message", GF_COLL_WHOLE, short_send,
	 "rank 0 step 0 sends 1 elements to rank 1, whose step 1 receives 2"},
	{"an empty range", GF_COLL_WHOLE, empty, "rank 0 step 0 has an empty range"},
	{"a range over the end", GF_COLL_WHOLE, outside,
	 "rank 0 step 0 touches data[7..9) of 8 elements"},
	{"a range far over the end", GF_COLL_WHOLE, far_outside,
	 "rank 0 step 0 touches data[18446744073709551615..1) of 8 elements"},
	{"no scratch", GF_COLL_WHOLE, no_scratch,
	 "rank 0 step 0 touches scratch[0..2) of 0 elements"},
	{"scratch never written", GF_COLL_WHOLE, unwritten_scratch,
	 "rank 0 step 0 reads scratch[0], never written"},
	{"other elements sent", GF_COLL_WHOLE, other_elements,
	 "rank 1 step 1 adds element 4 to element 6"},
	{"elements in the wrong place", GF_COLL_WHOLE, misplaced,
	 "rank 3 data[0] ends with element 6"},
	{"another order of summation", GF_COLL_WHOLE, other_order,
	 "data[0]: rank 1 adds in another order than rank 0"},
	{"a circle of waiting", GF_COLL_WHOLE, deadlock,
	 "rank 0 step 0 (receive from rank 3) waits for ever"},
	{"another rank's schedule", GF_COLL_WHOLE, other_rank,
	 "want the schedule of rank 1 of 4, got rank 2 of 4"},
	{"another length", GF_COLL_WHOLE, other_length,
	 "rank 3 sums 9 elements of 4 ranks, rank 0 8 of 4"},
	{"other contributors", GF_COLL_WHOLE, other_contributors,
	 "rank 3 sums 8 elements of 3 ranks, rank 0 8 of 4"},
	{"a copy onto itself", GF_COLL_WHOLE, copy_onto_itself,
	 "rank 0 step 12 takes elements from where it writes"},
	{"a copy of another length", GF_COLL_WHOLE, copy_lengths,
	 "rank 0 step 12 takes 4 elements from 3"},
	{"a part owned twice", GF_COLL_REDUCE_SCATTER, owned_twice,
	 "rank 2's piece: want one from element 4 on of 8, got [3..5)"},
	{"a part owned by nobody", GF_COLL_ALL_GATHER, owned_not,
	 "rank 3's piece: want one from element 5 on of 8, got [6..8)"},
	{"a part outside", GF_COLL_ALL_GATHER, owned_outside, "rank 3's piece: want one from element 6 on of 8, got [6..9)"},
	{"an unfinished reduce-scatter", GF_COLL_REDUCE_SCATTER, unfinished,
	 "rank 1 data[2] lacks rank 0's contribution"},
	{"an unfinished all-gather", GF_COLL_ALL_GATHER, unfinished,
	 "rank 1 data[4] was never written"},
	{"gathering what is not owned", GF_COLL_ALL_GATHER, not_ours,
	 "rank 0 step 0 reads data[2], never written"},
};

int main(void)
{
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_schedule s[RANKS];
		struct gf_error err = {"(passed)"};
		int rc;

		build(s, cases[i].half);
		cases[i].mutate(s);
		rc = gf_verify(s, RANKS, cases[i].half, &err);
		EXPECT(rc == (cases[i].want ? -EINVAL : 0), "%s: %d", cases[i].what, rc);
		if (cases[i].want && strcmp(err.text, cases[i].want)) {
			printf("in case \"%s\":\n", cases[i].what);
			EXPECT_TEXT(err.text, cases[i].want);
		}
		release(s);
	}
	return TEST_END();
}
