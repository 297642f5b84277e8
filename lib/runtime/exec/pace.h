/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_EXEC_PACE_H
#define GF_EXEC_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/schedule.h"

/*
 * How long a rank may look away from a run without making it slower. The rank must see an arrival
 * before its link runs out of messages that were sent earlier. If the k-th send waits for the m-th
 * arrival, nobody misses that send while fewer than k messages have gone out. On a link that is
 * busy both ways, about as many have gone out as have come in. A ring whose parts have s segments
 * may be left alone for s - 1 of them.
 *
 * If few arrivals may pass unseen, as in short messages and near the end, the rank may not look
 * away at all: arrivals are not that regular.
 *
 * The schedule gives the number of arrivals that may pass at each point. The time of one is learned
 * from this run and the runs before it. A caller that sleeps half of the free time, as
 * gf_backoff_rest does, wakes in time even if arrivals come twice as fast as before, and the new
 * pace is learned.
 */
struct gf_pace {
	/* until[c], c < arrivals: with c arrivals seen, look again before so many have come */
	uint32_t *until;
	uint32_t arrivals; /* of a whole run; 0: nothing to learn from */
	uint32_t most;     /* in one sleep: what a socket holds; 0: never sleeps */
	uint32_t deep;     /* with fewer ahead: not left alone */
	/* of the run under way */
	uint32_t seen, first_seen;
	double first_s, last_s;
	double each_s; /* of the runs before; 0: none yet */
};

/* Arrivals are the receives from those peers p for which counts[p]; borrowed for the call.
 * elem_bytes is what an element takes on the wire, about; beside_ranks: the host has other ranks,
 * too. */
void gf_pace_init(struct gf_pace *p, const struct gf_schedule *s, const bool *counts,
		  double elem_bytes, bool beside_ranks);
void gf_pace_release(struct gf_pace *p);

void gf_pace_begin(struct gf_pace *p, double now_s);
/* n more arrivals have been seen. */
void gf_pace_arrived(struct gf_pace *p, uint32_t n, double now_s);
/* The run came to its end. */
void gf_pace_end(struct gf_pace *p);
/* May the run be left alone now, for any time at all? Reads no clock. */
bool gf_pace_may_rest(const struct gf_pace *p);
/* Seconds from now for which the run may be left alone; 0: look at once. */
double gf_pace_free_s(const struct gf_pace *p, double now_s);

#endif
