/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start rule, and the communication thread. It starts messages that may start and moves those
 * under way. It also serves calls and answers other ranks, and sleeps in between. A compute thread
 * that has no processor beside it and waits for messages takes these rounds in its place.
 */

#include "base/clock.h"
#include "base/heap.h"
#include "base/locale.h"
#include "documents/start_rule.h"
#include "runtime/engine/thread_parts.h"
#include "transport/backoff.h"

/* With nothing under way: how often other ranks' questions are looked for. */
#define IDLE_S 1e-2

/* The step whose message starts next; NULL: all begun have started all. */
static struct gf_thread_step *starting(const struct gf_thread *e)
{
	struct gf_thread_step *s;

	for (uint64_t n = e->nended; n < e->base.nbegun; n++) {
		s = gf_thread_step(e, n);
		if (s->next < s->nwork)
			return s;
	}
	return NULL;
}

bool gf_thread_may_start(struct gf_thread *e)
{
	struct gf_thread_step *s = starting(e);
	const struct gf_work *w;

	if (e->base.thread.rc || !s)
		return false;
	w = &s->work[s->next];
	return gf_may_start(&(struct gf_held){
		.by_release = w->at_end && !s->backward_ended,
		.by_gradients = !gf_work_ready(w, s->tensor_ready, &s->seen),
		.by_half = w->after == GF_AFTER_ALL ? s->nended < s->next
						    : w->after && !s->messages[w->after - 1].ended,
		.by_step = e->base.hooks.serial && s != gf_thread_step(e, e->nended),
		.simultaneous = w->simultaneous,
		.active = e->nactive,
		.lanes = e->base.lanes,
	});
}

/* Takes the next message of that step off the list; under lock. */
static size_t take(struct gf_thread *e, struct gf_thread_step *s)
{
	size_t i = s->next++, k;
	const struct gf_work *w = &s->work[i];
	struct gf_message_times *t = &s->times[i];

	e->nactive++;
	t->ready_s = w->at_end ? s->backward_end_s : 0;
	for (k = w->first; k <= w->last; k++)
		if (s->ready_s[k] > t->ready_s)
			t->ready_s = s->ready_s[k];
	t->start_s = gf_thread_now(e);
	/* The next message may begin anywhere, also before this one ends. */
	s->seen = 0;
	return i;
}

typedef int hook_fn(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		    struct gf_error *err);

/* Calls prepare or finish, and counts the time; without the lock. */
static int call_hook(struct gf_thread *e, hook_fn *hook, const struct gf_thread_step *s,
		     size_t message, struct gf_error *err)
{
	double began_s;
	int rc;

	if (!hook)
		return 0;
	began_s = gf_thread_now(e);
	rc = hook(e->base.hooks.ctx, (size_t)(s - e->steps), message, NULL, err);
	e->hooks_s += gf_thread_now(e) - began_s;
	return rc;
}

/* Lets other threads see the counts. */
static void publish(struct gf_thread *e)
{
	atomic_store_explicit(&e->base.handling_s, e->hooks_s + gf_exec_coding_s(e->exec),
			      memory_order_relaxed);
}

static int end_step(struct gf_thread *e, struct gf_thread_step *s, struct gf_error *err)
{
	const struct gf_engine_hooks *hooks = &e->base.hooks;
	double began_s = gf_thread_now(e);
	int rc = 0;

	if (hooks->end) {
		gf_thread_unlock(e);
		rc = hooks->end(hooks->ctx, (size_t)(s - e->steps), NULL, err);
		gf_thread_lock(e);
		e->hooks_s += gf_thread_now(e) - began_s;
	}
	if (rc)
		return rc;
	s->ended = true;
	e->nended++;
	if (e->base.lent)
		return 0;
	e->base.sent_bytes = e->sent_bytes;
	e->base.hooks_s = e->hooks_s;
	e->base.coding_s = gf_exec_coding_s(e->exec);
	publish(e);
	return 0;
}

/* The message has come; and the step's end, when it was the last. The lock is let go for hooks. */
static int settle(struct gf_thread *e, struct gf_thread_step *s, size_t message,
		  struct gf_error *err)
{
	int rc = 0;

	s->times[message].end_s = gf_thread_now(e);
	s->messages[message].ended = true;
	s->nended++;
	e->nactive--;
	/* Messages of a later step may have ended before. */
	while (!rc && e->nended < e->base.nbegun) {
		s = gf_thread_step(e, e->nended);
		if (!s->nwork || s->nended < s->nwork)
			break;
		rc = end_step(e, s, err);
	}
	if (!e->base.lent)
		pthread_cond_broadcast(&e->base.thread.news);
	return rc;
}

void gf_thread_advance_alone(struct gf_thread *e)
{
	const struct gf_engine_hooks *hooks = &e->base.hooks;
	struct gf_error err = {""};
	struct gf_thread_step *s;
	size_t i;
	int rc;

	while (gf_thread_may_start(e)) {
		s = starting(e);
		i = take(e, s);
		rc = call_hook(e, hooks->prepare, s, i, &err);
		rc = rc ?: call_hook(e, hooks->finish, s, i, &err);
		rc = rc ?: settle(e, s, i, &err);
		if (rc && hooks->failed)
			hooks->failed(hooks->ctx, rc);
		if (rc)
			gf_comm_thread_keep(&e->base.thread, rc, &err);
	}
}

/* Which message failed, before the reason. */
static void name_message(const struct gf_thread *e, const struct gf_thread_active *a,
			 struct gf_error *err)
{
	GF_FREED char *name =
		gf_work_name(&a->step->work[a->message], e->base.plan, a->step->number, a->message);

	gf_error_prefix(err, "%s", name);
}

static struct gf_thread_message *message_of(const struct gf_thread_active *a)
{
	return &a->step->messages[a->message];
}

static int launch(struct gf_thread *e, const struct gf_thread_active *a, struct gf_error *err)
{
	const struct gf_work *w = &a->step->work[a->message];
	struct gf_thread_message *m = message_of(a);
	int rc;

	m->stuck_s = 0;
	m->moves = 0;
	rc = call_hook(e, e->base.hooks.prepare, a->step, a->message, err);
	rc = rc ?: gf_thread_path(e, a->step, a->message, err);
	rc = rc ?: gf_exec_start(m->path->run, w->data, err);
	if (rc)
		name_message(e, a, err);
	return rc;
}

static int start_messages(struct gf_thread *e, bool *moved, struct gf_error *err)
{
	struct gf_thread_active *a;
	int rc = 0;

	do {
		gf_thread_lock(e);
		if (!gf_thread_may_start(e)) {
			gf_thread_unlock(e);
			break;
		}
		a = &e->active[e->nactive];
		a->step = starting(e);
		a->message = take(e, a->step);
		/* The step may have begun since note_standing. */
		e->base.thread.watch->self.step = a->step->number;
		e->base.thread.watch->self.started = a->step->next;
		gf_thread_unlock(e);
		*moved = true;
		rc = launch(e, a, err);
	} while (!rc);
	return rc;
}

/* Counts the time without movement. */
static void count_stuck(struct gf_thread_message *m, double passed_s)
{
	uint64_t moves = gf_exec_moves(m->path->run);

	m->stuck_s = moves == m->moves ? m->stuck_s + passed_s : 0;
	m->moves = moves;
}

static int move_runs(struct gf_thread *e, bool *moved, struct gf_error *err)
{
	const struct gf_exec_run *run;
	int rc, k;

	rc = gf_exec_progress(e->exec, moved, err);
	for (k = 0; rc && k < e->nactive; k++) {
		run = message_of(&e->active[k])->path->run;
		if (gf_exec_failed(run)) {
			name_message(e, &e->active[k], err);
			break;
		}
	}
	return rc;
}

/* The message that has stood still for longest, if one has for too long. */
static int check_stuck(struct gf_thread *e, double passed_s, struct gf_error *err)
{
	const struct gf_thread_active *worst = &e->active[0];
	double stuck_s;
	int rc, k;

	if (!e->nactive)
		return 0;
	for (k = 0; k < e->nactive; k++)
		count_stuck(message_of(&e->active[k]), passed_s);
	for (k = 1; k < e->nactive; k++)
		if (message_of(&e->active[k])->stuck_s > message_of(worst)->stuck_s)
			worst = &e->active[k];
	stuck_s = message_of(worst)->stuck_s;
	e->base.thread.watch->self.step = worst->step->number;
	rc = gf_watch_stuck(e->base.thread.watch, stuck_s, worst->message, err);
	if (rc == -ETIMEDOUT) {
		gf_error_prefix(err, "no progress for %g s", e->base.thread.watch->timeout_s);
		name_message(e, worst, err);
	}
	return rc;
}

static int end_message(struct gf_thread *e, int k, struct gf_error *err)
{
	struct gf_thread_active a = e->active[k];
	int rc = call_hook(e, e->base.hooks.finish, a.step, a.message, err);

	if (rc) {
		name_message(e, &a, err);
		return rc;
	}
	e->active[k] = e->active[e->nactive - 1];
	gf_thread_lock(e);
	rc = settle(e, a.step, a.message, err);
	gf_thread_unlock(e);
	return rc;
}

/* Only this thread changes active and nactive, so it reads them unlocked. */
static int move_messages(struct gf_thread *e, double passed_s, bool *moved, struct gf_error *err)
{
	struct gf_thread_message *m;
	int rc, k = 0;

	rc = move_runs(e, moved, err);
	while (!rc && k < e->nactive) {
		m = message_of(&e->active[k]);
		if (!gf_exec_done(m->path->run)) {
			k++;
			continue;
		}
		m->sent_bytes = gf_thread_path_bytes(e, m->path);
		e->sent_bytes += m->sent_bytes;
		rc = end_message(e, k, err);
		*moved = true;
	}
	if (!rc && passed_s > 0)
		rc = check_stuck(e, passed_s, err);
	return rc;
}

/* Notes how far this rank has come, for ranks that ask. */
static void note_standing(struct gf_thread *e)
{
	struct gf_standing *self = &e->base.thread.watch->self;
	const struct gf_thread_step *s;

	gf_thread_lock(e);
	s = starting(e);
	self->phase = e->nactive ? GF_PHASE_NETWORK : s ? GF_PHASE_GRADIENT : GF_PHASE_IDLE;
	if (!s && e->base.nbegun)
		s = gf_thread_step(e, e->base.nbegun - 1);
	self->step = s ? s->number : e->base.before;
	self->started = s ? s->next : 0;
	gf_thread_unlock(e);
}

/* A call is served once every message of every step has ended; under lock. */
static bool may_serve(const struct gf_thread *e)
{
	return e->base.thread.call.wanted && e->nended == e->base.nbegun;
}

static int serve_call(struct gf_thread *e, bool *moved, struct gf_error *err)
{
	bool now;

	gf_thread_lock(e);
	now = may_serve(e);
	gf_thread_unlock(e);
	return now ? gf_comm_thread_serve(&e->base.thread, moved, err) : 0;
}

/* Does a piece of the work that the hooks have for later. */
static bool use_time(struct gf_thread *e)
{
	struct gf_thread_step *s = NULL;
	size_t nready = 0;
	double began_s;
	bool did;

	if (!e->base.hooks.meanwhile)
		return false;
	gf_thread_lock(e);
	if (e->nended < e->base.nbegun) {
		s = gf_thread_step(e, e->nended);
		nready = s->nready;
	}
	gf_thread_unlock(e);
	if (!s)
		return false;
	began_s = gf_clock_s();
	did = e->base.hooks.meanwhile(e->base.hooks.ctx, (size_t)(s - e->steps), nready);
	e->hooks_s += did ? gf_clock_s() - began_s : 0;
	return did;
}

/* Sleeps until something is to be done, or it is time to look again. free_s: nothing can move
 * before. */
static void rest(struct gf_thread *e, struct gf_backoff *backoff, double free_s)
{
	double sleep_s = gf_backoff_next_free(backoff, free_s), from_s = 0;

	if (free_s > 0 && sleep_s > 0)
		from_s = gf_clock_s();
	gf_thread_lock(e);
	if (!e->nactive)
		sleep_s = IDLE_S;
	if (sleep_s > 0 && !e->base.thread.quit && !e->relieved && !may_serve(e) &&
	    !gf_thread_may_start(e))
		gf_comm_thread_nap(&e->base.thread, sleep_s);
	gf_thread_unlock(e);
	if (from_s > 0)
		gf_backoff_slept(backoff, sleep_s, gf_clock_s() - from_s);
}

/* One round; an error ends the engine. */
static int work(struct gf_thread *e, bool *moved, struct gf_error *err)
{
	bool progress = false;
	double passed_s;
	int rc;

	if (!e->base.lent)
		note_standing(e);
	rc = gf_watch_look(e->base.thread.watch, &passed_s, err);
	rc = rc ?: start_messages(e, moved, err);
	rc = rc ?: move_messages(e, passed_s, &progress, err);
	*moved |= progress;
	if (!e->base.lent)
		publish(e);
	return rc;
}

int gf_thread_round(struct gf_thread *e, struct gf_error *err)
{
	bool moved = false;
	int rc;

	if (e->rests)
		gf_backoff_rest(&e->backoff, e->free_s);
	rc = work(e, &moved, err);
	e->free_s = gf_exec_free_s(e->exec);
	if (moved && !gf_backoff_worth(&e->backoff, e->free_s)) {
		gf_backoff_reset(&e->backoff);
		e->rests = false;
	} else {
		e->rests = !rc && !use_time(e);
	}
	return rc;
}

/* Waits while the compute thread moves messages; the end of that is signalled only if something is
 * left to do. Returns what has failed there. */
static int enter_round(struct gf_thread *e, struct gf_error *err)
{
	struct gf_comm_thread *t = &e->base.thread;
	int rc;

	gf_thread_lock(e);
	while (e->relieved && !e->failed && !t->rc && !t->quit)
		gf_comm_thread_nap(t, IDLE_S);
	rc = gf_comm_thread_kept(t, err); /* the caller's own */
	if (!rc && e->failed) {
		rc = e->failed;
		*err = e->failure;
	}
	e->busy = !rc;
	gf_thread_unlock(e);
	return rc;
}

static void leave_round(struct gf_thread *e)
{
	gf_thread_lock(e);
	e->busy = false;
	if (e->relieved)
		pthread_cond_broadcast(&e->base.thread.news);
	gf_thread_unlock(e);
}

void *gf_thread_main(void *engine)
{
	struct gf_heap_guard guard GF_HEAP_GUARD;
	struct gf_thread *e = engine;
	struct gf_backoff backoff = {
		.beside_compute = true,
		.crowded = e->crowded || e->base.comm->crowded,
	};
	struct gf_error err = {""};
	bool moved, goes_on, rests;
	double free_s;
	int rc;

	(void)gf_locale_enter();
	gf_backoff_precise_sleeps();
	gf_backoff_short_slices();
	if (GF_HEAP_FAILS(guard)) { /* nothing under way can go on */
		gf_error_set(&err, -ENOMEM, "%s", guard.line);
		if (e->base.hooks.failed)
			e->base.hooks.failed(e->base.hooks.ctx, -ENOMEM);
		if (!GF_HEAP_FAILS(guard)) /* else others are not told */
			gf_comm_thread_give_up(&e->base.thread, -ENOMEM, &err);
		return NULL;
	}
	if (!gf_comm_thread_enter(&e->base.thread))
		return NULL;
	while (!gf_comm_thread_quits(&e->base.thread)) {
		moved = false;
		rc = enter_round(e, &err);
		rc = rc ?: work(e, &moved, &err);
		rc = rc ?: serve_call(e, &moved, &err);
		free_s = gf_exec_free_s(e->exec);
		goes_on = !gf_backoff_worth(&backoff, free_s) && moved;
		rests = !goes_on && !rc && !use_time(e);
		if (rc) { /* the round stays this thread's */
			if (e->base.hooks.failed)
				e->base.hooks.failed(e->base.hooks.ctx, rc);
			gf_comm_thread_give_up(&e->base.thread, rc, &err);
			break;
		}
		leave_round(e);
		if (rests)
			rest(e, &backoff, free_s);
		else if (goes_on)
			gf_backoff_reset(&backoff);
	}
	return NULL;
}
