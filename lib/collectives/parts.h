/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLLECTIVES_PARTS_H
#define GF_COLLECTIVES_PARTS_H

#include "collectives/algorithm.h"
#include "collectives/schedule.h"

/*
 * The common part of generators: transfers cut into segments, and rings over any group of ranks.
 */

/* The bytes of the largest of `parts` parts of the message, for costs. */
double gf_part_bytes(const struct gf_coll_args *args, int parts);

/* Cuts the next piece of at most segment_elems (0: all) off the front. */
struct gf_range gf_piece_take(struct gf_range *rest, size_t segment_elems);
/* The verbs, in pieces of segment_elems (0: whole). Both sides of a transfer give the same length,
 * so the pieces match. */
void gf_send_pieces(struct gf_schedule *s, int peer, struct gf_range range, size_t segment_elems);
void gf_recv_pieces(struct gf_schedule *s, int peer, struct gf_range range, size_t segment_elems);
void gf_recv_reduce_pieces(struct gf_schedule *s, int peer, struct gf_range range,
			   size_t segment_elems);

/*
 * How a range is cut that takes part in an exchange: into pieces of segment_elems (0: one piece),
 * from its front to its end. With `next`, the pieces come in the order in which that group
 * continues with them, so that its first piece is there as early as possible: the part that a ring
 * passes on first, or that halving gives away first. On the way back they come in the order in
 * which the group delivers them. All partners of an exchange need the same order.
 */
struct gf_cut {
	size_t segment_elems;
	const struct gf_group *next; /* or NULL */
	bool halves;                 /* so `next` goes on; else by a ring */
	bool back;
};

/* The pieces of a range that have not been taken. */
struct gf_pieces {
	const struct gf_cut *cut;
	struct gf_range range, rest;
	int part;
};
struct gf_pieces gf_pieces_of(struct gf_range range, const struct gf_cut *cut);

void gf_send_cut(struct gf_schedule *s, int peer, struct gf_pieces send);
void gf_recv_cut(struct gf_schedule *s, int peer, struct gf_pieces recv);
void gf_recv_reduce_cut(struct gf_schedule *s, int peer, struct gf_pieces reduce);
/* Two at once, piece by piece in turn, so that the first piece received can be reduced and sent on
 * while the others travel. */
void gf_exchange_reduce(struct gf_schedule *s, int to, struct gf_pieces send, int from,
			struct gf_pieces reduce);
void gf_exchange(struct gf_schedule *s, int to, struct gf_pieces send, int from,
		 struct gf_pieces recv);

/* Ring reduce-scatter of a range within a group: `me` ends with the sum of part `me` of `size`. And
 * the ring all-gather that begins there. */
void gf_ring_reduce_scatter(struct gf_schedule *s, const struct gf_group *g, struct gf_range range,
			    const struct gf_cut *cut);
void gf_ring_all_gather(struct gf_schedule *s, const struct gf_group *g, struct gf_range range,
			const struct gf_cut *cut);

/*
 * Direct exchange within a group: each rank sends every other its part of the range, and adds what
 * comes for its own, that of the next place first. And the all-gather in which each rank sends its
 * part to all others.
 */
void gf_direct_reduce_scatter(struct gf_schedule *s, const struct gf_group *g,
			      struct gf_range range, const struct gf_cut *cut);
void gf_direct_all_gather(struct gf_schedule *s, const struct gf_group *g, struct gf_range range,
			  const struct gf_cut *cut);

/*
 * Recursive halving within a group whose size is a power of two: in round k partners 2^k places
 * apart exchange halves of what they still hold, so that the long messages go to near places. And
 * the recursive doubling back.
 */
void gf_halving_reduce_scatter(struct gf_schedule *s, const struct gf_group *g,
			       struct gf_range range, const struct gf_cut *cut);
void gf_doubling_all_gather(struct gf_schedule *s, const struct gf_group *g, struct gf_range range,
			    const struct gf_cut *cut);
/* The range that place `me` holds after `rounds` rounds of halving. */
struct gf_range gf_halving_part(const struct gf_group *g, struct gf_range range, int rounds);

/*
 * An all-reduce, or a half, of halving and doubling among the core's ranks (below), which core_of
 * gives as `rank` sees them: `first` 0 and `stride` 1. Round k takes the time of an exchange that
 * round_at(k) describes.
 */
typedef struct gf_group gf_core_fn(const struct gf_coll_args *args, int rank);
void gf_halving_build(struct gf_schedule *s, const struct gf_coll_args *args, gf_core_fn *core_of);
struct gf_range gf_halving_owned(const struct gf_coll_args *args, int rank, gf_core_fn *core_of);
struct gf_cost gf_halving_cost(const struct gf_coll_args *args, const struct gf_cost_net *net,
			       struct gf_cost_round (*round_at)(int core, int k));

/*
 * Algorithms for powers of two run on the first 2^k ranks, the core. Each rank beyond folds its
 * share into the rank 2^k below it, and gets the result back.
 */
int gf_fold_core(int ranks);
void gf_fold_in(struct gf_schedule *s, struct gf_range range, size_t segment_elems);
void gf_fold_out(struct gf_schedule *s, struct gf_range range, size_t segment_elems);

/* ceil(log2 n), n >= 1. */
int gf_log2_up(int n);

#endif
