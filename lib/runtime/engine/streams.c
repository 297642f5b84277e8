/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that the compute thread calls: events, and the issue of messages. */
#include "runtime/engine/streams_parts.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "documents/start_rule.h"
#include "transport/backoff.h"

static int wait_for(struct gf_streams *e, struct gf_gpu_stream *q, struct gf_gpu_event *event,
		    struct gf_error *err)
{
	return e->gpu->ops->wait(e->gpu, q, event, err);
}

/* The ends of the messages issued last on each lane but one (nlanes: on all). */
static int wait_for_ends(struct gf_streams *e, struct gf_gpu_stream *q, size_t but,
			 struct gf_error *err)
{
	int rc = 0;

	for (size_t lane = 0; lane < e->nlanes && !rc; lane++)
		if (lane != but && e->last_on_lane[lane])
			rc = wait_for(e, q, e->last_on_lane[lane], err);
	return rc;
}

/* The ends of all messages of a step that was issued whole. */
static int wait_for_step(struct gf_streams *e, struct gf_gpu_stream *q, uint64_t step,
			 struct gf_error *err)
{
	const struct gf_streams_step *s = gf_streams_step(e, step);
	int rc = 0;

	for (size_t i = 0; i < s->nmessages && !rc; i++)
		if (s->messages[i].closes_lane)
			rc = wait_for(e, q, s->messages[i].end, err);
	return rc;
}

/* `end` of the next step that has had none, on a stream that waits for it. */
static int end_step(struct gf_streams *e, struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_engine_hooks *hooks = &e->base.hooks;
	int rc = wait_for_step(e, q, e->nended, err);

	if (!rc && hooks->end)
		rc = hooks->end(hooks->ctx, e->nended % e->base.depth, q, err);
	rc = rc ?: e->gpu->ops->record(e->gpu, gf_streams_step(e, e->nended)->ended, q, err);
	e->nended++;
	return rc;
}

/* The same for all steps before `before` that have had none. */
static int end_steps(struct gf_streams *e, struct gf_gpu_stream *q, uint64_t before,
		     struct gf_error *err)
{
	int rc = 0;

	while (!rc && e->nended < before)
		rc = end_step(e, q, err);
	return rc;
}

/* A step of a serial list relies on what the step before left. */
static int wait_for_step_before(struct gf_streams *e, struct gf_gpu_stream *q, struct gf_error *err)
{
	const uint64_t step = e->base.nbegun - 1;

	if (!e->base.hooks.serial || !step)
		return 0;
	if (e->nended < step)
		return end_steps(e, q, step, err);
	return wait_for(e, q, gf_streams_step(e, step - 1)->ended, err);
}

/* The message's lane waits until its data may go. Recorded now, `ready` comes after the gradients
 * of all earlier messages, too: on every rank they are issued in this order. */
static int prepare(struct gf_streams *e, const struct gf_streams_step *s, size_t i,
		   struct gf_error *err)
{
	const struct gf_gpu_ops *ops = e->gpu->ops;
	const struct gf_engine_hooks *hooks = &e->base.hooks;
	const struct gf_streams_message *m = &s->messages[i];
	const struct gf_work *w = &s->work[i];
	struct gf_gpu_stream *lane = e->lanes[m->lane].stream;
	struct gf_gpu_stream *q = e->preparing ? e->preparing : lane;
	const size_t slot = (e->base.nbegun - 1) % e->base.depth;
	int rc = ops->record(e->gpu, m->ready, e->compute, err);

	rc = rc ?: wait_for(e, q, m->ready, err);
	rc = rc ?: wait_for_step_before(e, q, err);
	if (!rc && w->after == GF_AFTER_ALL)
		rc = wait_for_ends(e, q, e->nlanes, err);
	else if (!rc && w->after)
		rc = wait_for(e, q, s->messages[w->after - 1].end, err);
	if (rc || !e->preparing)
		return rc;
	rc = hooks->prepare(hooks->ctx, slot, i, q, err);
	rc = rc ?: ops->record(e->gpu, e->prepared, q, err);
	return rc ?: wait_for(e, lane, e->prepared, err);
}

static int finish(struct gf_streams *e, const struct gf_streams_message *m, size_t i,
		  struct gf_error *err)
{
	const struct gf_engine_hooks *hooks = &e->base.hooks;

	if (!hooks->finish)
		return 0;
	return hooks->finish(hooks->ctx, (e->base.nbegun - 1) % e->base.depth, i,
			     e->lanes[m->lane].stream, err);
}

/* Bytes that this rank sends by the path; `library`, whose bytes are unknown, counts as a ring. */
static uint64_t path_bytes(const struct gf_streams *e, const struct gf_lane_program *p)
{
	uint64_t bytes = gf_lane_program_sent(p);

	for (size_t i = 0; i < p->nsteps; i++)
		if (p->steps[i].op == GF_LANE_ALL_REDUCE)
			bytes +=
				gf_engine_ring_elems(e->base.comm->ranks, p->steps[i].range.count) *
				sizeof(float);
	return bytes;
}

static int issue(struct gf_streams *e, struct gf_streams_step *s, size_t i, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = e->gpu->ops;
	struct gf_streams_message *m = &s->messages[i];
	struct gf_lane *lane = &e->lanes[m->lane];
	uint64_t bytes;
	int rc = prepare(e, s, i, err);

	if (!rc && !s->work[i].simultaneous)
		rc = wait_for_ends(e, lane->stream, m->lane, err);
	rc = rc ?: ops->record(e->gpu, m->start, lane->stream, err);
	rc = rc ?: gf_lane_run(lane, &m->path->program, s->work[i].data, err);
	rc = rc ?: finish(e, m, i, err);
	rc = rc ?: ops->record(e->gpu, m->end, lane->stream, err);
	if (rc)
		return rc;
	e->last_on_lane[m->lane] = m->end;
	bytes = path_bytes(e, &m->path->program);
	s->sent_bytes += bytes;
	e->base.sent_bytes += bytes;
	return 0;
}

/* May the message be enqueued? Only its gradients and the end of backward hold the host. What else
 * has ended is not known before the device comes to the message: so `prepare` and `issue` ask which
 * ends its streams shall wait for, and for a lane that is the one before it there, whichever lane
 * is free first. */
static bool may_start(struct gf_streams *e, const struct gf_work *w)
{
	return gf_may_start(&(struct gf_held){
		.by_release = w->at_end && !e->backward_ended,
		.by_gradients = !gf_work_ready(w, e->tensor_ready, &e->nready),
		.lanes = e->base.lanes,
	});
}

/* Under lock. */
static void issue_more(struct gf_streams *e)
{
	const uint64_t step = e->base.nbegun - 1;
	struct gf_streams_step *s = gf_streams_step(e, step);
	struct gf_error err = {""};
	int rc;

	while (!e->base.thread.rc && s->issued < s->nmessages &&
	       may_start(e, &s->work[s->issued])) {
		rc = issue(e, s, s->issued, &err);
		e->nready = 0;
		if (!rc) {
			s->issued++;
			continue;
		}
		gf_streams_name(e, step, s->issued, &err);
		gf_streams_fail(e, rc, &err);
	}
}

/* Until the events that the next step records are free; under lock, which is let go meanwhile. The
 * host is far ahead then. */
static int wait_for_room(struct gf_streams *e, struct gf_error *err)
{
	struct gf_backoff backoff = {0};
	int rc;

	for (;;) {
		rc = gf_comm_thread_kept(&e->base.thread, err);
		rc = rc ?: gf_streams_see(e, err);
		if (rc || e->base.nbegun < e->nseen + e->nslots)
			return rc;
		pthread_mutex_unlock(&e->base.thread.lock);
		gf_backoff_wait(&backoff);
		pthread_mutex_lock(&e->base.thread.lock);
	}
}

static void begin(struct gf_engine *engine, const struct gf_work *work, size_t nwork)
{
	struct gf_streams *e = gf_streams_of(engine);
	struct gf_streams_step *s;
	struct gf_error err = {""};
	int rc;

	pthread_mutex_lock(&e->base.thread.lock);
	rc = wait_for_room(e, &err);
	assert(rc || e->base.nbegun < e->base.nwaited + e->base.depth);
	if (!rc) {
		s = gf_streams_step(e, e->base.nbegun++);
		s->issued = s->seen = s->nmessages = 0;
		s->sent_bytes = 0;
		e->nready = 0;
		e->backward_ended = false;
		memset(e->tensor_ready, 0, e->base.nready * sizeof(*e->tensor_ready));
		s->begun_s = gf_clock_s();
		rc = e->gpu->ops->record(e->gpu, s->begun, e->compute, &err);
		if (!rc && work)
			rc = gf_streams_list(e, s, work, nwork, &err);
	}
	gf_streams_fail(e, rc, &err);
	pthread_mutex_unlock(&e->base.thread.lock);
}

static void list(struct gf_engine *engine, const struct gf_work *work, size_t nwork)
{
	struct gf_streams *e = gf_streams_of(engine);
	struct gf_error err = {""};
	int rc;

	pthread_mutex_lock(&e->base.thread.lock);
	rc = gf_comm_thread_kept(&e->base.thread, &err);
	rc = rc ?: gf_streams_list(e, gf_streams_step(e, e->base.nbegun - 1), work, nwork, &err);
	gf_streams_fail(e, rc, &err);
	pthread_mutex_unlock(&e->base.thread.lock);
}

static void place(struct gf_engine *engine, size_t message, void *data)
{
	struct gf_streams *e = gf_streams_of(engine);
	struct gf_streams_step *s;

	pthread_mutex_lock(&e->base.thread.lock);
	s = gf_streams_step(e, e->base.nbegun - 1);
	if (!e->base.thread.rc && message < s->nmessages)
		s->work[message].data = data;
	pthread_mutex_unlock(&e->base.thread.lock);
}

static void ready(struct gf_engine *engine, const size_t *tensors, size_t n)
{
	struct gf_streams *e = gf_streams_of(engine);

	pthread_mutex_lock(&e->base.thread.lock);
	for (size_t i = 0; i < n; i++)
		e->tensor_ready[tensors[i]] = true;
	issue_more(e);
	pthread_mutex_unlock(&e->base.thread.lock);
}

static void backward_end(struct gf_engine *engine)
{
	struct gf_streams *e = gf_streams_of(engine);

	pthread_mutex_lock(&e->base.thread.lock);
	for (size_t i = 0; i < e->base.pool->ntensors; i++)
		e->tensor_ready[i] = true;
	e->backward_ended = true;
	issue_more(e);
	pthread_mutex_unlock(&e->base.thread.lock);
}

static int wait_message(struct gf_engine *engine, size_t message, struct gf_error *err)
{
	struct gf_streams *e = gf_streams_of(engine);
	const struct gf_streams_step *s;
	int rc;

	pthread_mutex_lock(&e->base.thread.lock);
	s = gf_streams_step(e, e->base.nwaited);
	rc = gf_comm_thread_kept(&e->base.thread, err);
	assert(rc || message < s->issued);
	rc = rc ?: wait_for(e, e->compute, s->messages[message].end, err);
	pthread_mutex_unlock(&e->base.thread.lock);
	return rc;
}

/* The compute stream waits for the oldest step that was not waited for. */
static int wait(struct gf_engine *engine, struct gf_error *err)
{
	struct gf_streams *e = gf_streams_of(engine);
	const uint64_t step = e->base.nwaited;
	int rc;

	pthread_mutex_lock(&e->base.thread.lock);
	rc = gf_comm_thread_kept(&e->base.thread, err);
	assert(rc || (e->backward_ended && step < e->base.nbegun));
	if (!rc && step < e->nended)
		rc = wait_for(e, e->compute, gf_streams_step(e, step)->ended, err);
	else if (!rc)
		rc = wait_for_step(e, e->compute, step, err);
	if (!rc) {
		e->base.nwaited++;
		e->base.waited_bytes += gf_streams_step(e, step)->sent_bytes;
	}
	pthread_mutex_unlock(&e->base.thread.lock);
	return rc;
}

/* On the compute stream, `end` of the steps before `before`. */
static int end_before(struct gf_streams *e, uint64_t before, struct gf_error *err)
{
	int rc;

	pthread_mutex_lock(&e->base.thread.lock);
	rc = gf_comm_thread_kept(&e->base.thread, err);
	rc = rc ?: end_steps(e, e->compute, before, err);
	pthread_mutex_unlock(&e->base.thread.lock);
	return rc;
}

static int end(struct gf_engine *engine, struct gf_error *err)
{
	return end_before(gf_streams_of(engine), engine->nwaited, err);
}

static int settle(struct gf_engine *engine, struct gf_error *err)
{
	struct gf_streams *e = gf_streams_of(engine);
	int rc = end_before(e, e->base.nbegun, err);

	/* some had it on another stream */
	if (!rc && e->nended)
		rc = wait_for(e, e->compute, gf_streams_step(e, e->nended - 1)->ended, err);
	return rc ?: gf_streams_sync(e, err);
}

static int expect(struct gf_engine *engine, const struct gf_work *like, size_t n,
		  struct gf_error *err)
{
	struct gf_streams *e = gf_streams_of(engine);
	struct gf_streams_path *path;
	bool made;
	int rc;

	pthread_mutex_lock(&e->base.thread.lock);
	rc = gf_comm_thread_kept(&e->base.thread, err);
	for (size_t i = 0; i < n && !rc; i++) {
		rc = gf_streams_path(e, &like[i], &path, &made, err);
		if (!rc && made)
			rc = gf_streams_path_prepare(e, path, err);
	}
	for (size_t i = 0; i < e->nlanes && !rc; i++)
		rc = gf_lane_reserve(&e->lanes[i], err);
	pthread_mutex_unlock(&e->base.thread.lock);
	return rc;
}

/* The device's own clock, set to the host's when the step began. */
static int take_times(struct gf_streams *e, struct gf_streams_step *s, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = e->gpu->ops;
	int rc = 0;

	for (size_t i = 0; i < s->nmessages && !rc; i++) {
		const struct gf_streams_message *m = &s->messages[i];
		struct gf_message_times *t = &s->times[i];

		rc = ops->event_s(e->gpu, s->begun, m->ready, &t->ready_s, err);
		rc = rc ?: ops->event_s(e->gpu, s->begun, m->start, &t->start_s, err);
		rc = rc ?: ops->event_s(e->gpu, s->begun, m->end, &t->end_s, err);
		t->ready_s += s->begun_s;
		t->start_s += s->begun_s;
		t->end_s += s->begun_s;
	}
	return rc;
}

static const struct gf_message_times *times(struct gf_engine *engine, uint64_t step)
{
	struct gf_streams *e = gf_streams_of(engine);
	struct gf_streams_step *s = gf_streams_step(e, step);
	struct gf_error err = {""};
	int rc;

	pthread_mutex_lock(&e->base.thread.lock);
	assert(step < e->base.nbegun && step + e->nslots >= e->base.nbegun);
	rc = take_times(e, s, &err);
	gf_streams_fail(e, rc, &err);
	pthread_mutex_unlock(&e->base.thread.lock);
	return rc ? NULL : s->times;
}

static const struct gf_work *list_of(const struct gf_engine *engine, uint64_t step, size_t *n)
{
	const struct gf_streams_step *s = gf_streams_step((const struct gf_streams *)engine, step);

	*n = s->nmessages;
	return s->work;
}

const struct gf_engine_ops gf_engine_streams = {
	.name = "streams",
	.size_bytes = sizeof(struct gf_streams),
	.make = gf_streams_make,
	.meet = gf_streams_meet,
	.start = gf_streams_start,
	.begin = begin,
	.list = list,
	.place = place,
	.ready = ready,
	.backward_end = backward_end,
	.wait_message = wait_message,
	.wait = wait,
	.end = end,
	.settle = settle,
	.expect = expect,
	.forget = gf_streams_forget,
	.recipe = gf_streams_recipe,
	.schedule = gf_streams_schedule,
	.times = times,
	.list_of = list_of,
	.close = gf_streams_close,
};
