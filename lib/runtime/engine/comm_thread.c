/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/engine/comm_thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/heap.h"
#include "transport/processors.h"

/* How often a thread that has given up looks for other ranks' questions. */
#define ANSWER_S 1e-2
/* How long a rank that has given up waits for others to hear of it. */
#define LINGER_S 0.2

void gf_comm_thread_init(struct gf_comm_thread *t, struct gf_comm *comm, double timeout_s,
			 struct gf_watch *watch)
{
	pthread_condattr_t attr;

	*t = (struct gf_comm_thread){.comm = comm};
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->wake, &attr);
	pthread_cond_init(&t->news, &attr);
	pthread_condattr_destroy(&attr);
	t->missing = gf_xcalloc((size_t)comm->ranks, sizeof(*t->missing));
	t->watch = watch ? watch : &t->own;
	if (watch)
		return;
	gf_watch_init(&t->own, comm, timeout_s);
	t->own.self.phase = GF_PHASE_CALL;
}

void gf_comm_thread_release(struct gf_comm_thread *t)
{
	if (!t->comm)
		return;
	gf_comm_thread_stop(t);
	gf_watch_release(&t->own);
	free(t->missing);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->wake);
	pthread_cond_destroy(&t->news);
	*t = (struct gf_comm_thread){0};
}

int gf_comm_thread_start(struct gf_comm_thread *t, void *(*main)(void *ctx), void *ctx,
			 struct gf_error *err)
{
	sigset_t all, before;
	int rc;

	/* Signals are for the threads that know what to do with them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = gf_priority_start(&t->id, main, ctx);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return gf_error_errno(err, -rc, "communication thread");
	t->alive = true;
	return 0;
}

void gf_comm_thread_go(struct gf_comm_thread *t)
{
	pthread_mutex_lock(&t->lock);
	t->running = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
}

void gf_comm_thread_stop(struct gf_comm_thread *t)
{
	if (!t->alive)
		return;
	pthread_mutex_lock(&t->lock);
	t->quit = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->id, NULL);
	t->alive = false;
}

int gf_comm_thread_call_locked(struct gf_comm_thread *t, gf_comm_fn *fn, void *ctx,
			       struct gf_error *err)
{
	int rc = gf_comm_thread_kept(t, err);

	if (rc)
		return rc;
	t->call = (struct gf_comm_call){fn, ctx, err, 0, true};
	pthread_cond_signal(&t->wake);
	while (t->call.wanted && !t->rc)
		pthread_cond_wait(&t->news, &t->lock);
	rc = t->call.wanted ? gf_comm_thread_kept(t, err) : t->call.rc;
	t->call.wanted = false;
	return rc;
}

int gf_comm_thread_kept(const struct gf_comm_thread *t, struct gf_error *err)
{
	if (t->rc && err)
		*err = t->reason;
	return t->rc;
}

void gf_comm_thread_keep(struct gf_comm_thread *t, int rc, const struct gf_error *why)
{
	if (t->rc)
		return;
	t->rc = rc;
	t->reason = *why;
	pthread_cond_broadcast(&t->news);
	pthread_cond_signal(&t->wake);
}

int gf_comm_thread_missing(struct gf_comm_thread *t, bool *missing)
{
	const size_t bytes = (size_t)t->comm->ranks * sizeof(*missing);
	int rc = 0;

	memset(missing, 0, bytes);
	pthread_mutex_lock(&t->lock);
	while (t->rc && t->alive && !t->looked)
		pthread_cond_wait(&t->news, &t->lock);
	if (t->rc && t->comm->ranks > 1)
		rc = t->looked ? 0 : -ENODATA;
	if (t->looked)
		memcpy(missing, t->missing, bytes);
	pthread_mutex_unlock(&t->lock);
	return rc;
}

bool gf_comm_thread_enter(struct gf_comm_thread *t)
{
	bool go;

	pthread_mutex_lock(&t->lock);
	while (!t->running && !t->quit)
		pthread_cond_wait(&t->wake, &t->lock);
	go = t->running;
	pthread_mutex_unlock(&t->lock);
	return go;
}

bool gf_comm_thread_quits(struct gf_comm_thread *t)
{
	bool quit;

	pthread_mutex_lock(&t->lock);
	quit = t->quit;
	pthread_mutex_unlock(&t->lock);
	return quit;
}

void gf_comm_thread_nap(struct gf_comm_thread *t, double seconds)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(seconds * 1e9);
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&t->wake, &t->lock, &until);
}

int gf_comm_thread_serve(struct gf_comm_thread *t, bool *served, struct gf_error *err)
{
	struct gf_comm_call call;

	pthread_mutex_lock(&t->lock);
	call = t->call;
	pthread_mutex_unlock(&t->lock);
	if (!call.wanted)
		return 0;
	*served = true;
	t->watch->self.phase = GF_PHASE_CALL;
	t->watch->self.calls++;
	call.rc = call.fn(t->comm, call.ctx, err);
	/* All ranks agree on a call's own failure. After a broken wait they agree on nothing. */
	if (call.rc && (t->comm->broken || call.rc == -ETIMEDOUT))
		return call.rc;
	pthread_mutex_lock(&t->lock);
	if (call.rc && call.err)
		*call.err = *err;
	t->call.rc = call.rc;
	t->call.wanted = false;
	pthread_cond_broadcast(&t->news);
	pthread_mutex_unlock(&t->lock);
	return 0;
}

void gf_comm_thread_give_up(struct gf_comm_thread *t, int rc, const struct gf_error *why)
{
	double passed_s, until_s = 0;
	struct gf_error ignored;

	gf_watch_give_up(t->watch, rc, why);
	gf_watch_ask(t->watch);
	pthread_mutex_lock(&t->lock);
	gf_comm_thread_keep(t, rc, why);
	for (;;) {
		if (!t->looked && gf_watch_missing(t->watch, t->missing)) {
			t->looked = true;
			pthread_cond_broadcast(&t->news);
		}
		if (t->quit && until_s == 0)
			until_s = gf_clock_s() + LINGER_S;
		if (t->quit &&
		    (gf_clock_s() >= until_s || !gf_liveness_pending(t->watch->liveness)))
			break;
		gf_comm_thread_nap(t, ANSWER_S);
		pthread_mutex_unlock(&t->lock);
		(void)gf_watch_look(t->watch, &passed_s, &ignored);
		pthread_mutex_lock(&t->lock);
	}
	pthread_mutex_unlock(&t->lock);
}
