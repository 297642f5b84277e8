/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that watches messages on GPUs, and talks to the other ranks. */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "rt/device_parts.h"

/* Between two looks. */
#define LOOK_S 1e-3
/* As the engine of rt/engine_thread.c: how long to tell the others. */
#define LINGER_S 0.2

/* Under lock; ends early when there is something to do. */
static void nap(struct gf_device_engine *e)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(LOOK_S * 1e9);
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&e->wake, &e->lock, &until);
}

/* Is the first message that has not ended under way? Have the lanes failed?
 * Under lock. */
static int look(struct gf_device_engine *e, bool *under_way,
		struct gf_error *err)
{
	size_t i;
	int rc = gf_device_see(e, err);

	if (!rc && e->seen < e->issued) {
		rc = e->k.gpu->ops->query(
			e->k.gpu, gf_device_events_of(e, e->seen)->start, err);
		*under_way = rc == 1;
	}
	for (i = 0; i < e->nlanes && rc >= 0; i++) {
		rc = gf_device_lane_check(&e->lanes[i], err);
		if (rc)
			gf_error_prefix(err, "lane %zu", i);
	}
	return rc < 0 ? rc : 0;
}

/* Where the device stands: the host may be ahead. Under lock. */
static void note_standing(struct gf_device_engine *e, bool under_way)
{
	struct gf_standing *self = &e->watch.self;

	self->step = e->step;
	self->started = e->next;
	if (e->seen < e->issued) {
		self->step = e->seen / e->nmessages + 1;
		self->started = e->seen % e->nmessages + under_way;
	}
	self->phase = under_way                           ? GF_PHASE_NETWORK
		      : e->next < e->nmessages && e->step ? GF_PHASE_GRADIENT
							  : GF_PHASE_IDLE;
}

/* Time without an end counts only while a message is under way: before, it
 * waits for this rank's own gradients. */
static int check_stuck(struct gf_device_engine *e, bool under_way,
		       double passed_s, struct gf_error *err)
{
	int rc;

	if (!under_way || e->stuck_at != e->seen)
		e->stuck_s = 0;
	else
		e->stuck_s += passed_s;
	e->stuck_at = e->seen;
	rc = gf_watch_stuck(&e->watch, e->stuck_s, e->seen % e->nmessages, err);
	if (rc == -ETIMEDOUT) {
		gf_error_prefix(err, "no end for %g s", e->watch.timeout_s);
		gf_device_name(e, e->seen, err);
	}
	return rc;
}

/* Without the lock, since it may wait for other ranks. */
static int serve_call(struct gf_device_engine *e, struct gf_error *err)
{
	struct gf_device_call call;

	pthread_mutex_lock(&e->lock);
	call = e->call;
	pthread_mutex_unlock(&e->lock);
	if (!call.wanted)
		return 0;
	e->watch.self.phase = GF_PHASE_CALL;
	e->watch.self.calls++;
	call.rc = call.fn(e->k.comm, call.ctx, err);
	if (call.rc && (e->k.comm->broken || call.rc == -ETIMEDOUT ||
			call.rc == -ECONNABORTED))
		return call.rc;
	pthread_mutex_lock(&e->lock);
	if (call.rc && call.err)
		*call.err = *err;
	e->call.rc = call.rc;
	e->call.wanted = false;
	pthread_cond_broadcast(&e->news);
	pthread_mutex_unlock(&e->lock);
	return 0;
}

static int watch_once(struct gf_device_engine *e, struct gf_error *err)
{
	bool under_way = false;
	double passed_s;
	int rc = gf_watch_look(&e->watch, &passed_s, err);

	if (rc)
		return rc;
	/* While the other thread enqueues, there is nothing to look at; it has
	 * limits of its own, and other ranks are answered meanwhile. */
	if (pthread_mutex_trylock(&e->lock))
		return 0;
	rc = e->rc ? 0 : look(e, &under_way, err);
	if (!rc && !e->rc) {
		note_standing(e, under_way);
		rc = check_stuck(e, under_way, passed_s, err);
	}
	pthread_mutex_unlock(&e->lock);
	return rc ? rc : serve_call(e, err);
}

/* Tells the others, and goes on answering until told to quit. */
static void give_up(struct gf_device_engine *e)
{
	double passed_s, until_s = 0;
	struct gf_error ignored;

	gf_watch_give_up(&e->watch, e->rc, &e->reason);
	pthread_mutex_lock(&e->lock);
	for (;;) {
		if (e->quit && until_s == 0)
			until_s = gf_clock_s() + LINGER_S;
		if (e->quit && (gf_clock_s() >= until_s ||
				!gf_liveness_pending(e->watch.liveness)))
			break;
		nap(e);
		pthread_mutex_unlock(&e->lock);
		(void)gf_watch_look(&e->watch, &passed_s, &ignored);
		pthread_mutex_lock(&e->lock);
	}
	pthread_mutex_unlock(&e->lock);
}

void *gf_device_watch(void *engine)
{
	struct gf_device_engine *e = engine;
	struct gf_error err = {""};
	bool quit = false, failed = false;
	int rc;

	pthread_mutex_lock(&e->lock);
	while (!e->running && !e->quit)
		pthread_cond_wait(&e->wake, &e->lock);
	/* the other thread may have failed already, and be leaving */
	quit = e->quit;
	failed = e->rc != 0;
	pthread_mutex_unlock(&e->lock);
	while (!quit && !failed) {
		rc = watch_once(e, &err);
		pthread_mutex_lock(&e->lock);
		if (rc)
			gf_device_fail(e, rc, &err);
		if (!e->quit && !e->rc && !e->call.wanted)
			nap(e);
		quit = e->quit;
		failed = e->rc != 0;
		pthread_mutex_unlock(&e->lock);
	}
	if (failed)
		give_up(e);
	return NULL;
}
