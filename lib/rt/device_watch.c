/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that watches messages on GPUs, and talks to the other ranks. */
#include <errno.h>
#include <stdlib.h>

#include "rt/device_parts.h"

/* Between two looks. */
#define LOOK_S 1e-3

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
	struct gf_standing *self = &e->base.thread.watch.self;

	self->step = e->base.nbegun;
	self->started = e->next;
	if (e->seen < e->issued) {
		self->step = e->seen / e->nmessages + 1;
		self->started = e->seen % e->nmessages + under_way;
	}
	self->phase = under_way ? GF_PHASE_NETWORK
		      : e->next < e->nmessages && e->base.nbegun
			      ? GF_PHASE_GRADIENT
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
	rc = gf_watch_stuck(&e->base.thread.watch, e->stuck_s,
			    e->seen % e->nmessages, err);
	if (rc == -ETIMEDOUT) {
		char *peers = gf_device_program_peers(
			e->messages[e->seen % e->nmessages].program);

		gf_error_prefix(err, "no end for %g s, with %s",
				e->base.thread.watch.timeout_s, peers);
		gf_device_name(e, e->seen, err);
		free(peers);
	}
	return rc;
}

static int watch_once(struct gf_device_engine *e, struct gf_error *err)
{
	bool under_way = false, served = false;
	double passed_s;
	int rc = gf_watch_look(&e->base.thread.watch, &passed_s, err);

	if (rc)
		return rc;
	/* While the other thread enqueues, there is nothing to look at; it has
	 * limits of its own, and other ranks are answered meanwhile. */
	if (pthread_mutex_trylock(&e->base.thread.lock))
		return 0;
	rc = e->base.thread.rc ? 0 : look(e, &under_way, err);
	if (!rc && !e->base.thread.rc) {
		note_standing(e, under_way);
		rc = check_stuck(e, under_way, passed_s, err);
	}
	pthread_mutex_unlock(&e->base.thread.lock);
	/* without the lock, since it may wait for other ranks */
	return rc ? rc : gf_comm_thread_serve(&e->base.thread, &served, err);
}

void *gf_device_watch(void *engine)
{
	struct gf_device_engine *e = engine;
	struct gf_comm_thread *t = &e->base.thread;
	struct gf_error err = {""};
	bool quit, failed;
	int rc;

	if (!gf_comm_thread_enter(t))
		return NULL;
	do {
		rc = watch_once(e, &err);
		pthread_mutex_lock(&t->lock);
		if (rc)
			gf_device_fail(e, rc, &err);
		if (!t->quit && !t->rc && !t->call.wanted)
			gf_comm_thread_nap(t, LOOK_S);
		quit = t->quit;
		failed = t->rc != 0;
		pthread_mutex_unlock(&t->lock);
	} while (!quit && !failed);
	if (failed)
		gf_comm_thread_give_up(t, t->rc, &t->reason);
	return NULL;
}
