/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts of owners that callers have, for tests of reduce-scatters and all-gathers. */
#ifndef LAYOUTS_H
#define LAYOUTS_H

#include "base/heap.h"
#include "base/rng.h"
#include "collectives/layout.h"

/* Each writes the pieces of n elements on so many ranks, and returns their number: at most
 * layouts_pieces. */
typedef size_t layout_fn(struct gf_layout_piece *pieces, int ranks, size_t n);

static size_t layouts_pieces(int ranks, size_t n)
{
	return 3 * (size_t)ranks + n + 1;
}

/* Even parts in the order of ranks: ZeRO's. */
static size_t layout_even(struct gf_layout_piece *pieces, int ranks, size_t n)
{
	int rank;

	for (rank = 0; rank < ranks; rank++) {
		struct gf_range part = gf_range_part(gf_data(0, n), ranks, rank);

		pieces[rank] = (struct gf_layout_piece){rank, part.first, part.count};
	}
	return (size_t)ranks;
}

/* Three parameters, each cut into rows of which the last ranks may have none: fully_shard's. */
static size_t layout_rows(struct gf_layout_piece *pieces, int ranks, size_t n)
{
	size_t count = 0;
	int k, rank;

	for (k = 0; k < 3; k++) {
		struct gf_range rest = gf_range_part(gf_data(0, n), 3, k);
		size_t rows = (rest.count + (size_t)ranks - 1) / (size_t)ranks;

		for (rank = 0; rank < ranks; rank++) {
			size_t mine = rows < rest.count ? rows : rest.count;

			pieces[count++] = (struct gf_layout_piece){rank, rest.first, mine};
			rest.first += mine;
			rest.count -= mine;
		}
	}
	return count;
}

/* All of it is the last rank's. */
static size_t layout_one(struct gf_layout_piece *pieces, int ranks, size_t n)
{
	pieces[0] = (struct gf_layout_piece){ranks - 1, 0, n};
	return 1;
}

static size_t layout_random(struct gf_layout_piece *pieces, int ranks, size_t n)
{
	struct gf_rng rng;
	size_t at, count = 0;

	gf_rng_init(&rng, n, (uint64_t)ranks);
	for (at = 0; at < n; at += pieces[count++].count)
		pieces[count] = (struct gf_layout_piece){(int)gf_rng_below(&rng, (uint64_t)ranks),
							 at, 1 + gf_rng_below(&rng, n - at)};
	return count;
}

static const struct {
	const char *name;
	layout_fn *write;
} layouts[] = {
	{"even", layout_even},
	{"rows", layout_rows},
	{"one", layout_one},
	{"random", layout_random},
};

/* The caller frees the pieces. */
static struct gf_layout layout_of(layout_fn *write, int ranks, size_t n)
{
	struct gf_layout_piece *pieces = gf_xcalloc(layouts_pieces(ranks, n), sizeof(*pieces));

	return (struct gf_layout){pieces, write(pieces, ranks, n)};
}

#endif
