/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_LEVEL_COSTS_H
#define GF_MEASURE_LEVEL_COSTS_H

#include "measure/curve.h"
#include "measure/link.h"
#include "doc/topology.h"

/*
 * The cost of each level of a topology: a round of messages between neighbours.
 *
 * Ranks are grouped by the digits of their number. On a level one rank of each
 * group one level down takes part, all groups at the same time: it sends to the
 * next group's and receives from the one before, as in a ring. So a message has
 * for itself what the ranks of its group otherwise share, which is what a
 * level's bandwidth means. alpha and beta are a round's startup and per-byte
 * cost; reduce is what adding up what came takes besides: where the transport
 * adds while it receives, what that makes the round longer, else the addition
 * by itself on all ranks at once.
 */
struct gf_measure_levels {
	struct gf_measure_curve_config curve; /* limits.budget_s: of them all */
	const struct gf_level *levels;        /* the product is the ranks */
	size_t nlevels;
	struct gf_measure_mover mover; /* of messages between the ranks */
};

/* Collective; all ranks get the same: levels of one member are left out. */
int gf_measure_levels(const struct gf_measure_levels *config,
		      struct gf_network *net, struct gf_text *remarks,
		      struct gf_error *err);

/* The neighbours of a rank on a level, as above; both -1 for one that takes no
 * part. */
void gf_measure_level_peers(const struct gf_level *levels, size_t level,
			    int rank, int *to, int *from);

#endif
