/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_ENGINE_COMM_THREAD_H
#define GF_ENGINE_COMM_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"
#include "comm/comm.h"
#include "engine/watch.h"

/*
 * What the threads of both engines have in common. Such a thread owns the
 * communicator from the moment it is let go: it serves calls for the other
 * threads, and when it fails it keeps the reason, tells the other ranks, and
 * goes on answering them until it is told to quit.
 *
 * Its loop is the owner's:
 *	if (!gf_comm_thread_enter(t)) return NULL;
 *	while (!gf_comm_thread_quits(t)) { ... gf_comm_thread_serve ... }
 * and, after a failure, gf_comm_thread_give_up(t, rc, &err).
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

	/* The owner's, too: for whatever both threads touch. */
	pthread_mutex_t lock;
	pthread_cond_t wake; /* for the thread: there is work */
	pthread_cond_t news; /* for the others: something has ended */
	/* under lock */
	bool running, quit;
	struct gf_comm_call call;
	int rc; /* the failure that ended it, with its reason */
	struct gf_error reason;
};

/* No thread yet. timeout_s as in engine/watch.h, unless a watch is lent. */
void gf_comm_thread_init(struct gf_comm_thread *t, struct gf_comm *comm,
			 double timeout_s, struct gf_watch *watch);
/* Stops the thread, if there is one; what was never initialised is allowed. */
void gf_comm_thread_release(struct gf_comm_thread *t);
/* Starts main(ctx), which waits in gf_comm_thread_enter; local. */
int gf_comm_thread_start(struct gf_comm_thread *t, void *(*main)(void *ctx),
			 void *ctx, struct gf_error *err);
/* From here on the communicator is the thread's alone. */
void gf_comm_thread_go(struct gf_comm_thread *t);
/* Tells it to quit, and waits until it has. */
void gf_comm_thread_stop(struct gf_comm_thread *t);

/* From other threads: runs fn(comm, ctx) on the thread and returns what it
 * returned, or the failure that was kept. The second under lock. */
int gf_comm_thread_call(struct gf_comm_thread *t, gf_comm_fn *fn, void *ctx,
			struct gf_error *err);
int gf_comm_thread_call_locked(struct gf_comm_thread *t, gf_comm_fn *fn,
			       void *ctx, struct gf_error *err);
/* The failure that was kept, or 0; under lock. */
int gf_comm_thread_kept(const struct gf_comm_thread *t, struct gf_error *err);
/* Keeps the first failure, and wakes everybody; under lock. */
void gf_comm_thread_keep(struct gf_comm_thread *t, int rc,
			 const struct gf_error *why);

/* On the thread. Waits until it may go; false: it shall quit before that. */
bool gf_comm_thread_enter(struct gf_comm_thread *t);
bool gf_comm_thread_quits(struct gf_comm_thread *t);
/* Until woken, or for so long; under lock. */
void gf_comm_thread_nap(struct gf_comm_thread *t, double seconds);
/* Serves a call that waits, and says so. Without the lock. A call may fail and
 * leave everything in order: that is its caller's affair, and 0. What it breaks
 * for good is returned. */
int gf_comm_thread_serve(struct gf_comm_thread *t, bool *served,
			 struct gf_error *err);
/* Tells all ranks, keeps the reason for every later call, and goes on
 * answering until told to quit: who is asked and still answers is not the
 * culprit. Then it lingers a moment for those who have not taken the news. */
void gf_comm_thread_give_up(struct gf_comm_thread *t, int rc,
			    const struct gf_error *why);

#endif
