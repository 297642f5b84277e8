/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_REPLAY_FLUID_H
#define GF_REPLAY_FLUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cost/primitives.h"

/*
 * A queue of events by time; those of one time leave in the order in which they were added, so a
 * simulation is the same every time. Zero-initialise; the owner calls gf_events_release.
 */
struct gf_event {
	double at_s;
	uint64_t order;         /* the queue's */
	uint32_t kind, version; /* the caller's */
	size_t id;              /* the caller's */
};

struct gf_events {
	struct gf_event *heap;
	size_t count, capacity;
	uint64_t added;
};

void gf_events_add(struct gf_events *q, struct gf_event event);
/* The next one, still in the queue; NULL when there is none. */
const struct gf_event *gf_events_first(const struct gf_events *q);
/* Takes the next one out; false when there is none. */
bool gf_events_take(struct gf_events *q, struct gf_event *event);
void gf_events_release(struct gf_events *q);

/*
 * Transfers as fluid on a topology's links. Every unit of ranks one level down has two links of the
 * level's bandwidth, one out and one in. A message passes the links of all levels up to where its
 * ranks meet, on both sides. Flows that share links get max-min fair rates (Bertsekas and Gallager
 * 1992, section 6.5.2): a flow can gain only at the expense of a flow that has no more. If larger
 * messages have another cost line, each of their bytes takes more of a link, in proportion to that
 * line's time per byte.
 */
struct gf_fluid {
	int ranks;
	const struct gf_cost_net *net; /* borrowed */
	uint32_t *out_links;           /* [level * ranks + rank]: its unit's; the next is in */
	struct gf_fluid_link *links;
	size_t nlinks;
	struct gf_fluid_flow *flows;
	size_t nflows, flows_capacity;
	size_t *idle; /* flows to be used again */
	size_t nidle, idle_capacity;
	size_t *dirty; /* links whose flows changed */
	size_t ndirty, dirty_capacity;
	size_t *found_links, *found_flows; /* of the component at hand */
	size_t nfound_links, nfound_flows;
	size_t found_links_capacity, found_flows_capacity;
	uint32_t visit;
	uint32_t finish_kind;
};

/* A link with less bandwidth than its level's others: that of the rank's unit at the level, by
 * these factors (> 0). */
struct gf_slow_link {
	int rank;
	size_t level;
	double out, in;
};

/* finish_kind: the event kind that tells of a flow's end. slowdown: per rank, how much slower its
 * own links are, or NULL. */
void gf_fluid_init(struct gf_fluid *f, int ranks, const struct gf_cost_net *net,
		   const double *slowdown, const struct gf_slow_link *slow, size_t nslow,
		   uint32_t finish_kind);
void gf_fluid_release(struct gf_fluid *f);

/* The level where the two ranks meet, its latency for the given bytes, and how long these flow
 * between them with no other flow. */
struct gf_fluid_hop {
	size_t level;
	double latency_s, alone_s;
};
struct gf_fluid_hop gf_fluid_hop(const struct gf_fluid *f, int from, int to, double bytes);

/* Starts a flow of > 0 bytes, which belongs to `owner`; returns its id. Rates change at the next
 * gf_fluid_settle. */
size_t gf_fluid_start(struct gf_fluid *f, int from, int to, double bytes, size_t owner,
		      double now_s);

/* Gives new rates where flows came or went, and adds their ends to the queue.
 */
void gf_fluid_settle(struct gf_fluid *f, double now_s, struct gf_events *q);

/* For an event of finish_kind: ends the flow and returns its owner, or SIZE_MAX when the flow has
 * been given another rate since. */
size_t gf_fluid_finish(struct gf_fluid *f, const struct gf_event *event);

#endif
