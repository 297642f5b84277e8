/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_ENGINE_ENGINE_PARTS_H
#define GF_ENGINE_ENGINE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "documents/plan.h"
#include "runtime/exec/exec.h"
#include "runtime/work.h"
#include "transport/comm.h"
#include "transport/watch.h"

struct gf_engine_config;

/*
 * The common part of the threads of both engines. Such a thread owns the communicator after
 * gf_engine_new, and serves calls for the other threads. A thread that fails keeps the reason,
 * tells the other ranks, and goes on answering their questions until gf_comm_thread_stop.
 *
 * Its loop is the owner's:
 *	if (!gf_comm_thread_enter(t)) return NULL;
 *	while (!gf_comm_thread_quits(t)) { ... gf_comm_thread_serve ... }
 * After a failure the loop calls gf_comm_thread_give_up(t, rc, &err).
 */
typedef int gf_comm_fn(struct gf_comm *comm, void *ctx, struct gf_error *err);

struct gf_comm_call {
	gf_comm_fn *fn;
	void *ctx;
	struct gf_error *err;
	int rc;
	bool wanted;
};

struct gf_comm_thread {
	struct gf_comm *comm;   /* borrowed */
	struct gf_watch *watch; /* `own`, or borrowed */
	struct gf_watch own;
	pthread_t id;
	bool alive; /* started and not stopped */

	/* The owner uses the lock, too, for all that both threads touch. */
	pthread_mutex_t lock;
	pthread_cond_t wake; /* for the thread: there is work */
	pthread_cond_t news; /* for the others: something has ended */
	/* under lock */
	bool running, quit;
	struct gf_comm_call call;
	int rc; /* the failure that ended it, with its reason */
	struct gf_error reason;
	bool *missing; /* then, per rank: does it not answer? */
	bool looked;   /* `missing` is complete */
};

/* Starts main(ctx), which waits in gf_comm_thread_enter; local. */
int gf_comm_thread_start(struct gf_comm_thread *t, void *(*main)(void *ctx), void *ctx,
			 struct gf_error *err);
/* Tells the thread to quit, and waits until it has. */
void gf_comm_thread_stop(struct gf_comm_thread *t);

/* The failure that was kept, or 0; under lock. */
int gf_comm_thread_kept(const struct gf_comm_thread *t, struct gf_error *err);
/* Keeps the first failure, and wakes all threads; under lock. */
void gf_comm_thread_keep(struct gf_comm_thread *t, int rc, const struct gf_error *why);

/* On the thread. Waits until the communicator is its own; false: the thread shall quit instead. */
bool gf_comm_thread_enter(struct gf_comm_thread *t);
bool gf_comm_thread_quits(struct gf_comm_thread *t);
/* Until woken, or for so long; under lock. */
void gf_comm_thread_nap(struct gf_comm_thread *t, double seconds);
/* Serves the call that waits, if there is one; *served is then true. Without the lock. A call may
 * fail and leave everything in order: its caller gets the failure, and this returns 0. Only a
 * failure that breaks the communicator is returned here. */
int gf_comm_thread_serve(struct gf_comm_thread *t, bool *served, struct gf_error *err);
/* Tells all ranks, keeps the reason for every later call, asks which ranks are missing, and answers
 * questions until the thread shall quit: a rank that still answers is not the culprit.
 * Then the thread stays for a moment, until the other ranks have taken the news. */
void gf_comm_thread_give_up(struct gf_comm_thread *t, int rc, const struct gf_error *why);

/*
 * The common part of the engine's implementations. Each has a struct that begins with this one, and
 * a table of functions. Nobody else looks into it.
 */
struct gf_engine {
	/* set once */
	const struct gf_engine_ops *ops;
	struct gf_comm *comm;
	const struct gf_plan *plan;
	struct gf_pool *pool;
	struct gf_engine_hooks hooks;
	size_t depth;
	int lanes;
	size_t nready; /* tensors and signals */
	struct gf_work *plan_work;
	size_t nplan_work;
	struct gf_comm_thread thread; /* talks to other ranks */
	bool lent;                    /* no: the caller lends its own, while it waits */
	bool awaited_at_once;

	/* under its lock */
	uint64_t nbegun, nwaited; /* steps; the compute thread's */
	uint64_t before;          /* steps of an earlier run */

	/* What gf_engine_totals tells, which any thread asks for, and a child after fork, in which
	 * nobody gives the lock back. */
	_Atomic uint64_t sent_bytes, waited_bytes;
	_Atomic double hooks_s, coding_s; /* of steps that have ended */
	_Atomic double handling_s;
};

/* What only an engine with a thread does, as the functions of engine.h of these names. */
struct gf_engine_thread_ops {
	struct gf_exec_run *(*run_of)(struct gf_engine *e, size_t message,
				      const struct gf_schedule **schedule);
	const double *(*ready_times)(const struct gf_engine *e);
	/* 0: the communicator is free for a call now; under lock. */
	int (*may_call)(const struct gf_engine *e, struct gf_error *err);
};

/* What both engines do, as the functions of engine.h. A missing function that is marked (optional)
 * has nothing to do. */
struct gf_engine_ops {
	const char *name;
	size_t size_bytes; /* of its struct, which gf_engine_new zeroes */
	/* First a rank's own part, then the part of all ranks together, then the thread, if the
	 * engine needs one. `close` follows, whatever fails. */
	int (*make)(struct gf_engine *e, const struct gf_engine_config *config,
		    struct gf_error *err);
	int (*meet)(struct gf_engine *e, const struct gf_engine_config *config,
		    struct gf_error *err); /* (optional) */
	int (*start)(struct gf_engine *e, struct gf_error *err);
	/* A step; `work` NULL: its list follows. */
	void (*begin)(struct gf_engine *e, const struct gf_work *work, size_t nwork);
	void (*list)(struct gf_engine *e, const struct gf_work *work, size_t nwork);
	void (*place)(struct gf_engine *e, size_t message, void *data); /* (optional) */
	void (*ready)(struct gf_engine *e, const size_t *tensors, size_t n);
	void (*backward_end)(struct gf_engine *e);
	int (*wait_message)(struct gf_engine *e, size_t message, struct gf_error *err);
	int (*wait)(struct gf_engine *e, struct gf_error *err);
	int (*end)(struct gf_engine *e, struct gf_error *err);    /* (optional) */
	int (*settle)(struct gf_engine *e, struct gf_error *err); /* streams */
	int (*expect)(struct gf_engine *e, const struct gf_work *like, size_t n,
		      struct gf_error *err);                                       /* (optional) */
	void (*forget)(struct gf_engine *e, const struct gf_work *like, size_t n); /* (optional) */
	/* The input of a message's schedule, and the schedule of any rank (optional: the
	 * algorithm's own). */
	int (*recipe)(const struct gf_engine *e, const struct gf_work *w, struct gf_recipe *r,
		      struct gf_error *err);
	int (*schedule)(const struct gf_engine *e, const struct gf_work *w, int rank,
			struct gf_schedule *s, struct gf_error *err);
	const struct gf_message_times *(*times)(struct gf_engine *e, uint64_t step);
	const struct gf_work *(*list_of)(const struct gf_engine *e, uint64_t step, size_t *n);
	void (*close)(struct gf_engine *e);        /* not the common part */
	const struct gf_engine_thread_ops *thread; /* NULL: it has none */
};

extern const struct gf_engine_ops gf_engine_thread, gf_engine_streams;

/* Do sets go in the place of the plan's messages? */
bool gf_engine_sends_sets(const struct gf_plan *plan);

/* What a rank sends in a ring's all-reduce; a library's, whose bytes are unknown, counts as
 * much. */
size_t gf_engine_ring_elems(int ranks, size_t count_elems);

#endif
