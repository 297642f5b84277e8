/* SPDX-License-Identifier: BSD-3-Clause */
/* What the compute thread calls: events, and the issue of messages. */
#include "rt/device_engine.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "comm/backoff.h"
#include "rt/device_parts.h"

void gf_device_name(const struct gf_device_engine *e, uint64_t number,
		    struct gf_error *err)
{
	const size_t i = number % e->nmessages;
	const struct gf_message *m = &e->k.plan->messages[i];
	const struct gf_tensor *tensors = e->k.plan->model->tensors;

	gf_error_prefix(err,
			"step %" PRIu64 ", message %zu (tensors %zu to %zu, "
			"%s to %s, %zu bytes) on lane %zu",
			number / e->nmessages + 1, i, m->first, m->last,
			tensors[m->first].name, tensors[m->last].name,
			e->messages[i].count_elems * sizeof(float),
			e->messages[i].lane);
}

const struct gf_device_events *
gf_device_events_of(const struct gf_device_engine *e, uint64_t number)
{
	return &e->messages[number % e->nmessages]
			.events[number / e->nmessages % GF_DEVICE_DEPTH];
}

int gf_device_see(struct gf_device_engine *e, struct gf_error *err)
{
	int rc = 0;

	while (e->seen < e->issued) {
		rc = e->k.gpu->ops->query(
			e->k.gpu, gf_device_events_of(e, e->seen)->end, err);
		if (rc != 1)
			return rc;
		e->seen++;
	}
	return 0;
}

void gf_device_fail(struct gf_device_engine *e, int rc,
		    const struct gf_error *why)
{
	size_t i;

	if (e->thread.rc)
		return;
	for (i = 0; i < e->nlanes; i++)
		gf_device_lane_abort(&e->lanes[i]);
	gf_comm_thread_keep(&e->thread, rc, why);
}

static int wait_for(struct gf_device_engine *e, struct gf_gpu_stream *s,
		    struct gf_gpu_event *event, struct gf_error *err)
{
	return e->k.gpu->ops->wait(e->k.gpu, s, event, err);
}

/* Of this step's message i. */
static const struct gf_device_events *
events_of(const struct gf_device_engine *e, size_t i)
{
	return gf_device_events_of(e, (e->step - 1) * e->nmessages + i);
}

/* The ends of the messages issued last on each lane but one (nlanes: on
 * all). */
static int wait_for_ends(struct gf_device_engine *e, struct gf_gpu_stream *s,
			 size_t but, struct gf_error *err)
{
	size_t lane;
	int rc = 0;

	for (lane = 0; lane < e->nlanes && !rc; lane++)
		if (lane != but && e->last_on_lane[lane])
			rc = wait_for(
				e, s,
				events_of(e, e->last_on_lane[lane] - 1)->end,
				err);
	return rc;
}

/* Recorded now, `ready` stands behind the gradients of all earlier messages,
 * too: on every rank they are issued in this order. */
static int issue(struct gf_device_engine *e, size_t i, struct gf_error *err)
{
	struct gf_device_message *m = &e->messages[i];
	struct gf_device_lane *lane = &e->lanes[m->lane];
	const struct gf_device_events *at = events_of(e, i);
	const struct gf_gpu_ops *ops = e->k.gpu->ops;
	int rc;

	rc = ops->record(e->k.gpu, at->ready, e->k.compute, err);
	rc = rc ? rc : wait_for(e, lane->stream, at->ready, err);
	if (!rc && !m->simultaneous)
		rc = wait_for_ends(e, lane->stream, m->lane, err);
	rc = rc ? rc : ops->record(e->k.gpu, at->start, lane->stream, err);
	rc = rc ? rc : gf_device_run(e, m, err);
	rc = rc ? rc : ops->record(e->k.gpu, at->end, lane->stream, err);
	e->last_on_lane[m->lane] = i + 1;
	return rc;
}

/* Under lock. */
static int issue_more(struct gf_device_engine *e, struct gf_error *err)
{
	int rc = gf_comm_thread_kept(&e->thread, err);

	while (!rc && e->next < e->nmessages) {
		const struct gf_device_message *m = &e->messages[e->next];

		if (m->left || (m->at_end && !e->backward_ended))
			break;
		rc = issue(e, e->next, err);
		if (rc) {
			gf_device_name(e, e->issued, err);
			gf_device_fail(e, rc, err);
		} else {
			e->next++;
			e->issued++;
		}
	}
	return rc;
}

/* Until the events that the next step records are free; under lock, which is
 * let go meanwhile. The host is far ahead then. */
static int wait_for_room(struct gf_device_engine *e, struct gf_error *err)
{
	struct gf_backoff backoff = {0};
	int rc;

	for (;;) {
		rc = gf_comm_thread_kept(&e->thread, err);
		rc = rc ? rc : gf_device_see(e, err);
		if (rc || e->step < GF_DEVICE_DEPTH ||
		    e->seen / e->nmessages >= e->step + 1 - GF_DEVICE_DEPTH)
			return rc;
		pthread_mutex_unlock(&e->thread.lock);
		gf_backoff_wait(&backoff);
		pthread_mutex_lock(&e->thread.lock);
	}
}

int gf_device_engine_begin(struct gf_device_engine *e, struct gf_error *err)
{
	size_t i;
	int rc;

	pthread_mutex_lock(&e->thread.lock);
	rc = wait_for_room(e, err);
	assert(rc || e->joined);
	if (!rc) {
		e->step++;
		e->next = 0;
		e->backward_ended = e->joined = false;
		memset(e->last_on_lane, 0,
		       e->nlanes * sizeof(*e->last_on_lane));
		memset(e->tensor_ready, 0,
		       e->k.plan->model->ntensors * sizeof(*e->tensor_ready));
		for (i = 0; i < e->nmessages; i++)
			e->messages[i].left = e->messages[i].ntensors;
		rc = e->k.gpu->ops->record(
			e->k.gpu, e->begun[(e->step - 1) % GF_DEVICE_DEPTH],
			e->k.compute, err);
	}
	pthread_mutex_unlock(&e->thread.lock);
	return rc;
}

static void set_ready(struct gf_device_engine *e, size_t tensor)
{
	if (e->tensor_ready[tensor])
		return;
	e->tensor_ready[tensor] = true;
	e->messages[e->message_of[tensor]].left--;
}

int gf_device_engine_ready(struct gf_device_engine *e, size_t tensor,
			   struct gf_error *err)
{
	int rc;

	assert(tensor < e->k.plan->model->ntensors);
	pthread_mutex_lock(&e->thread.lock);
	set_ready(e, tensor);
	rc = issue_more(e, err);
	pthread_mutex_unlock(&e->thread.lock);
	return rc;
}

int gf_device_engine_backward_end(struct gf_device_engine *e,
				  struct gf_error *err)
{
	size_t i;
	int rc;

	pthread_mutex_lock(&e->thread.lock);
	for (i = 0; i < e->k.plan->model->ntensors; i++)
		set_ready(e, i);
	e->backward_ended = true;
	rc = issue_more(e, err);
	pthread_mutex_unlock(&e->thread.lock);
	return rc;
}

int gf_device_engine_join(struct gf_device_engine *e, struct gf_error *err)
{
	int rc;

	pthread_mutex_lock(&e->thread.lock);
	rc = gf_comm_thread_kept(&e->thread, err);
	assert(rc || e->backward_ended);
	rc = rc ? rc : wait_for_ends(e, e->k.compute, e->nlanes, err);
	e->joined = true;
	pthread_mutex_unlock(&e->thread.lock);
	return rc;
}

/* Of the step-th step, from 1. */
static int take_times(struct gf_device_engine *e, uint64_t step,
		      struct gf_message_times *times, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = e->k.gpu->ops;
	struct gf_gpu_event *begun = e->begun[(step - 1) % GF_DEVICE_DEPTH];
	size_t i;
	int rc = 0;

	for (i = 0; i < e->nmessages && !rc; i++) {
		const struct gf_device_events *at =
			gf_device_events_of(e, (step - 1) * e->nmessages + i);
		struct gf_message_times *t = &times[i];

		rc = ops->event_s(e->k.gpu, begun, at->ready, &t->ready_s, err);
		rc = rc ? rc
			: ops->event_s(e->k.gpu, begun, at->start, &t->start_s,
				       err);
		rc = rc ? rc
			: ops->event_s(e->k.gpu, begun, at->end, &t->end_s,
				       err);
	}
	return rc;
}

int gf_device_engine_times_before(struct gf_device_engine *e,
				  struct gf_message_times *times,
				  struct gf_error *err)
{
	assert(e->step > 1);
	return take_times(e, e->step - 1, times, err);
}

/* The watching thread looks at the same events, and gives up in time. */
int gf_device_engine_sync(struct gf_device_engine *e, struct gf_error *err)
{
	struct gf_backoff backoff = {0};
	bool ended = false;
	int rc = 0;

	assert(e->joined);
	while (!rc && !ended) {
		pthread_mutex_lock(&e->thread.lock);
		rc = gf_comm_thread_kept(&e->thread, err);
		rc = rc ? rc : gf_device_see(e, err);
		ended = e->seen == e->issued;
		pthread_mutex_unlock(&e->thread.lock);
		if (!rc && !ended)
			gf_backoff_wait(&backoff);
	}
	return rc || !e->step ? rc : take_times(e, e->step, e->times, err);
}

const struct gf_message_times *
gf_device_engine_times(const struct gf_device_engine *e)
{
	return e->times;
}

int gf_device_engine_check(struct gf_device_engine *e, struct gf_error *err)
{
	int rc;

	pthread_mutex_lock(&e->thread.lock);
	rc = gf_comm_thread_kept(&e->thread, err);
	pthread_mutex_unlock(&e->thread.lock);
	return rc;
}

size_t gf_device_engine_lane(const struct gf_device_engine *e, size_t message)
{
	return e->messages[message].lane;
}

int gf_device_engine_call(struct gf_device_engine *e,
			  int (*fn)(struct gf_comm *comm, void *ctx,
				    struct gf_error *err),
			  void *ctx, struct gf_error *err)
{
	return gf_comm_thread_call(&e->thread, fn, ctx, err);
}
