/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_ENGINE_THREAD_PARTS_H
#define GF_ENGINE_THREAD_PARTS_H

#include <stdatomic.h>
#include <stdint.h>

#include "coll/schedule.h"
#include "engine/comm_thread.h"
#include "engine/engine.h"
#include "exec/exec.h"

/*
 * The engine's inside: engine.c is what the compute thread calls, engine_new.c
 * prepares, engine_thread.c is the communication thread, engine_path.c knows
 * how a message moves.
 *
 * What both threads touch is under `thread.lock`; the rest belongs to the one
 * named.
 */

/* How a message of one size moves: made when it is first wanted, kept for the
 * next step in this slot that wants the same. */
struct gf_engine_path {
	const struct gf_message *how;
	const struct gf_algorithm *sparse;
	enum gf_coll_half half;
	size_t count_elems, set_bytes;
	struct gf_schedule schedule;
	struct gf_exec_run *run;
	struct gf_engine_path *next;
};

struct gf_engine_message {
	/* under lock */
	bool ended;
	/* That nobody was told of yet: the communication thread's until the
	 * message has ended, then the compute thread's. */
	uint64_t sent_bytes;
	/* communication thread */
	struct gf_engine_path *paths; /* that were used in this place */
	struct gf_engine_path *path;  /* in use */
	uint64_t moves;
	double stuck_s;
};

/* A slot: a step under way, or what is left of it. */
struct gf_engine_step {
	/* set when it begins */
	uint64_t number; /* from 1 */
	const struct gf_work *work;
	size_t nwork;
	struct gf_engine_message *messages; /* capacity >= nwork */
	struct gf_message_times *times;
	size_t capacity;
	/* under lock */
	bool *tensor_ready;
	double *ready_s; /* per tensor */
	size_t nready;   /* so many at the front */
	double backward_end_s;
	bool backward_ended, ended;
	size_t next; /* the first message that has not been started */
	size_t seen; /* tensors below are ready, of those that it waits for */
	size_t nended;
};

/* A message under way. */
struct gf_engine_active {
	struct gf_engine_step *step;
	size_t message;
};

struct gf_engine {
	/* set once */
	struct gf_comm *comm;
	const struct gf_plan *plan;
	struct gf_pool *pool;
	struct gf_engine_hooks hooks;
	size_t segment_bytes; /* 0: the executor knows */
	int lanes;
	struct gf_work *plan_work;
	size_t nplan_work;
	uint64_t dense_bytes;
	struct gf_comm_thread thread; /* with one rank it is never started */

	/* under lock */
	struct gf_engine_step *steps;
	size_t depth;
	/* Steps begun, ended (its hook has run) and waited for; ended changed
	 * by the communication thread, the others by the compute thread. */
	uint64_t nbegun, nended, nwaited;
	uint64_t waited_bytes; /* of messages that were waited for */
	uint64_t before;       /* steps of an earlier run */
	int nactive; /* <= lanes; changed by the communication thread */
	struct gf_engine_totals totals; /* of messages that have ended */
	_Atomic double handling_s; /* as of gf_engine_publish; not under it */

	/* communication thread; with one rank the compute thread */
	struct gf_engine_totals counted;
	struct gf_engine_active *active; /* nactive, lanes of room */
	struct gf_exec *exec;
};

/* The step that was begun as the n-th, from 0, while its slot has it. */
static inline struct gf_engine_step *gf_engine_step(const struct gf_engine *e,
						    uint64_t n)
{
	return &e->steps[n % e->depth];
}

/* The step whose message starts next; NULL: all begun have started all. */
struct gf_engine_step *gf_engine_starting(const struct gf_engine *e);
/* May that message start? The start rule; under lock. */
bool gf_engine_may_start(struct gf_engine *e);
/* Takes the next message of that step off the list; under lock. */
size_t gf_engine_take(struct gf_engine *e, struct gf_engine_step *s);
/* The message has come; and the step's end, when it was the last. The lock is
 * let go for hooks. */
void gf_engine_settle(struct gf_engine *e, struct gf_engine_step *s,
		      size_t message);
/* Calls prepare or finish, with the clock running; without the lock. */
void gf_engine_hook(struct gf_engine *e,
		    void (*hook)(void *ctx, size_t slot, size_t message),
		    const struct gf_engine_step *s, size_t message);
/* Lets others see what was counted. */
void gf_engine_publish(struct gf_engine *e);
void *gf_engine_thread(void *engine);

/* The path of a message that is about to go. */
int gf_engine_path(struct gf_engine *e, struct gf_engine_step *s,
		   size_t message, struct gf_error *err);
/* That this rank sent when it was last used. */
uint64_t gf_engine_path_bytes(const struct gf_engine *e,
			      const struct gf_engine_path *path);
void gf_engine_paths_free(struct gf_engine_message *m);
/* The path of the plan's message i, ahead of time; and what it weighs in
 * f32. */
int gf_engine_path_plan(struct gf_engine *e, size_t i, struct gf_error *err);
int gf_engine_path_weigh(struct gf_engine *e, size_t i, struct gf_error *err);
/* Makes room for so many messages; not while the step is under way. */
void gf_engine_reserve(struct gf_engine_step *s, size_t nwork);

#endif
