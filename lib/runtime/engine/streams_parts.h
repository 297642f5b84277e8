/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_ENGINE_STREAMS_PARTS_H
#define GF_ENGINE_STREAMS_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/lanes/lane.h"
#include "runtime/engine/engine.h"

/*
 * The engine of gradients that are on GPUs. One stream computes, each lane has a stream and a
 * communicator of its own, and events between them say which waits for which. The thread that
 * computes also issues the messages, in the list's order on every rank; nothing in a step waits on
 * the host.
 *
 * The start rule becomes: a message waits for its gradients, and for those of all earlier ones; a
 * normal one for the end of all earlier ones; a simultaneous one for the end of the one before it
 * on its lane. The plan's prediction says which lane that is: the one that it thinks free first.
 *
 * If the caller lends its watch there is no second thread, and the host watches while it waits for
 * the end of all messages. Else a second thread watches: it answers other ranks (transport/watch.h)
 * and serves calls. When a message that has begun does not end in time, or a communicator reports
 * an error, the thread aborts the communicators: then everything enqueued comes to an end.
 *
 * streams.c has the functions that the compute thread calls, streams_new.c prepares, streams_path.c
 * knows how a message moves, streams_watch.c is the thread that watches. The lock of base.thread is
 * held while anything is enqueued on lanes or asked of NCCL.
 */

/* How messages of one size move on a lane: made when first wanted, kept. */
struct gf_streams_path {
	size_t lane;
	const struct gf_message *how;
	const struct gf_way *way;
	const struct gf_schedule *schedule;
	const struct gf_algorithm *sparse;
	const struct gf_lane_sets *sets;
	size_t set_bytes; /* that the lane is prepared for */
	enum gf_coll_half half;
	const struct gf_layout *owners;
	size_t count_elems, skew_elems;
	struct gf_lane_program program;
	struct gf_streams_path *next;
};

struct gf_streams_message {
	size_t lane;
	struct gf_streams_path *path;
	bool closes_lane; /* the step's last one on it */
	struct gf_gpu_event *ready, *start, *end;
};

/* A step's events and messages. They last a step longer than a slot of the caller's, as the host
 * may be that much ahead of the device. */
struct gf_streams_step {
	struct gf_work *work; /* a copy of the list */
	struct gf_streams_message *messages;
	struct gf_message_times *times;
	size_t nmessages, capacity;
	size_t issued, seen;                /* under lock: seen to have ended */
	struct gf_gpu_event *begun, *ended; /* ended: its hook has, too */
	double begun_s;                     /* by the host's clock */
	uint64_t sent_bytes;
};

struct gf_streams {
	struct gf_engine base;
	/* set once */
	struct gf_gpu *gpu;
	struct gf_gpu_stream *compute;
	const struct gf_nccl_ops *nccl;
	struct gf_lane *lanes;
	size_t nlanes;
	size_t *lane_of; /* per message of the plan */
	/* Where `prepare` is enqueued; NULL: there is no such hook. */
	struct gf_gpu_stream *preparing;
	struct gf_gpu_event *prepared;
	bool opened;

	/* under lock */
	struct gf_streams_path *paths;
	struct gf_streams_step *steps; /* nslots, depth + 1 */
	size_t nslots;
	bool *tensor_ready;
	size_t nready; /* of those that the next message waits for */
	bool backward_ended;
	uint64_t nseen;                     /* steps whose messages were all seen to end */
	uint64_t nended;                    /* steps whose `end` is enqueued */
	uint64_t ends;                      /* messages seen to end, over all steps */
	struct gf_gpu_event **last_on_lane; /* `end` of the last one issued */

	/* watching thread */
	double stuck_s;
	uint64_t stuck_at; /* ends */
};

static inline struct gf_streams *gf_streams_of(struct gf_engine *e)
{
	return (struct gf_streams *)e;
}

/* The step that was begun as the n-th, from 0, while its slot has it. */
static inline struct gf_streams_step *gf_streams_step(const struct gf_streams *e, uint64_t n)
{
	return &e->steps[n % e->nslots];
}

/* streams_path.c, all under lock once lanes are open. The path of a message: it is on the list of
 * paths, `made` if it was not before. */
int gf_streams_path(struct gf_streams *e, const struct gf_work *w, struct gf_streams_path **path,
		    bool *made, struct gf_error *err);
/* Communicators and memory of a path. */
int gf_streams_path_prepare(struct gf_streams *e, struct gf_streams_path *path,
			    struct gf_error *err);
size_t gf_streams_lane(const struct gf_streams *e, const struct gf_work *w);

/* Copies a list into a step, with events for all of it. */
int gf_streams_list(struct gf_streams *e, struct gf_streams_step *s, const struct gf_work *work,
		    size_t nwork, struct gf_error *err);
/* Of struct gf_engine_ops. */
int gf_streams_make(struct gf_engine *engine, const struct gf_engine_config *config,
		    struct gf_error *err);
int gf_streams_meet(struct gf_engine *engine, const struct gf_engine_config *config,
		    struct gf_error *err);
int gf_streams_start(struct gf_engine *engine, struct gf_error *err);
void gf_streams_close(struct gf_engine *engine);
int gf_streams_recipe(const struct gf_engine *e, const struct gf_work *w, struct gf_recipe *r,
		      struct gf_error *err);
int gf_streams_schedule(const struct gf_engine *e, const struct gf_work *w, int rank,
			struct gf_schedule *s, struct gf_error *err);
void gf_streams_forget(struct gf_engine *engine, const struct gf_work *like, size_t n);
/* The host waits until every message that was begun has ended. */
int gf_streams_sync(struct gf_streams *e, struct gf_error *err);

void *gf_streams_watch(void *engine);
/* "step 3, message 2 (...) on lane 1" before the reason. */
void gf_streams_name(const struct gf_streams *e, uint64_t step, size_t message,
		     struct gf_error *err);
/* Moves `seen` on; under lock. 0 or a negative errno. */
int gf_streams_see(struct gf_streams *e, struct gf_error *err);
/* Keeps a failure, aborts the lanes, wakes all threads; under lock. */
void gf_streams_fail(struct gf_streams *e, int rc, const struct gf_error *why);

#endif
