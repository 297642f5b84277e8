/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLLECTIVES_LAYOUT_H
#define GF_COLLECTIVES_LAYOUT_H

#include <stddef.h>

#include "base/error.h"
#include "collectives/schedule.h"

/*
 * Who owns which elements of a message after its reduce-scatter, and before its all-gather, where a
 * caller says it: ZeRO's even parts in the order of ranks, or the rows of several padded parameters
 * (fully_shard shards each by its first dimension).
 *
 * An algorithm knows nothing of layouts. It builds for a longer message, of which each rank owns as
 * many elements as the richest one of the layout; gf_layout_apply then puts the caller's elements
 * in the place of each rank's part, and drops what is beyond them. So any algorithm with halves
 * serves any layout, and nothing is sent that nobody wants.
 */
struct gf_layout_piece {
	int rank;            /* the owner */
	size_t first, count; /* elements of the message */
};
struct gf_layout {
	const struct gf_layout_piece
		*pieces; /* in any order; of one rank: as its own elements lie */
	size_t npieces;
};

/* Even parts in the order of ranks, as gf_range_part cuts; the caller frees the pieces. */
struct gf_layout gf_layout_even(int ranks, size_t count_elems);
/* -EINVAL names the piece: its rank is none of `ranks`, or the pieces do not make up count_elems
 * elements, each once. */
int gf_layout_check(const struct gf_layout *layout, int ranks, size_t count_elems,
		    struct gf_error *err);
/* The elements of the rank that owns most. */
size_t gf_layout_most(const struct gf_layout *layout, int ranks);

/*
 * Rewrites a schedule that is not finished, of a message of which rank r owns parts[r], onto a
 * message of count_elems elements: element i of rank r's part becomes the i-th that the layout
 * gives to r. A step becomes one step for each piece that it touches; under a codec pieces of two
 * owners stay apart, so that each is encoded alike on every hop. The schedule's rank owns what the
 * layout gives to `owner`.
 */
void gf_layout_apply(const struct gf_layout *layout, const struct gf_range *parts,
		     size_t count_elems, int owner, struct gf_schedule *s);

#endif
