/* SPDX-License-Identifier: BSD-3-Clause */
/* What the compute thread calls. */
#include "rt/engine.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "rt/engine_parts.h"

bool gf_engine_may_start(const struct gf_engine *e)
{
	const struct gf_engine_message *m;

	if (e->rc || e->next == e->nmessages)
		return false;
	m = &e->messages[e->next];
	if (m->left || (m->at_end && !e->backward_ended))
		return false;
	return m->simultaneous ? e->nactive < e->lanes : e->nactive == 0;
}

void gf_engine_advance_alone(struct gf_engine *e)
{
	struct gf_engine_message *m;

	while (gf_engine_may_start(e)) {
		m = &e->messages[e->next++];
		m->times.start_s = m->times.end_s = gf_clock_s();
		m->ended = true;
		e->nended++;
	}
}

/* After a change that may let a message start. Unlocks before it wakes the
 * other thread, which would only wait for the lock. */
static void hand_over(struct gf_engine *e)
{
	bool start = gf_engine_may_start(e);

	if (!e->has_thread)
		gf_engine_advance_alone(e);
	pthread_mutex_unlock(&e->lock);
	if (start && e->has_thread)
		pthread_cond_signal(&e->wake);
}

void gf_engine_count_from(struct gf_engine *e, size_t steps)
{
	pthread_mutex_lock(&e->lock);
	assert(e->rc || e->nended == e->nmessages);
	e->step = steps;
	pthread_mutex_unlock(&e->lock);
}

void gf_engine_begin(struct gf_engine *e)
{
	size_t i;

	pthread_mutex_lock(&e->lock);
	assert(e->rc || e->nended == e->nmessages);
	if (!e->rc) {
		e->step++;
		e->next = e->nended = 0;
		e->backward_ended = false;
		memset(e->tensor_ready, 0,
		       e->pool->ntensors * sizeof(*e->tensor_ready));
		for (i = 0; i < e->nmessages; i++) {
			e->messages[i].left = e->messages[i].ntensors;
			e->messages[i].ended = false;
		}
	}
	pthread_mutex_unlock(&e->lock);
}

static void set_ready(struct gf_engine *e, size_t tensor)
{
	struct gf_engine_message *m = &e->messages[e->message_of[tensor]];

	if (e->tensor_ready[tensor] || e->rc)
		return;
	e->tensor_ready[tensor] = true;
	if (--m->left == 0)
		m->times.ready_s = gf_clock_s();
}

void gf_engine_ready(struct gf_engine *e, size_t tensor)
{
	assert(tensor < e->pool->ntensors);
	pthread_mutex_lock(&e->lock);
	set_ready(e, tensor);
	hand_over(e);
}

void gf_engine_backward_end(struct gf_engine *e)
{
	size_t i;

	pthread_mutex_lock(&e->lock);
	for (i = 0; i < e->pool->ntensors; i++)
		set_ready(e, i);
	for (i = 0; i < e->nmessages && !e->rc; i++)
		if (e->messages[i].at_end)
			e->messages[i].times.ready_s = gf_clock_s();
	e->backward_ended = true;
	hand_over(e);
}

static int kept(const struct gf_engine *e, struct gf_error *err)
{
	if (e->rc && err)
		*err = e->reason;
	return e->rc;
}

int gf_engine_wait_message(struct gf_engine *e, size_t message,
			   struct gf_error *err)
{
	int rc;

	assert(message < e->nmessages);
	pthread_mutex_lock(&e->lock);
	while (!e->rc && !e->messages[message].ended)
		pthread_cond_wait(&e->news, &e->lock);
	rc = kept(e, err);
	pthread_mutex_unlock(&e->lock);
	return rc;
}

int gf_engine_wait(struct gf_engine *e, struct gf_error *err)
{
	size_t i;
	int rc;

	pthread_mutex_lock(&e->lock);
	assert(e->rc || e->backward_ended);
	while (!e->rc && e->nended < e->nmessages)
		pthread_cond_wait(&e->news, &e->lock);
	rc = kept(e, err);
	for (i = 0; i < e->nmessages && !rc; i++)
		e->finished[i] = e->messages[i].times;
	pthread_mutex_unlock(&e->lock);
	return rc;
}

const struct gf_message_times *gf_engine_times(const struct gf_engine *e)
{
	return e->finished;
}

int gf_engine_call(struct gf_engine *e,
		   int (*fn)(struct gf_comm *comm, void *ctx,
			     struct gf_error *err),
		   void *ctx, struct gf_error *err)
{
	int rc;

	pthread_mutex_lock(&e->lock);
	rc = kept(e, err);
	if (!rc && e->nended < e->nmessages && !e->backward_ended)
		rc = gf_error_set(err, -EINVAL,
				  "a call in the middle of a step");
	if (rc || !e->has_thread) {
		pthread_mutex_unlock(&e->lock);
		return rc ? rc : fn(e->comm, ctx, err);
	}
	e->call = (struct gf_engine_call){fn, ctx, err, 0, true};
	pthread_cond_signal(&e->wake);
	while (e->call.wanted && !e->rc)
		pthread_cond_wait(&e->news, &e->lock);
	rc = e->call.wanted ? kept(e, err) : e->call.rc;
	e->call.wanted = false;
	pthread_mutex_unlock(&e->lock);
	return rc;
}
