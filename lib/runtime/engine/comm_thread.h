/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_ENGINE_COMM_THREAD_H
#define GF_ENGINE_COMM_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"
#include "transport/comm.h"
#include "transport/watch.h"

/*
 * The common part of the threads of both engines. Such a thread owns the communicator after
 * gf_comm_thread_go, and serves calls for the other threads. A thread that fails keeps the reason,
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

/* No thread yet. timeout_s as in transport/watch.h, unless a watch is lent. */
void gf_comm_thread_init(struct gf_comm_thread *t, struct gf_comm *comm, double timeout_s,
			 struct gf_watch *watch);
/* Stops the thread, if there is one; zeros are allowed. */
void gf_comm_thread_release(struct gf_comm_thread *t);
/* Starts main(ctx), which waits in gf_comm_thread_enter; local. */
int gf_comm_thread_start(struct gf_comm_thread *t, void *(*main)(void *ctx), void *ctx,
			 struct gf_error *err);
/* From here on the communicator is the thread's alone. */
void gf_comm_thread_go(struct gf_comm_thread *t);
/* Tells the thread to quit, and waits until it has. */
void gf_comm_thread_stop(struct gf_comm_thread *t);

/* From other threads, under lock: runs fn(comm, ctx) on the thread and returns what it returned, or
 * the failure that was kept. */
int gf_comm_thread_call_locked(struct gf_comm_thread *t, gf_comm_fn *fn, void *ctx,
			       struct gf_error *err);
/* The failure that was kept, or 0; under lock. */
int gf_comm_thread_kept(const struct gf_comm_thread *t, struct gf_error *err);
/* Keeps the first failure, and wakes all threads; under lock. */
void gf_comm_thread_keep(struct gf_comm_thread *t, int rc, const struct gf_error *why);

/* After a failure: waits until it is known which ranks are missing, and fills that in, per rank.
 * -ENODATA: there is no thread that could know. */
int gf_comm_thread_missing(struct gf_comm_thread *t, bool *missing);

/* On the thread. Waits for gf_comm_thread_go; false: the thread shall quit instead. */
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

#endif
