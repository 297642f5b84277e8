/* SPDX-License-Identifier: BSD-3-Clause */
/* What the compute thread calls: events, and the issue of messages. */
#include "rt/device_engine.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "comm/backoff.h"
#include "rt/device_parts.h"

void gf_device_name(const struct gf_device_engine *e, uint64_t number,
		    struct gf_error *err)
{
	const size_t i = number % e->nmessages;
	const struct gf_message *m = &e->k.plan->messages[i];
	const struct gf_tensor *tensors = e->k.plan->model->tensors;

	if (i == e->k.plan->nmessages) {
		gf_error_prefix(err,
				"step %" PRIu64 ", norms of chunks on lane %zu",
				number / e->nmessages + 1, e->messages[i].lane);
		return;
	}
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
			.events[number / e->nmessages % e->depth];
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

	if (e->base.thread.rc)
		return;
	for (i = 0; i < e->nlanes; i++)
		gf_device_lane_abort(&e->lanes[i]);
	gf_comm_thread_keep(&e->base.thread, rc, why);
}

static int wait_for(struct gf_device_engine *e, struct gf_gpu_stream *s,
		    struct gf_gpu_event *event, struct gf_error *err)
{
	return e->k.gpu->ops->wait(e->k.gpu, s, event, err);
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
			rc = wait_for(e, s,
				      gf_device_events_of(
					      e, e->last_on_lane[lane] - 1)
					      ->end,
				      err);
	return rc;
}

/* The ends of all messages of a step that was issued whole. */
static int wait_for_step(struct gf_device_engine *e, struct gf_gpu_stream *s,
			 uint64_t step, struct gf_error *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < e->nmessages && !rc; i++)
		if (e->messages[i].closes_lane)
			rc = wait_for(
				e, s,
				gf_device_events_of(e, step * e->nmessages + i)
					->end,
				err);
	return rc;
}

/* `end` of the next step that has had none, on a stream that waits for it. */
static int end_step(struct gf_device_engine *e, struct gf_gpu_stream *s,
		    struct gf_error *err)
{
	const uint64_t step = e->done;
	int rc = wait_for_step(e, s, step, err);

	if (!rc && e->k.end)
		rc = e->k.end(e->k.end_ctx, step, s, err);
	rc = rc ? rc
		: e->k.gpu->ops->record(e->k.gpu, e->ended[step % e->depth], s,
					err);
	e->done++;
	return rc;
}

/* What a selection left behind is the step before's. */
static int wait_for_residual(struct gf_device_engine *e,
			     struct gf_gpu_stream *s, struct gf_error *err)
{
	if (e->base.nbegun == 1 ||
	    e->k.plan->selection.method == GF_SELECT_DENSE)
		return 0;
	if (e->done + 1 < e->base.nbegun)
		return end_step(e, s, err);
	return wait_for(e, s, e->ended[(e->base.nbegun - 2) % e->depth], err);
}

/* A message's lane does; of csc the stream that takes chunks does, and the lane
 * waits for that. */
static int wait_for_gradients(struct gf_device_engine *e, size_t i,
			      struct gf_gpu_event *ready, struct gf_error *err)
{
	struct gf_gpu_stream *lane = e->lanes[e->messages[i].lane].stream;
	struct gf_gpu_stream *s =
		e->k.csc ? gf_csc_nccl_stream(e->k.csc) : lane;
	int rc = wait_for(e, s, ready, err);

	rc = rc ? rc : wait_for_residual(e, s, err);
	if (rc || !e->k.csc)
		return rc;
	rc = gf_device_take_csc(e, i, err);
	rc = rc ? rc : e->k.gpu->ops->record(e->k.gpu, e->taken, s, err);
	return rc ? rc : wait_for(e, lane, e->taken, err);
}

/* Recorded now, `ready` stands behind the gradients of all earlier messages,
 * too: on every rank they are issued in this order. */
static int issue(struct gf_device_engine *e, size_t i, struct gf_error *err)
{
	struct gf_device_message *m = &e->messages[i];
	struct gf_device_lane *lane = &e->lanes[m->lane];
	const struct gf_device_events *at = gf_device_events_of(e, e->issued);
	const struct gf_gpu_ops *ops = e->k.gpu->ops;
	int rc;

	rc = ops->record(e->k.gpu, at->ready, e->k.compute, err);
	rc = rc ? rc : wait_for_gradients(e, i, at->ready, err);
	if (!rc && !m->simultaneous)
		rc = wait_for_ends(e, lane->stream, m->lane, err);
	rc = rc ? rc : ops->record(e->k.gpu, at->start, lane->stream, err);
	rc = rc ? rc : gf_device_run(e, m, err);
	rc = rc ? rc : ops->record(e->k.gpu, at->end, lane->stream, err);
	e->last_on_lane[m->lane] = e->issued + 1;
	return rc;
}

/* Under lock. */
static void issue_more(struct gf_device_engine *e)
{
	struct gf_error err = {""};
	int rc = e->base.thread.rc;

	while (!rc && e->next < e->nmessages) {
		const struct gf_device_message *m = &e->messages[e->next];

		if (m->left || (m->at_end && !e->backward_ended))
			break;
		rc = issue(e, e->next, &err);
		if (rc) {
			gf_device_name(e, e->issued, &err);
			gf_device_fail(e, rc, &err);
		} else {
			e->next++;
			e->issued++;
		}
	}
}

/* Until the events that the next step records are free; under lock, which is
 * let go meanwhile. The host is far ahead then. */
static int wait_for_room(struct gf_device_engine *e, struct gf_error *err)
{
	struct gf_backoff backoff = {0};
	int rc;

	for (;;) {
		rc = gf_comm_thread_kept(&e->base.thread, err);
		rc = rc ? rc : gf_device_see(e, err);
		if (rc || e->base.nbegun < e->depth ||
		    e->seen / e->nmessages >= e->base.nbegun + 1 - e->depth)
			return rc;
		pthread_mutex_unlock(&e->base.thread.lock);
		gf_backoff_wait(&backoff);
		pthread_mutex_lock(&e->base.thread.lock);
	}
}

static struct gf_device_engine *device_of(struct gf_engine *e)
{
	return (struct gf_device_engine *)e;
}

/* What the caller enqueued before, and what is enqueued now, has failed or not:
 * a failure is kept. Under lock. */
static void keep(struct gf_device_engine *e, int rc, const struct gf_error *err)
{
	if (rc)
		gf_device_fail(e, rc, err);
}

/* The plan's messages, whatever is given. */
static void begin(struct gf_engine *engine, const struct gf_work *work,
		  size_t nwork)
{
	struct gf_device_engine *e = device_of(engine);
	struct gf_error err = {""};
	size_t i;
	int rc;

	(void)work;
	(void)nwork;
	pthread_mutex_lock(&e->base.thread.lock);
	rc = wait_for_room(e, &err);
	assert(rc || e->base.nbegun < e->base.nwaited + e->npools);
	if (!rc) {
		e->base.nbegun++;
		e->next = 0;
		e->sent_bytes = 0;
		e->backward_ended = false;
		memset(e->tensor_ready, 0,
		       e->k.plan->model->ntensors * sizeof(*e->tensor_ready));
		for (i = 0; i < e->nmessages; i++)
			e->messages[i].left = e->messages[i].ntensors;
		i = (e->base.nbegun - 1) % e->depth;
		e->begun_s[i] = gf_clock_s();
		rc = e->k.gpu->ops->record(e->k.gpu, e->begun[i], e->k.compute,
					   &err);
	}
	keep(e, rc, &err);
	pthread_mutex_unlock(&e->base.thread.lock);
}

static void set_ready(struct gf_device_engine *e, size_t tensor)
{
	if (e->tensor_ready[tensor])
		return;
	e->tensor_ready[tensor] = true;
	e->messages[e->message_of[tensor]].left--;
}

static void ready(struct gf_engine *engine, size_t tensor)
{
	struct gf_device_engine *e = device_of(engine);

	pthread_mutex_lock(&e->base.thread.lock);
	set_ready(e, tensor);
	issue_more(e);
	pthread_mutex_unlock(&e->base.thread.lock);
}

static void backward_end(struct gf_engine *engine)
{
	struct gf_device_engine *e = device_of(engine);
	uint64_t *sent;
	size_t i;

	pthread_mutex_lock(&e->base.thread.lock);
	for (i = 0; i < e->k.plan->model->ntensors; i++)
		set_ready(e, i);
	e->backward_ended = true;
	issue_more(e);
	if (!e->base.thread.rc) {
		sent = &e->step_bytes[(e->base.nbegun - 1) % e->depth];
		*sent = gf_device_engine_sent_bytes(e);
		e->base.totals.sent_bytes += *sent;
	}
	pthread_mutex_unlock(&e->base.thread.lock);
}

static int wait(struct gf_engine *engine, struct gf_error *err)
{
	struct gf_device_engine *e = device_of(engine);
	const size_t slot = e->base.nwaited % e->depth;
	int rc;

	pthread_mutex_lock(&e->base.thread.lock);
	rc = gf_comm_thread_kept(&e->base.thread, err);
	assert(rc || (e->backward_ended && e->base.nwaited < e->base.nbegun));
	if (!rc && e->base.nwaited < e->done)
		rc = wait_for(e, e->k.compute, e->ended[slot], err);
	else if (!rc)
		rc = wait_for_step(e, e->k.compute, e->base.nwaited, err);
	if (!rc) {
		e->base.waited_bytes += e->step_bytes[slot];
		e->base.nwaited++;
	}
	pthread_mutex_unlock(&e->base.thread.lock);
	return rc;
}

/* Of the steps before `before` that have had none. */
static int end_steps(struct gf_device_engine *e, uint64_t before,
		     struct gf_error *err)
{
	int rc;

	pthread_mutex_lock(&e->base.thread.lock);
	rc = gf_comm_thread_kept(&e->base.thread, err);
	while (!rc && e->done < before)
		rc = end_step(e, e->k.compute, err);
	pthread_mutex_unlock(&e->base.thread.lock);
	return rc;
}

static int end(struct gf_engine *engine, struct gf_error *err)
{
	struct gf_device_engine *e = device_of(engine);

	return end_steps(e, e->base.nwaited, err);
}

static int settle(struct gf_engine *engine, struct gf_error *err)
{
	struct gf_device_engine *e = device_of(engine);
	int rc = end_steps(e, e->base.nbegun, err);

	/* some had it on a lane */
	if (!rc && e->base.nwaited < e->done)
		rc = wait_for(e, e->k.compute,
			      e->ended[(e->done - 1) % e->depth], err);
	return rc ? rc : gf_device_engine_sync(engine, err);
}

float *gf_device_engine_data(const struct gf_engine *engine, uint64_t step)
{
	const struct gf_device_engine *e =
		(const struct gf_device_engine *)engine;

	return e->k.data + step % e->npools * e->k.stride_elems;
}

/* The device's own clock, set to the host's when the step began. */
static const struct gf_message_times *times(struct gf_engine *engine,
					    uint64_t step)
{
	struct gf_device_engine *e = device_of(engine);
	const struct gf_gpu_ops *ops = e->k.gpu->ops;
	struct gf_gpu_event *begun = e->begun[step % e->depth];
	const double begun_s = e->begun_s[step % e->depth];
	struct gf_error err = {""};
	size_t i;
	int rc = 0;

	assert(step < e->base.nbegun && step + e->depth >= e->base.nbegun);
	for (i = 0; i < e->nmessages && !rc; i++) {
		const struct gf_device_events *at =
			gf_device_events_of(e, step * e->nmessages + i);
		struct gf_message_times *t = &e->times[i];

		rc = ops->event_s(e->k.gpu, begun, at->ready, &t->ready_s,
				  &err);
		rc = rc ? rc
			: ops->event_s(e->k.gpu, begun, at->start, &t->start_s,
				       &err);
		rc = rc ? rc
			: ops->event_s(e->k.gpu, begun, at->end, &t->end_s,
				       &err);
		t->ready_s += begun_s;
		t->start_s += begun_s;
		t->end_s += begun_s;
	}
	pthread_mutex_lock(&e->base.thread.lock);
	keep(e, rc, &err);
	pthread_mutex_unlock(&e->base.thread.lock);
	return rc ? NULL : e->times;
}

/* The watching thread looks at the same events, and gives up in time. */
int gf_device_engine_sync(struct gf_engine *engine, struct gf_error *err)
{
	struct gf_device_engine *e = device_of(engine);
	struct gf_backoff backoff = {0};
	bool ended = false;
	int rc = 0;

	while (!rc && !ended) {
		pthread_mutex_lock(&e->base.thread.lock);
		rc = gf_comm_thread_kept(&e->base.thread, err);
		assert(rc || e->issued == e->base.nbegun * e->nmessages);
		rc = rc ? rc : gf_device_see(e, err);
		ended = e->seen == e->issued;
		pthread_mutex_unlock(&e->base.thread.lock);
		if (!rc && !ended)
			gf_backoff_wait(&backoff);
	}
	return rc;
}

size_t gf_device_engine_lane(const struct gf_engine *engine, size_t message)
{
	const struct gf_device_engine *e =
		(const struct gf_device_engine *)engine;

	return e->messages[message].lane;
}

const struct gf_engine_ops gf_engine_streams = {
	.name = "streams",
	.begin = begin,
	.ready = ready,
	.backward_end = backward_end,
	.wait = wait,
	.end = end,
	.settle = settle,
	.times = times,
	.close = gf_device_close,
};
