/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_EXEC_PACE_H
#define GF_EXEC_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/schedule.h"

/*
 * How long a rank may look away from a run without making it slower. What has
 * arrived must be seen before the link runs out of what was sent earlier: the
 * k-th send that waits for the m-th arrival is not missed while fewer than k
 * messages have gone out, and on a link that is busy both ways about as many
 * have gone out as have come in. A ring whose parts have s segments may be
 * left alone for s - 1 of them.
 *
 * Where few are behind the next arrival, as in short messages and at the end,
 * nothing is free: arrivals are not that regular.
 *
 * The schedule says how many arrivals that is at each point; how long one takes
 * is learned from this run and the runs before it. Who sleeps half of what is
 * free, as gf_backoff_rest does, wakes in time even if arrivals come twice as
 * fast as they did, and learns it.
 */
struct gf_pace {
	/* until[c], c < arrivals: with c arrivals seen, look again before so
	 * many have come */
	uint32_t *until;
	uint32_t arrivals; /* of a whole run; 0: nothing to learn from */
	uint32_t most; /* in one sleep: what a socket holds; 0: never sleeps */
	uint32_t deep; /* with fewer ahead: not left alone */
	/* of the run under way */
	uint32_t seen, first_seen;
	double first_s, last_s;
	double each_s; /* of the runs before; 0: none yet */
};

/* Arrivals are the receives from those peers p for which counts[p]; borrowed
 * for the call. elem_bytes is what an element takes on the wire, about;
 * beside_ranks: the host has other ranks, too. */
void gf_pace_init(struct gf_pace *p, const struct gf_schedule *s,
		  const bool *counts, double elem_bytes, bool beside_ranks);
void gf_pace_release(struct gf_pace *p);

void gf_pace_begin(struct gf_pace *p, double now_s);
/* So many more have been seen. */
void gf_pace_arrived(struct gf_pace *p, uint32_t n, double now_s);
/* The run came to its end. */
void gf_pace_end(struct gf_pace *p);
/* May it be left alone now, for however long? Without a clock. */
bool gf_pace_may_rest(const struct gf_pace *p);
/* From now on; 0: look at once. */
double gf_pace_free_s(const struct gf_pace *p, double now_s);

#endif
