/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_DERIVED_H
#define GF_SIM_DERIVED_H

#include "coll/algorithm.h"
#include "doc/profile.h"
#include "sim/replay.h"

/*
 * Contention that was not measured: n messages of an algorithm replayed at
 * once on the topology, against one. Replayed when first asked for, and kept:
 * zero-initialise but for `lanes`; prices borrow what it holds.
 */
struct gf_derived {
	int lanes; /* gamma_2 .. gamma_lanes; below 2: none */
	struct gf_derived_entry **entries;
	size_t nentries, capacity;
	const char *unknown; /* an algorithm that has too many steps, or NULL */
};

/* Steps of all messages and ranks together that are replayed for one gamma:
 * two rings of 70 ranks. */
#define GF_DERIVED_STEPS_MOST 40000

/* Long enough that startup does not matter: a message's gamma is its bytes'. */
#define GF_DERIVED_BYTES ((size_t)1 << 26)

/* startup_s: of a message of GF_DERIVED_BYTES, by itself.
 * NULL: too many steps, nothing to replay, or a single rank; n messages then
 * take n times as long (gamma_n = n). */
const struct gf_contention *
gf_derived_contention(struct gf_derived *d, const struct gf_algorithm *a,
		      const struct gf_coll_args *args,
		      const struct gf_net_cost *net, double startup_s);
void gf_derived_release(struct gf_derived *d);

#endif
