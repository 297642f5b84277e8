/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that watches messages on GPUs, and talks to the other ranks. */

#include "base/heap.h"
#include "base/locale.h"
#include "runtime/engine/streams_parts.h"
#include "transport/backoff.h"

/* Between two looks. */
#define LOOK_S 1e-3

void gf_streams_name(const struct gf_streams *e, uint64_t step, size_t message,
		     struct gf_error *err)
{
	const struct gf_streams_step *s = gf_streams_step(e, step);
	GF_FREED char *name =
		gf_work_name(&s->work[message], e->base.plan, e->base.before + step + 1, message);

	gf_error_prefix(err, "%s on lane %zu", name, s->messages[message].lane);
}

int gf_streams_see(struct gf_streams *e, struct gf_error *err)
{
	struct gf_streams_step *s;
	int rc;

	for (; e->nseen < e->base.nbegun; e->nseen++) {
		s = gf_streams_step(e, e->nseen);
		for (; s->seen < s->issued; s->seen++, e->ends++) {
			rc = e->gpu->ops->query(e->gpu, s->messages[s->seen].end, err);
			if (rc != 1)
				return rc;
		}
		if (!s->nmessages || s->seen < s->nmessages)
			break;
	}
	return 0;
}

void gf_streams_fail(struct gf_streams *e, int rc, const struct gf_error *why)
{
	if (e->base.thread.rc || !rc)
		return;
	gf_lanes_abort(e->lanes, e->nlanes);
	gf_comm_thread_keep(&e->base.thread, rc, why);
}

/* The first step with a message that has not ended; NULL: there is none. */
static struct gf_streams_step *oldest(const struct gf_streams *e)
{
	return e->nseen < e->base.nbegun ? gf_streams_step(e, e->nseen) : NULL;
}

/* Sees what has ended, whether lanes have failed, and whether the first message that has not ended
 * is under way. */
static int look(struct gf_streams *e, bool *under_way, struct gf_error *err)
{
	const struct gf_streams_step *s;
	int rc = gf_streams_see(e, err);

	*under_way = false;
	s = oldest(e);
	if (!rc && s && s->seen < s->issued) {
		rc = e->gpu->ops->query(e->gpu, s->messages[s->seen].start, err);
		*under_way = rc == 1;
	}
	for (size_t i = 0; i < e->nlanes && rc >= 0; i++) {
		rc = gf_lane_check(&e->lanes[i], err);
		if (rc)
			gf_error_prefix(err, "lane %zu", i);
	}
	return rc < 0 ? rc : 0;
}

/* The watching thread looks at the same events, and gives up in time. With a watch that the caller
 * lends, this thread does so. */
int gf_streams_sync(struct gf_streams *e, struct gf_error *err)
{
	struct gf_comm *c = e->base.comm;
	struct gf_backoff backoff = {0};
	bool ended = false, under_way;
	int rc = 0;

	c->waits += e->base.lent;
	while (!rc && !ended) {
		pthread_mutex_lock(&e->base.thread.lock);
		rc = gf_comm_thread_kept(&e->base.thread, err);
		rc = rc ?: (e->base.lent ? look(e, &under_way, err) : gf_streams_see(e, err));
		ended = e->nseen == e->base.nbegun;
		if (!rc && !ended && e->base.lent && c->on_wait)
			rc = c->on_wait(c->on_wait_ctx, err);
		if (e->base.lent)
			gf_streams_fail(e, rc, err);
		pthread_mutex_unlock(&e->base.thread.lock);
		if (!rc && !ended)
			gf_backoff_wait(&backoff);
	}
	return rc;
}

/* Notes how far the device has come: the host may be ahead. Under lock. */
static void note_standing(struct gf_streams *e, bool under_way)
{
	struct gf_standing *self = &e->base.thread.watch->self;
	const struct gf_streams_step *newest, *s = oldest(e);

	if (!e->base.nbegun)
		return;
	newest = gf_streams_step(e, e->base.nbegun - 1);
	s = s ? s : newest;
	self->step = e->base.before + e->nseen + (e->nseen < e->base.nbegun);
	self->started = s->seen + under_way;
	self->phase = under_way                                                  ? GF_PHASE_NETWORK
		      : !newest->nmessages || newest->issued < newest->nmessages ? GF_PHASE_GRADIENT
										 : GF_PHASE_IDLE;
}

/* Time without an end counts only while a message is under way: before, it waits for this rank's
 * own gradients. */
static int check_stuck(struct gf_streams *e, bool under_way, double passed_s, struct gf_error *err)
{
	const struct gf_streams_step *s = oldest(e);
	GF_FREED char *peers = NULL;
	int rc;

	if (!under_way || e->stuck_at != e->ends)
		e->stuck_s = 0;
	else
		e->stuck_s += passed_s;
	e->stuck_at = e->ends;
	rc = gf_watch_stuck(e->base.thread.watch, e->stuck_s, under_way ? s->seen : 0, err);
	if (rc == -ETIMEDOUT) {
		peers = gf_lane_program_peers(&s->messages[s->seen].path->program);
		gf_error_prefix(err, "no end for %g s, with %s", e->base.thread.watch->timeout_s,
				peers);
		gf_streams_name(e, e->nseen, s->seen, err);
	}
	return rc;
}

static int watch_once(struct gf_streams *e, struct gf_error *err)
{
	struct gf_comm_thread *t = &e->base.thread;
	bool under_way = false, served = false;
	double passed_s;
	int rc = gf_watch_look(t->watch, &passed_s, err);

	if (rc)
		return rc;
	/* While the other thread enqueues, there is nothing to look at; it has limits of its own,
	 * and other ranks are answered meanwhile. */
	if (pthread_mutex_trylock(&t->lock))
		return 0;
	rc = t->rc ? 0 : look(e, &under_way, err);
	if (!rc && !t->rc) {
		note_standing(e, under_way);
		rc = check_stuck(e, under_way, passed_s, err);
	}
	pthread_mutex_unlock(&t->lock);
	/* without the lock, since it may wait for other ranks */
	return rc ?: gf_comm_thread_serve(t, &served, err);
}

void *gf_streams_watch(void *engine)
{
	struct gf_streams *e = engine;
	struct gf_comm_thread *t = &e->base.thread;
	struct gf_heap_guard guard GF_HEAP_GUARD;
	struct gf_error err = {""};
	bool quit, failed;
	int rc;

	(void)gf_locale_enter();
	if (GF_HEAP_FAILS(guard)) { /* which it needs for messages alone */
		gf_error_set(&err, -ENOMEM, "%s", guard.line);
		gf_engine_fail(&e->base, -ENOMEM, &err);
		return NULL;
	}
	if (!gf_comm_thread_enter(t))
		return NULL;
	do {
		rc = watch_once(e, &err);
		pthread_mutex_lock(&t->lock);
		gf_streams_fail(e, rc, &err);
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
