/* SPDX-License-Identifier: BSD-3-Clause */
/* What the compute thread calls, and the start rule. */
#include "engine/engine.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "engine/thread_parts.h"

struct gf_engine_step *gf_engine_starting(const struct gf_engine *e)
{
	struct gf_engine_step *s;
	uint64_t n;

	for (n = e->nended; n < e->nbegun; n++) {
		s = gf_engine_step(e, n);
		if (s->next < s->nwork)
			return s;
	}
	return NULL;
}

static bool tensors_ready(struct gf_engine_step *s, const struct gf_work *w)
{
	if (s->seen < w->first)
		s->seen = w->first;
	while (s->seen <= w->last && s->tensor_ready[s->seen])
		s->seen++;
	return s->seen > w->last && (!w->at_end || s->backward_ended);
}

bool gf_engine_may_start(struct gf_engine *e)
{
	struct gf_engine_step *s = gf_engine_starting(e);
	const struct gf_work *w;

	if (e->thread.rc || !s)
		return false;
	if (e->hooks.serial && s != gf_engine_step(e, e->nended))
		return false;
	w = &s->work[s->next];
	if (!tensors_ready(s, w))
		return false;
	if (w->after && !s->messages[w->after - 1].ended)
		return false;
	return w->simultaneous ? e->nactive < e->lanes : e->nactive == 0;
}

size_t gf_engine_take(struct gf_engine *e, struct gf_engine_step *s)
{
	size_t i = s->next++, k;
	const struct gf_work *w = &s->work[i];
	struct gf_message_times *t = &s->times[i];

	e->nactive++;
	t->ready_s = w->at_end ? s->backward_end_s : 0;
	for (k = w->first; k <= w->last; k++)
		if (s->ready_s[k] > t->ready_s)
			t->ready_s = s->ready_s[k];
	t->start_s = gf_clock_s();
	/* The next message may begin anywhere, also before this one ends. */
	s->seen = 0;
	return i;
}

void gf_engine_hook(struct gf_engine *e,
		    void (*hook)(void *ctx, size_t slot, size_t message),
		    const struct gf_engine_step *s, size_t message)
{
	double began_s;

	if (!hook)
		return;
	began_s = gf_clock_s();
	hook(e->hooks.ctx, (size_t)(s - e->steps), message);
	e->counted.hooks_s += gf_clock_s() - began_s;
}

static void end_step(struct gf_engine *e, struct gf_engine_step *s)
{
	double began_s = gf_clock_s();

	if (e->hooks.end) {
		pthread_mutex_unlock(&e->thread.lock);
		e->hooks.end(e->hooks.ctx, (size_t)(s - e->steps));
		pthread_mutex_lock(&e->thread.lock);
		e->counted.hooks_s += gf_clock_s() - began_s;
	}
	e->counted.coding_s = gf_exec_coding_s(e->exec);
	e->totals = e->counted;
	gf_engine_publish(e);
	s->ended = true;
	e->nended++;
}

void gf_engine_settle(struct gf_engine *e, struct gf_engine_step *s,
		      size_t message)
{
	s->times[message].end_s = gf_clock_s();
	s->messages[message].ended = true;
	s->nended++;
	e->nactive--;
	/* Messages of a later step may have ended before. */
	while (e->nended < e->nbegun) {
		s = gf_engine_step(e, e->nended);
		if (s->nended < s->nwork)
			break;
		end_step(e, s);
	}
	pthread_cond_broadcast(&e->thread.news);
}

/* One rank: whatever may start has ended. */
static void advance_alone(struct gf_engine *e)
{
	struct gf_engine_step *s;
	size_t i;

	while (gf_engine_may_start(e)) {
		s = gf_engine_starting(e);
		i = gf_engine_take(e, s);
		gf_engine_hook(e, e->hooks.prepare, s, i);
		gf_engine_hook(e, e->hooks.finish, s, i);
		gf_engine_settle(e, s, i);
	}
}

/* After a change that may let a message start. Unlocks before it wakes the
 * other thread, which would only wait for the lock. */
static void hand_over(struct gf_engine *e)
{
	bool start = gf_engine_may_start(e);

	if (!e->thread.alive)
		advance_alone(e);
	pthread_mutex_unlock(&e->thread.lock);
	if (start && e->thread.alive)
		pthread_cond_signal(&e->thread.wake);
}

void gf_engine_count_from(struct gf_engine *e, size_t steps)
{
	pthread_mutex_lock(&e->thread.lock);
	assert(e->thread.rc || e->nended == e->nbegun);
	e->before = steps - e->nbegun;
	pthread_mutex_unlock(&e->thread.lock);
}

void gf_engine_begin(struct gf_engine *e)
{
	gf_engine_begin_work(e, e->plan_work, e->nplan_work);
}

void gf_engine_begin_work(struct gf_engine *e, const struct gf_work *work,
			  size_t nwork)
{
	struct gf_engine_step *s;
	size_t i;

	pthread_mutex_lock(&e->thread.lock);
	assert(e->thread.rc || e->nbegun - e->nwaited < e->depth);
	if (!e->thread.rc) {
		s = gf_engine_step(e, e->nbegun++);
		gf_engine_reserve(s, nwork);
		s->number = e->before + e->nbegun;
		s->work = work;
		s->nwork = nwork;
		s->next = s->seen = s->nended = s->nready = 0;
		s->backward_ended = s->ended = false;
		memset(s->tensor_ready, 0,
		       e->pool->ntensors * sizeof(*s->tensor_ready));
		for (i = 0; i < nwork; i++)
			s->messages[i].ended = false;
	}
	pthread_mutex_unlock(&e->thread.lock);
}

/* The step that backward is in. */
static struct gf_engine_step *newest(const struct gf_engine *e)
{
	return e->nbegun ? gf_engine_step(e, e->nbegun - 1) : &e->steps[0];
}

size_t gf_engine_next_slot(const struct gf_engine *e)
{
	return e->nbegun % e->depth;
}

static void set_ready(struct gf_engine *e, struct gf_engine_step *s,
		      size_t tensor)
{
	if (s->tensor_ready[tensor] || e->thread.rc)
		return;
	s->tensor_ready[tensor] = true;
	s->ready_s[tensor] = gf_clock_s();
	while (s->nready < e->pool->ntensors && s->tensor_ready[s->nready])
		s->nready++;
}

void gf_engine_ready(struct gf_engine *e, size_t tensor)
{
	assert(tensor < e->pool->ntensors);
	pthread_mutex_lock(&e->thread.lock);
	set_ready(e, newest(e), tensor);
	hand_over(e);
}

void gf_engine_backward_end(struct gf_engine *e)
{
	struct gf_engine_step *s;
	size_t i;

	pthread_mutex_lock(&e->thread.lock);
	s = newest(e);
	for (i = 0; i < e->pool->ntensors; i++)
		set_ready(e, s, i);
	s->backward_end_s = gf_clock_s();
	s->backward_ended = true;
	hand_over(e);
}

/* The oldest step under way; of none, the one before. */
static struct gf_engine_step *oldest(const struct gf_engine *e)
{
	if (e->nwaited < e->nbegun)
		return gf_engine_step(e, e->nwaited);
	return newest(e);
}

static void tell_bytes(struct gf_engine *e, struct gf_engine_message *m)
{
	e->waited_bytes += m->sent_bytes;
	m->sent_bytes = 0;
}

int gf_engine_wait_message(struct gf_engine *e, size_t message,
			   struct gf_error *err)
{
	struct gf_engine_step *s;
	int rc;

	pthread_mutex_lock(&e->thread.lock);
	s = oldest(e);
	assert(e->thread.rc || message < s->nwork);
	while (!e->thread.rc && !s->messages[message].ended)
		pthread_cond_wait(&e->thread.news, &e->thread.lock);
	rc = gf_comm_thread_kept(&e->thread, err);
	if (!rc)
		tell_bytes(e, &s->messages[message]);
	pthread_mutex_unlock(&e->thread.lock);
	return rc;
}

int gf_engine_wait(struct gf_engine *e, struct gf_error *err)
{
	struct gf_engine_step *s;
	size_t i;
	int rc;

	pthread_mutex_lock(&e->thread.lock);
	s = oldest(e);
	assert(e->thread.rc || (e->nwaited < e->nbegun && s->backward_ended));
	while (!e->thread.rc && !s->ended)
		pthread_cond_wait(&e->thread.news, &e->thread.lock);
	rc = gf_comm_thread_kept(&e->thread, err);
	e->nwaited += !rc;
	for (i = 0; !rc && i < s->nwork; i++)
		tell_bytes(e, &s->messages[i]);
	pthread_mutex_unlock(&e->thread.lock);
	return rc;
}

int gf_engine_earlier_ended(struct gf_engine *e, bool wait, bool *ended,
			    struct gf_error *err)
{
	int rc;

	pthread_mutex_lock(&e->thread.lock);
	while (wait && !e->thread.rc && e->nended + 1 < e->nbegun)
		pthread_cond_wait(&e->thread.news, &e->thread.lock);
	*ended = e->nended + 1 >= e->nbegun;
	rc = gf_comm_thread_kept(&e->thread, err);
	pthread_mutex_unlock(&e->thread.lock);
	return rc;
}

/* The step that was waited for last. */
static const struct gf_engine_step *finished(const struct gf_engine *e)
{
	return gf_engine_step(e, e->nwaited + e->depth - 1);
}

size_t gf_engine_last_slot(const struct gf_engine *e)
{
	return (size_t)(finished(e) - e->steps);
}

const struct gf_message_times *gf_engine_times(const struct gf_engine *e)
{
	return finished(e)->times;
}

double gf_engine_ready_s(const struct gf_engine *e, size_t tensor)
{
	return finished(e)->ready_s[tensor];
}

struct gf_engine_totals gf_engine_totals(struct gf_engine *e)
{
	struct gf_engine_totals totals;

	pthread_mutex_lock(&e->thread.lock);
	totals = e->totals;
	pthread_mutex_unlock(&e->thread.lock);
	return totals;
}

uint64_t gf_engine_waited_bytes(const struct gf_engine *e)
{
	return e->waited_bytes;
}

void gf_engine_publish(struct gf_engine *e)
{
	atomic_store_explicit(&e->handling_s,
			      e->counted.hooks_s + gf_exec_coding_s(e->exec),
			      memory_order_relaxed);
}

double gf_engine_handling_s(const struct gf_engine *e)
{
	return atomic_load_explicit(&e->handling_s, memory_order_relaxed);
}

uint64_t gf_engine_dense_bytes(const struct gf_engine *e)
{
	return e->dense_bytes;
}

int gf_engine_call(struct gf_engine *e,
		   int (*fn)(struct gf_comm *comm, void *ctx,
			     struct gf_error *err),
		   void *ctx, struct gf_error *err)
{
	int rc;

	pthread_mutex_lock(&e->thread.lock);
	rc = gf_comm_thread_kept(&e->thread, err);
	if (!rc && e->nended < e->nbegun && !newest(e)->backward_ended)
		rc = gf_error_set(err, -EINVAL,
				  "a call in the middle of a step");
	if (rc || !e->thread.alive) {
		pthread_mutex_unlock(&e->thread.lock);
		return rc ? rc : fn(e->comm, ctx, err);
	}
	rc = gf_comm_thread_call_locked(&e->thread, fn, ctx, err);
	pthread_mutex_unlock(&e->thread.lock);
	return rc;
}
