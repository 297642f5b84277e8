/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLLECTIVES_SCHEDULE_H
#define GF_COLLECTIVES_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A collective as data: the steps one rank takes, over ranges of a buffer.
 *
 * An algorithm's build callback appends steps in program order with the verbs below and names no
 * dependencies: gf_schedule_finish derives them from the ranges (read after write, write after
 * read, write after write), so that steps without a conflict may run at the same time and in any
 * order. Four walkers read the result: verifier, simulator, MPI executor, NCCL executor.
 *
 * MATCHING. The k-th step that sends from rank A to rank B meets the k-th step at B that receives
 * from A, counted in program order; `match` is that k. Both must have the same count. Zero-length
 * steps are not appended at all.
 *
 * POSTING. A send starts when its dependencies are done, and ends when the peer has taken it: it
 * may wait until the receive is posted. A receive is posted when its dependencies are done. A
 * receive-and-reduce lands in private memory first: it is posted when each dependency is done or is
 * a send that has started (so that partners may exchange and keep the sum), and reduces when all
 * are done. A walker may post earlier, never later.
 *
 * CODECS. A lossy codec would leave the sender of a sum with other bits than its receivers. So
 * under such a codec (`lossy`) a send replaces its own range by the values that the receiver
 * decodes, and gf_schedule_finish counts the send as a writer. The sender's copy then has the bits
 * that were sent, and partners that exchange add the same two values. Encoding decoded values again
 * must give the same bytes, as it does for all codecs here. Blocks of a codec begin where the
 * message begins.
 *
 * CALLS. A step may hand a collective of a team of ranks to a library (MPI, NCCL), which moves data
 * as it likes. All members have the same calls in the same order, on the same ranges. Part `me` of
 * the range, as gf_range_part cuts it, is the member's own; the other parts are undefined after a
 * reduce-scatter. Executors alone ask for calls (gf_coll_args.calls): verifier and simulator walk
 * the ring that a call is taken for.
 *
 * UNITS. Ranges are in elements of the message's element type. DATA is the message itself
 * (count_elems), SCRATCH is private to the schedule (scratch_elems, grown by the verbs), never
 * initialised.
 */
enum gf_buffer { GF_BUFFER_DATA, GF_BUFFER_SCRATCH };
const char *gf_buffer_name(enum gf_buffer buffer); /* "data", "scratch" */

struct gf_range {
	enum gf_buffer buffer;
	size_t first, count; /* elements */
};

enum gf_step_op {
	GF_STEP_SEND,        /* range -> peer */
	GF_STEP_RECV,        /* peer -> range */
	GF_STEP_RECV_REDUCE, /* range = range + what peer sent */
	GF_STEP_COPY,        /* range = from */
	GF_STEP_REDUCE,      /* range = range + from */
	GF_STEP_ROUND,       /* range = what sending it would leave: CODECS */
	/* CALLS: range = the sums over a team, of which one's own part holds */
	GF_STEP_REDUCE_SCATTER,
	GF_STEP_ALL_GATHER, /* range, of which one's own part held */
};

/* Ranks that act together: `size` of them, `first`, `first + stride`, ...; `me` is the caller's
 * place among them. */
struct gf_group {
	int first, stride, size, me;
	/* Halving: the rank that `rank`, the caller, exchanges with in a round; NULL: that of place
	 * me ^ 2^round. The partner's place must differ from `me` in bit `round`, and agree in all
	 * lower ones. */
	int (*partner)(const struct gf_group *g, int rank, int round);
};

static inline int gf_group_rank(const struct gf_group *g, int place)
{
	return g->first + place * g->stride;
}

struct gf_step {
	enum gf_step_op op;
	int peer;       /* SEND, RECV, RECV_REDUCE */
	uint32_t match; /* see MATCHING; of a call: its team */
	uint16_t stage; /* decomposition stage, for the trace and NCCL */
	struct gf_range range;
	struct gf_range from;      /* COPY, REDUCE: same count as range */
	uint32_t after;            /* 0, or 1 + the step named by gf_schedule_after */
	uint32_t first_dep, ndeps; /* into the schedule's deps: step indices */
};

struct gf_schedule {
	int rank, ranks;
	/* Ranks below this one contribute to the sum and need the result, the others serve;
	 * gf_schedule_init says: all. */
	int contributors;
	size_t count_elems;
	bool lossy; /* see CODECS */
	/* The parts of DATA whose sums this rank holds at the end of a reduce-scatter, or at the
	 * beginning of an all-gather; none is empty. */
	struct gf_range *owned;
	size_t nowned, owned_capacity;
	size_t scratch_elems;
	struct gf_step *steps;
	size_t nsteps, capacity;
	uint32_t *deps;
	size_t ndeps;
	struct gf_group *teams; /* of calls */
	size_t nteams, teams_capacity;
	uint16_t stage;              /* what the verbs stamp on new steps */
	uint32_t *nsent, *nreceived; /* per peer, until the finish */
};

void gf_schedule_init(struct gf_schedule *s, int rank, int ranks, size_t count_elems);
void gf_schedule_release(struct gf_schedule *s);

static inline struct gf_range gf_data(size_t first, size_t count)
{
	return (struct gf_range){GF_BUFFER_DATA, first, count};
}

static inline bool gf_range_same(struct gf_range a, struct gf_range b)
{
	return a.buffer == b.buffer && a.first == b.first && a.count == b.count;
}

/* Reserves scratch and returns its range. Between GPUs scratch is copies of the message: what
 * belongs to place x of it lies at place x of a copy. */
struct gf_range gf_schedule_scratch(struct gf_schedule *s, size_t count);
void gf_schedule_stage(struct gf_schedule *s, int stage);
void gf_schedule_send(struct gf_schedule *s, int peer, struct gf_range range);
void gf_schedule_recv(struct gf_schedule *s, int peer, struct gf_range range);
void gf_schedule_recv_reduce(struct gf_schedule *s, int peer, struct gf_range range);
void gf_schedule_copy(struct gf_schedule *s, struct gf_range to, struct gf_range from);
void gf_schedule_reduce(struct gf_schedule *s, struct gf_range to, struct gf_range from);
/* A call of the group, whose `partner` is not used. */
void gf_schedule_call(struct gf_schedule *s, enum gf_step_op op, const struct gf_group *team,
		      struct gf_range range);
/* This rank owns the range, too; an empty one changes nothing. */
void gf_schedule_own(struct gf_schedule *s, struct gf_range range);
/* A transfer or a rounding like another schedule's, of another range, that waits for `after`
 * (0, or 1 + a step of s). */
void gf_schedule_repeat(struct gf_schedule *s, const struct gf_step *like, struct gf_range range,
			uint32_t after);
/* Rounds the range as sending it would. */
void gf_schedule_round(struct gf_schedule *s, struct gf_range range);
/* The step appended last also waits for an earlier one, which the ranges alone do not ask for: a
 * tree's root sends to one child after the other. */
void gf_schedule_after(struct gf_schedule *s, size_t step);

/* Appends a finished schedule of the same rank to a finished one: its message follows in the
 * buffers, and its steps wait until all of s have ended. */
void gf_schedule_append(struct gf_schedule *s, const struct gf_schedule *next);

/* Derives the dependencies (depend.c); the last call on a schedule under construction. A dependency
 * implied by others may be left out. */
void gf_schedule_finish(struct gf_schedule *s);

static inline bool gf_step_calls(const struct gf_step *step)
{
	return step->op == GF_STEP_REDUCE_SCATTER || step->op == GF_STEP_ALL_GATHER;
}

/* Part `index` of `parts` nearly equal parts of a range: the first count % parts of them are one
 * element longer. Parts may be empty. */
struct gf_range gf_range_part(struct gf_range range, int parts, int index);

#endif
