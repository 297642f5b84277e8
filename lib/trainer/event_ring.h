/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_EVENT_RING_H
#define GF_TRAINER_EVENT_RING_H

#include <stddef.h>

#include "runtime/work.h"

/*
 * The times of events on this rank, for the last steps of a run. They are kept in a ring, so that a
 * run of any length is recorded at a bounded cost. Times are gf_clock_s.
 */
#define GF_TIMELINE_STEPS 512

/* A wait; there was none if the end is not after the start. */
struct gf_step_wait {
	double start_s, end_s;
};

struct gf_step_times {
	size_t step;        /* counted from 1 over the whole run */
	double load_s;      /* before it: waiting for the loader's batch */
	double start_s;     /* forward begins */
	double forward_s;   /* forward and loss are done, backward begins */
	double backward_s;  /* backward is done */
	double exchanged_s; /* every message that the update needs has ended */
	double late_s;      /* of forward: waiting for parameters that it reads */
	double later_s;     /* of backward: likewise */
	double handling_s;  /* of all waiting: selection, codecs */
	double outer_s;     /* after the update: in an outer exchange */
	double end_s;       /* all is done */
	/* nmessages: the same, one by one; each in forward, none at once; with shards as many more
	 * in backward */
	struct gf_step_wait *late;
	double *gradient_s; /* ntensors: when each gradient was there */
	/* The step whose gradient this one applied: its messages, and when its forward began; NAN
	 * if there was none. */
	double applied_start_s;
	/* As gf_exchange_times. */
	struct gf_message_times *messages;
};

/* The compute thread's time in the parts of steps, summed over the steps. The parts follow each
 * other. */
struct gf_step_parts {
	double load_s;    /* waiting for the loader */
	double compute_s; /* forward and backward */
	double update_s;
	double exposed_s;  /* waiting for messages */
	double handling_s; /* of exposed_s: while the communication thread was at selection,
			    * packing, scaling, codecs */
};

struct gf_timeline {
	size_t ntensors, nmessages;
	size_t nsteps; /* that were recorded, also those overwritten */
	struct gf_step_times *ring;
	struct gf_step_parts parts; /* of all closed steps */
};

void gf_timeline_init(struct gf_timeline *t, size_t ntensors, size_t nmessages);
void gf_timeline_release(struct gf_timeline *t);
/* The slot of a new step; overwrites the oldest. */
struct gf_step_times *gf_timeline_next(struct gf_timeline *t, size_t step);
/* The newest is complete. */
void gf_timeline_close(struct gf_timeline *t);
/* The newest. */
const struct gf_step_times *gf_timeline_last(const struct gf_timeline *t);
/* Steps that can be looked at, and the i-th of them, oldest first. */
size_t gf_timeline_count(const struct gf_timeline *t);
const struct gf_step_times *gf_timeline_at(const struct gf_timeline *t, size_t i);
/* The index of the first such step after the warm-up: caches, page faults and the network's
 * connections settle in the first steps of a run. */
size_t gf_timeline_settled(const struct gf_timeline *t);

#endif
