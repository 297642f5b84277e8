/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PRICES_REPLAYED_COST_H
#define GF_PRICES_REPLAYED_COST_H

#include "collectives/algorithm.h"
#include "doc/profile.h"

/*
 * Replays of an algorithm on a topology: one message alone, at as many sizes as its cost needs
 * lines, and n messages at once. Closed forms hold where groups of ranks coincide with levels.
 * Elsewhere messages of one round drift apart, and only a replay tells when they share a link.
 * Replayed when first asked for, and kept by the network's costs, of which there may be several:
 * zero-initialise but for `lanes`, which may grow; prices borrow from it.
 */
struct gf_derived {
	int lanes; /* gamma_2 .. gamma_lanes; below 2: none */
	struct gf_derived_entry **entries;
	size_t nentries, capacity;
	struct gf_derived_net **nets;
	size_t nnets, nets_capacity;
	/* an algorithm of which one message, or several at once, have too many steps; or NULL */
	const char *unpriced, *unknown;
	/* steps of the replays asked for since gf_derived_recount, those that were kept from before
	 * included */
	size_t nreplayed;
	unsigned count;
};

struct gf_derived_cost {
	/* Of a message that everything divides; the first from 0 on. None: the closed form holds,
	 * or there are too many steps. */
	const struct gf_line *lines;
	size_t nlines;
	/* Of all ranks, where a message's cost may depend on what is left over in its parts; else
	 * 0. */
	size_t nsteps;
	/* NULL: n messages take n times as long (gamma_n = n) */
	const struct gf_contention *contention;
};

/* Steps of all messages and ranks together that are replayed at once: a ring of 100 ranks, two
 * rings of 70. */
#define GF_DERIVED_STEPS_MOST 40000

/* Long enough that startup does not matter: a message's gamma is its bytes'. */
#define GF_DERIVED_BYTES 0x1p26

/* Empty where there are too many steps, nothing to replay, or one rank. Borrowed until the
 * release. */
const struct gf_derived_cost *gf_derived_find(struct gf_derived *d, const struct gf_algorithm *a,
					      const struct gf_coll_args *args,
					      const struct gf_cost_net *net);
/* A message of just so many elements alone; NAN: see above. */
double gf_derived_message_s(struct gf_derived *d, const struct gf_algorithm *a,
			    const struct gf_coll_args *args, const struct gf_cost_net *net,
			    double bytes);
/* Begins the count of replayed steps anew. Costs that are kept count when they are asked for again,
 * so a limit is the same for all that share them. */
void gf_derived_recount(struct gf_derived *d);
void gf_derived_release(struct gf_derived *d);

#endif
