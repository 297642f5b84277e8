/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_REPLAY_EVENTS_H
#define GF_REPLAY_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
