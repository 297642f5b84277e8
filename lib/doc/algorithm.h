/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOC_ALGORITHM_H
#define GF_DOC_ALGORITHM_H

#include <stdbool.h>

/*
 * The traits of an all-reduce algorithm, by its name: the half of its entry
 * that documents are checked with. The other half, its schedule and its cost,
 * is in lib/coll (coll/algorithm.h) under the same name. Callers never compare
 * names: they ask for the trait that they need. A name without a row here, such
 * as one that only a profile knows, has no trait: every use that needs one is
 * refused.
 */
enum gf_algorithm_trait {
	/* Takes factors: groups of ranks reduce one level after the other. */
	GF_ALGORITHM_LEVELS = 1 << 0,
	/* ... and only two of them: groups, and their masters. */
	GF_ALGORITHM_TWO_LEVELS = 1 << 1,
	/* ... each by an algorithm of its own (gf_stage_algorithm). */
	GF_ALGORITHM_STAGES = 1 << 2,
	/* Comes as a reduce-scatter and an all-gather. */
	GF_ALGORITHM_HALVES = 1 << 3,
	/* Decodes what it received before it adds: any codec will do. */
	GF_ALGORITHM_ENCODED = 1 << 4,
	/* Adds in one order, so that all ranks have the same bits. */
	GF_ALGORITHM_SAME_BITS = 1 << 5,
	/* Some ranks may serve and contribute nothing. */
	GF_ALGORITHM_SERVERS = 1 << 6,
	/* Used where it is named or was measured, else not a choice. */
	GF_ALGORITHM_ON_REQUEST = 1 << 7,
	/* An element is a sparse set, which is merged; no plan names it. */
	GF_ALGORITHM_SETS = 1 << 8,
};

struct gf_algorithm_traits {
	const char *name;
	unsigned traits;
};

/* Ends with a NULL name. */
extern const struct gf_algorithm_traits gf_algorithm_traits[];

/* Has the algorithm of that name all of these traits? */
bool gf_algorithm_has(const char *name, unsigned traits);

/* A way to reduce one factor of a decomposition, ring, halving, shm or nccl, as
 * a constant; NULL: there is none of that name, or name is NULL. */
const char *gf_stage_algorithm(const char *name);
/* Can it reduce `factor` ranks? Halving needs a power of two. */
bool gf_stage_takes(const char *name, int factor);

#endif
