/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_ENGINE_THREAD_PARTS_H
#define GF_ENGINE_THREAD_PARTS_H

#include <stdint.h>

#include "base/clock.h"
#include "collectives/schedule.h"
#include "runtime/engine/engine.h"
#include "runtime/exec/exec.h"
#include "transport/backoff.h"

/*
 * The engine that moves messages on a thread: thread.c has the functions that the compute thread
 * calls, thread_loop.c the start rule and the communication thread, thread_path.c knows how a
 * message moves.
 *
 * Fields that both threads touch are under `base.thread.lock`; the others belong to the thread
 * named.
 */

/* How a message of one size moves: made when it is first wanted, kept for the next step in this
 * slot that wants the same. */
struct gf_thread_path {
	const struct gf_message *how;
	const struct gf_way *way;
	const struct gf_algorithm *sparse;
	enum gf_coll_half half;
	const struct gf_layout *owners;
	size_t count_elems, set_bytes;
	struct gf_element element;
	struct gf_schedule schedule;
	struct gf_exec_run *run;
	struct gf_thread_path *next;
};

struct gf_thread_message {
	/* under lock */
	bool ended;
	/* Sent bytes that are not in waited_bytes yet: the communication thread's until the message
	 * has ended, then the compute thread's. */
	uint64_t sent_bytes;
	/* communication thread */
	struct gf_thread_path *paths; /* that were used in this place */
	struct gf_thread_path *path;  /* in use */
	uint64_t moves;
	double stuck_s;
};

/* A slot: a step under way, or what is left of it. */
struct gf_thread_step {
	/* set when it begins */
	uint64_t number; /* from 1 */
	const struct gf_work *work;
	size_t nwork;
	struct gf_thread_message *messages; /* capacity >= nwork */
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
struct gf_thread_active {
	struct gf_thread_step *step;
	size_t message;
};

struct gf_thread {
	/* The thread of an engine with one rank is never started. The compute thread begins steps
	 * and waits for them. */
	struct gf_engine base;
	/* set once */
	size_t segment_bytes; /* 0: the executor knows */
	bool crowded;         /* compute wants all processors of this rank */

	/* under lock */
	struct gf_thread_step *steps; /* depth */
	uint64_t nended;              /* steps, whose hook has run; the communication thread's */
	int nactive;                  /* <= lanes; likewise */
	/* The communication thread is in a round; the compute thread moves messages in its place;
	 * what failed there. */
	bool busy, relieved;
	int failed;
	struct gf_error failure;

	/* communication thread, or the compute thread that relieves it; with one rank the compute
	 * thread */
	uint64_t sent_bytes; /* what base has of these is published */
	double hooks_s;
	struct gf_thread_active *active; /* nactive, lanes of room */
	struct gf_exec *exec;

	/* of a thread that the caller lends, or that relieves the other */
	struct gf_backoff backoff;
	bool rests;    /* nothing moved in the last round */
	double free_s; /* nothing can move before, as of then */
};

/* The times of a lent thread's work, which is short, are not asked for. */
static inline double gf_thread_now(const struct gf_thread *e)
{
	return e->base.lent ? 0 : gf_clock_s();
}

/* Nothing to do where the caller lends its thread: there is no other. */
static inline void gf_thread_lock(struct gf_thread *e)
{
	if (!e->base.lent)
		pthread_mutex_lock(&e->base.thread.lock);
}
static inline void gf_thread_unlock(struct gf_thread *e)
{
	if (!e->base.lent)
		pthread_mutex_unlock(&e->base.thread.lock);
}

/* The step that was begun as the n-th, from 0, while its slot has it. */
static inline struct gf_thread_step *gf_thread_step(const struct gf_thread *e, uint64_t n)
{
	return &e->steps[n % e->base.depth];
}

/* May the next message start? Under lock. */
bool gf_thread_may_start(struct gf_thread *e);
/* With one rank: whatever may start has ended. */
void gf_thread_advance_alone(struct gf_thread *e);
void *gf_thread_main(void *engine);
/* A round by a thread that the caller lends, or by the compute thread while the communication
 * thread is in none. It rests first if nothing moved in the one before; without the lock. */
int gf_thread_round(struct gf_thread *e, struct gf_error *err);

/* The path of a message that is about to go. */
int gf_thread_path(struct gf_thread *e, struct gf_thread_step *s, size_t message,
		   struct gf_error *err);
/* Bytes that this rank sent when the path was last used. */
uint64_t gf_thread_path_bytes(const struct gf_thread *e, const struct gf_thread_path *path);
void gf_thread_paths_free(struct gf_thread_message *m);
/* Paths ahead of time: of messages like these, each in its place. */
int gf_thread_expect(struct gf_engine *engine, const struct gf_work *like, size_t n,
		     struct gf_error *err);
int gf_thread_recipe(const struct gf_engine *engine, const struct gf_work *w, struct gf_recipe *r,
		     struct gf_error *err);
/* Makes room for so many messages; not while the step is under way. */
void gf_thread_reserve(struct gf_thread_step *s, size_t nwork);

#endif
