/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLL_PARTS_H
#define GF_COLL_PARTS_H

#include "coll/schedule.h"

/*
 * What generators share: transfers cut into segments, and rings over any group
 * of ranks. A group is `size` ranks, `first`, `first + stride`, ...; `me` is
 * the caller's place in it.
 */
struct gf_group {
	int first, stride, size, me;
};

static inline int gf_group_rank(const struct gf_group *g, int place)
{
	return g->first + place * g->stride;
}

/* The verbs, in pieces of segment_elems (0: whole). Both sides of a transfer
 * give the same length, so the pieces match. */
void gf_send_pieces(struct gf_schedule *s, int peer, struct gf_range range,
		    size_t segment_elems);
void gf_recv_pieces(struct gf_schedule *s, int peer, struct gf_range range,
		    size_t segment_elems);
/* Both at once, piece by piece in turn, so that the first piece received can
 * be reduced and sent on while the others travel. */
void gf_exchange_reduce(struct gf_schedule *s, int to, struct gf_range send,
			int from, struct gf_range reduce,
			size_t segment_elems);
void gf_exchange(struct gf_schedule *s, int to, struct gf_range send, int from,
		 struct gf_range recv, size_t segment_elems);

/* Ring reduce-scatter of a range within a group: `me` ends with the sum of part
 * `me` of `size`. And the ring all-gather that begins there. */
void gf_ring_reduce_scatter(struct gf_schedule *s, const struct gf_group *g,
			    struct gf_range range, size_t segment_elems);
void gf_ring_all_gather(struct gf_schedule *s, const struct gf_group *g,
			struct gf_range range, size_t segment_elems);

#endif
