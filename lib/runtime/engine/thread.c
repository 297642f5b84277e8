/* SPDX-License-Identifier: BSD-3-Clause */
/* Making the engine, and the functions that the compute thread calls. */
#include "runtime/engine/thread_parts.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "transport/processors.h"

static struct gf_thread *thread_of(struct gf_engine *e)
{
	return (struct gf_thread *)e;
}

static void init_steps(struct gf_thread *e)
{
	size_t n = e->base.nready, i;

	e->steps = gf_xcalloc(e->base.depth, sizeof(*e->steps));
	for (i = 0; i < e->base.depth; i++) {
		struct gf_thread_step *s = &e->steps[i];

		s->tensor_ready = gf_xcalloc(n + 1, sizeof(*s->tensor_ready));
		s->ready_s = gf_xcalloc(n + 1, sizeof(*s->ready_s));
		gf_thread_reserve(s, e->base.nplan_work);
	}
}

static int make(struct gf_engine *engine, const struct gf_engine_config *config,
		struct gf_error *err)
{
	struct gf_thread *e = (struct gf_thread *)engine;

	e->segment_bytes = config->segment_bytes;
	e->crowded = gf_priority_crowded(config->comm, config->compute_threads);
	e->exec = gf_exec_new(config->comm);
	e->active = gf_xcalloc((size_t)engine->lanes, sizeof(*e->active));
	init_steps(e);
	/* sets take other paths, which cannot fail */
	if (engine->plan && gf_engine_sends_sets(engine->plan))
		return 0;
	return gf_thread_expect(engine, engine->plan_work, engine->nplan_work, err);
}

static int start(struct gf_engine *engine, struct gf_error *err)
{
	if (engine->comm->ranks == 1 || engine->lent)
		return 0;
	return gf_comm_thread_start(&engine->thread, gf_thread_main, engine, err);
}

static void free_step(struct gf_thread_step *s)
{
	for (size_t i = 0; i < s->capacity; i++)
		gf_thread_paths_free(&s->messages[i]);
	free(s->messages);
	free(s->times);
	free(s->tensor_ready);
	free(s->ready_s);
}

static void close(struct gf_engine *engine)
{
	struct gf_thread *e = (struct gf_thread *)engine;

	gf_comm_thread_stop(&e->base.thread);
	for (size_t i = 0; e->steps && i < e->base.depth; i++)
		free_step(&e->steps[i]);
	gf_exec_free(e->exec);
	free(e->steps);
	free(e->active);
}

/* The step that backward is in. */
static struct gf_thread_step *newest(const struct gf_thread *e)
{
	return e->base.nbegun ? gf_thread_step(e, e->base.nbegun - 1) : &e->steps[0];
}

/* After a change that may let a message start. Unlocks before it wakes the other thread, which
 * would only wait for the lock. If the step is awaited at once, its last messages are this
 * thread's. */
static void hand_over(struct gf_thread *e)
{
	const struct gf_thread_step *s = newest(e);
	bool start = gf_thread_may_start(e) &&
		     !(e->base.awaited_at_once && e->crowded && e->base.depth == 1 &&
		       s->nready == e->base.pool->ntensors);

	if (e->base.comm->ranks == 1)
		gf_thread_advance_alone(e);
	gf_thread_unlock(e);
	if (start && e->base.thread.alive)
		pthread_cond_signal(&e->base.thread.wake);
}

static void give_list(struct gf_thread_step *s, const struct gf_work *work, size_t nwork)
{
	gf_thread_reserve(s, nwork);
	s->work = work;
	s->nwork = work ? nwork : 0;
	for (size_t i = 0; i < s->nwork; i++)
		s->messages[i].ended = false;
}

/* Before the first gf_thread_round of several. */
static void enter_rounds(struct gf_thread *e)
{
	e->backoff.crowded = e->base.comm->crowded;
	e->rests = false;
	gf_backoff_reset(&e->backoff);
}

/* The watch is another engine's, too: the step is its next one. */
static void lend(struct gf_thread *e, struct gf_thread_step *s)
{
	struct gf_watch *w = e->base.thread.watch;

	s->number = ++w->self.step;
	w->self.started = 0;
	w->self.phase = GF_PHASE_NETWORK;
	enter_rounds(e);
	w->looked_s = gf_clock_s(); /* the rank has met the others, whom it need not answer yet */
}

static void begin(struct gf_engine *engine, const struct gf_work *work, size_t nwork)
{
	struct gf_thread *e = thread_of(engine);
	struct gf_thread_step *s;

	gf_thread_lock(e);
	assert(e->base.thread.rc || e->base.nbegun - e->base.nwaited < e->base.depth);
	if (!e->base.thread.rc) {
		s = gf_thread_step(e, e->base.nbegun++);
		s->number = e->base.before + e->base.nbegun;
		if (e->base.lent)
			lend(e, s);
		s->next = s->seen = s->nended = s->nready = 0;
		s->backward_ended = s->ended = false;
		memset(s->tensor_ready, 0, e->base.nready * sizeof(*s->tensor_ready));
		give_list(s, work, nwork);
	}
	gf_thread_unlock(e);
}

static void list(struct gf_engine *engine, const struct gf_work *work, size_t nwork)
{
	struct gf_thread *e = thread_of(engine);

	gf_thread_lock(e);
	if (!e->base.thread.rc)
		give_list(newest(e), work, nwork);
	gf_thread_unlock(e);
}

static void set_ready(struct gf_thread *e, struct gf_thread_step *s, size_t tensor)
{
	if (s->tensor_ready[tensor] || e->base.thread.rc)
		return;
	s->tensor_ready[tensor] = true;
	s->ready_s[tensor] = gf_thread_now(e);
	while (s->nready < e->base.pool->ntensors && s->tensor_ready[s->nready])
		s->nready++;
}

static void ready(struct gf_engine *engine, const size_t *tensors, size_t n)
{
	struct gf_thread *e = thread_of(engine);

	gf_thread_lock(e);
	for (size_t i = 0; i < n; i++)
		set_ready(e, newest(e), tensors[i]);
	hand_over(e);
}

static void backward_end(struct gf_engine *engine)
{
	struct gf_thread *e = thread_of(engine);
	struct gf_thread_step *s;

	gf_thread_lock(e);
	s = newest(e);
	for (size_t i = 0; i < e->base.nready; i++)
		set_ready(e, s, i);
	s->backward_end_s = gf_thread_now(e);
	s->backward_ended = true;
	hand_over(e);
}

/* The oldest step under way; of none, the one before. */
static struct gf_thread_step *oldest(const struct gf_thread *e)
{
	if (e->base.nwaited < e->base.nbegun)
		return gf_thread_step(e, e->base.nwaited);
	return newest(e);
}

static void tell_bytes(struct gf_thread *e, struct gf_thread_message *m)
{
	e->base.waited_bytes += m->sent_bytes;
	m->sent_bytes = 0;
}

/*
 * The compute thread waits for messages; under lock. Where it shares its processor with the
 * communication thread, it moves messages itself: a message would otherwise wait for the other
 * thread to be woken, and this one again.
 */
static void await_news(struct gf_thread *e)
{
	struct gf_comm_thread *t = &e->base.thread;
	struct gf_error err = {""};
	int rc;

	if (!e->crowded || !t->alive) {
		pthread_cond_signal(&t->wake);
		pthread_cond_wait(&t->news, &t->lock);
		return;
	}
	if (!e->relieved) {
		e->relieved = true;
		enter_rounds(e);
	}
	if (e->busy || e->failed) {
		pthread_cond_wait(&t->news, &t->lock);
		return;
	}
	gf_thread_unlock(e);
	rc = gf_thread_round(e, &err);
	gf_thread_lock(e);
	if (rc) {
		e->failed = rc;
		e->failure = err;
		pthread_cond_signal(&t->wake);
	}
}

/* The wait is over; under lock. */
static void end_wait(struct gf_thread *e)
{
	if (!e->relieved)
		return;
	e->relieved = false;
	if (e->nactive || e->failed || e->base.thread.call.wanted || gf_thread_may_start(e))
		pthread_cond_signal(&e->base.thread.wake);
}

static int wait_message(struct gf_engine *engine, size_t message, struct gf_error *err)
{
	struct gf_thread *e = thread_of(engine);
	struct gf_thread_step *s;
	int rc;

	gf_thread_lock(e);
	s = oldest(e);
	assert(e->base.thread.rc || message < s->nwork);
	while (!e->base.thread.rc && !s->messages[message].ended)
		await_news(e);
	end_wait(e);
	rc = gf_comm_thread_kept(&e->base.thread, err);
	if (!rc)
		tell_bytes(e, &s->messages[message]);
	gf_thread_unlock(e);
	return rc;
}

/* Until the step has ended, or something has failed; under lock. */
static void await(struct gf_thread *e, const struct gf_thread_step *s)
{
	struct gf_error err = {""};
	int rc;

	while (e->base.lent && !s->ended && !e->base.thread.rc) {
		rc = gf_thread_round(e, &err);
		if (rc)
			gf_comm_thread_keep(&e->base.thread, rc, &err);
	}
	if (e->base.lent)
		e->base.thread.watch->self.phase = GF_PHASE_IDLE;
	while (!e->base.thread.rc && !s->ended)
		await_news(e);
	end_wait(e);
}

static int wait(struct gf_engine *engine, struct gf_error *err)
{
	struct gf_thread *e = thread_of(engine);
	struct gf_thread_step *s;
	int rc;

	gf_thread_lock(e);
	s = oldest(e);
	assert(e->base.thread.rc || (e->base.nwaited < e->base.nbegun && s->backward_ended));
	await(e, s);
	rc = gf_comm_thread_kept(&e->base.thread, err);
	e->base.nwaited += !rc;
	for (size_t i = 0; !rc && i < s->nwork; i++)
		tell_bytes(e, &s->messages[i]);
	gf_thread_unlock(e);
	return rc;
}

static const struct gf_message_times *times(struct gf_engine *engine, uint64_t step)
{
	return gf_thread_step(thread_of(engine), step)->times;
}

static const struct gf_work *list_of(const struct gf_engine *engine, uint64_t step, size_t *n)
{
	const struct gf_thread_step *s = gf_thread_step((const struct gf_thread *)engine, step);

	*n = s->nwork;
	return s->work;
}

static const double *ready_times(const struct gf_engine *engine)
{
	const struct gf_thread *e = (const struct gf_thread *)engine;

	return gf_thread_step(e, e->base.nwaited - 1)->ready_s;
}

static struct gf_exec_run *run_of(struct gf_engine *engine, size_t message,
				  const struct gf_schedule **schedule)
{
	const struct gf_thread *e = (struct gf_thread *)engine;
	const struct gf_thread_path *path = e->steps->messages[message].path;

	*schedule = path ? &path->schedule : NULL;
	return path ? path->run : NULL;
}

/* Between steps. */
static int may_call(const struct gf_engine *engine, struct gf_error *err)
{
	const struct gf_thread *e = (const struct gf_thread *)engine;

	if (e->nended == e->base.nbegun || newest(e)->backward_ended)
		return 0;
	return gf_error_set(err, -EINVAL, "a call in the middle of a step");
}

static const struct gf_engine_thread_ops thread_ops = {
	.run_of = run_of,
	.ready_times = ready_times,
	.may_call = may_call,
};

const struct gf_engine_ops gf_engine_thread = {
	.name = "thread",
	.size_bytes = sizeof(struct gf_thread),
	.make = make,
	.start = start,
	.begin = begin,
	.list = list,
	.ready = ready,
	.backward_end = backward_end,
	.wait_message = wait_message,
	.wait = wait,
	.recipe = gf_thread_recipe,
	.expect = gf_thread_expect,
	.times = times,
	.list_of = list_of,
	.close = close,
	.thread = &thread_ops,
};
