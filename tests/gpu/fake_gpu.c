/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"

static int fake_alloc(struct gf_gpu *g, size_t size_bytes, void **p, struct gf_error *err)
{
	struct fake_world *w = fake_use(g)->world;

	(void)err;
	pthread_mutex_lock(&w->lock);
	fake_not_captured(fake_use(g), "memory is allocated in a capture");
	*p = fake_remember(w, size_bytes);
	w->counts.alloc_bytes += size_bytes;
	memset(*p, 0xff, size_bytes);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

/* Items that are enqueued may still use it, but none that is launched later. */
static void fake_free(struct gf_gpu *g, void *p)
{
	struct fake_world *w = fake_use(g)->world;

	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; p && i < w->nmemory; i++)
		w->memory[i].freed |= w->memory[i].at == p;
	pthread_mutex_unlock(&w->lock);
}

static int fake_host_pin(struct gf_gpu *g, void *p, size_t size_bytes, struct gf_error *err)
{
	struct fake_world *w = fake_use(g)->world;

	(void)p;
	if (w->faults.no_pins)
		return gf_error_set(err, -ENOMEM, "%zu bytes cannot be pinned", size_bytes);
	pthread_mutex_lock(&w->lock);
	w->counts.pinned++;
	pthread_mutex_unlock(&w->lock);
	return 0;
}

static void fake_host_unpin(struct gf_gpu *g, void *p)
{
	struct fake_world *w = fake_use(g)->world;

	(void)p;
	pthread_mutex_lock(&w->lock);
	w->counts.pinned--;
	pthread_mutex_unlock(&w->lock);
}

static int fake_free_bytes(struct gf_gpu *g, size_t *bytes, struct gf_error *err)
{
	(void)err;
	fake_use(g);
	*bytes = (size_t)1 << 30;
	return 0;
}

static int fake_stream_new(struct gf_gpu *g, bool urgent, struct gf_gpu_stream **s,
			   struct gf_error *err)
{
	struct fake_world *w = fake_use(g)->world;
	struct gf_gpu_stream *n;

	(void)urgent;
	(void)err;
	pthread_mutex_lock(&w->lock);
	if (w->nstreams == STREAMS_MAX)
		abort();
	n = &w->streams[w->nstreams++];
	*n = (struct gf_gpu_stream){
		.world = w, .rank = (int)(fake_use(g) - w->devices), .used = true};
	n->last = &n->first;
	pthread_mutex_unlock(&w->lock);
	*s = n;
	return 0;
}

static void fake_stream_free(struct gf_gpu *g, struct gf_gpu_stream *s)
{
	(void)g;
	if (s)
		s->used = false; /* what is enqueued still runs */
}

static int fake_stream_sync(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_error *err)
{
	bool empty;

	(void)err;
	fake_use(g);
	pthread_mutex_lock(&s->world->lock);
	fake_host_waits(&s->world->devices[s->rank]);
	s->world->devices[s->rank].waited = s->world->devices[s->rank].calls;
	s->world->counts.syncs++;
	pthread_mutex_unlock(&s->world->lock);
	do {
		pthread_mutex_lock(&s->world->lock);
		empty = !s->first;
		if (empty)
			fake_seen(&s->world->devices[s->rank], s->at_s);
		pthread_mutex_unlock(&s->world->lock);
		if (!empty)
			usleep(100);
	} while (!empty);
	return 0;
}

static int fake_event_new(struct gf_gpu *g, bool timed, struct gf_gpu_event **e,
			  struct gf_error *err)
{
	struct fake_world *w = fake_use(g)->world;

	(void)timed;
	(void)err;
	pthread_mutex_lock(&w->lock);
	*e = fake_remember(w, sizeof(**e));
	(*e)->world = w;
	pthread_mutex_unlock(&w->lock);
	return 0;
}

static void fake_event_free(struct gf_gpu *g, struct gf_gpu_event *e)
{
	(void)g;
	(void)e;
}

static int fake_record(struct gf_gpu *g, struct gf_gpu_event *e, struct gf_gpu_stream *s,
		       struct gf_error *err)
{
	struct fake_operation *op;

	(void)err;
	fake_use(g);
	pthread_mutex_lock(&s->world->lock);
	op = fake_op(s, RECORD);
	op->event = e;
	if (!s->capture) /* else by each launch */
		op->count = ++e->recorded;
	pthread_mutex_unlock(&s->world->lock);
	return 0;
}

static int fake_wait(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_event *e,
		     struct gf_error *err)
{
	struct fake_operation *op;

	(void)err;
	fake_use(g);
	pthread_mutex_lock(&s->world->lock);
	op = fake_op(s, WAIT);
	op->event = e;
	op->count = e->recorded;
	pthread_mutex_unlock(&s->world->lock);
	return 0;
}

static int fake_hold_stream(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_hold **hold,
			    struct gf_error *err)
{
	struct fake_device *d = fake_use(g);
	struct fake_operation *op;
	struct gf_gpu_hold *h;

	(void)err;
	pthread_mutex_lock(&d->world->lock);
	fake_not_captured(d, "a capture is held");
	h = fake_remember(d->world, sizeof(*h));
	h->device = d;
	h->held = true;
	d->holds++;
	op = fake_op(s, HOLD);
	op->held = &h->held;
	op->hold = h;
	pthread_mutex_unlock(&d->world->lock);
	*hold = h;
	return 0;
}

static void fake_release(struct gf_gpu *g, struct gf_gpu_hold *h)
{
	struct fake_device *d = fake_use(g);

	if (!h)
		return;
	pthread_mutex_lock(&d->world->lock);
	if (h->device != d || !h->held)
		fake_complain(d->world, "the release of nothing");
	h->released_s = d->seen_s;
	h->held = false;
	d->holds--;
	pthread_mutex_unlock(&d->world->lock);
}

static int fake_query(struct gf_gpu *g, struct gf_gpu_event *e, struct gf_error *err)
{
	bool happened;

	(void)err;
	pthread_mutex_lock(&e->world->lock);
	happened = e->happened == e->recorded;
	if (happened)
		fake_seen(fake_use(g), e->at_s);
	pthread_mutex_unlock(&e->world->lock);
	return happened;
}

static int fake_event_sync(struct gf_gpu *g, struct gf_gpu_event *e, struct gf_error *err)
{
	pthread_mutex_lock(&e->world->lock);
	fake_host_waits(fake_use(g));
	pthread_mutex_unlock(&e->world->lock);
	while (!fake_query(g, e, err))
		usleep(50);
	return 0;
}

static int fake_event_s(struct gf_gpu *g, struct gf_gpu_event *from, struct gf_gpu_event *to,
			double *seconds, struct gf_error *err)
{
	(void)g;
	(void)err;
	pthread_mutex_lock(&from->world->lock);
	if (from->happened != from->recorded || to->happened != to->recorded || !from->recorded ||
	    !to->recorded)
		fake_complain(from->world, "the time of an event that has not happened");
	*seconds = to->at_s - from->at_s;
	pthread_mutex_unlock(&from->world->lock);
	return 0;
}

static void call_copy(struct fake_operation *op)
{
	memmove(op->a, op->b, op->n);
}

static int fake_copy(struct gf_gpu *g, struct gf_gpu_stream *s, void *to, const void *from,
		     size_t size_bytes, enum gf_gpu_copy kind, struct gf_error *err)
{
	const struct fake_costs *costs = s->world->costs;
	struct fake_operation *op;

	(void)err;
	fake_use(g);
	pthread_mutex_lock(&s->world->lock);
	s->world->counts.to_host_bytes += kind == GF_GPU_TO_HOST ? size_bytes : 0;
	op = fake_op(s, CALL);
	op->call = call_copy;
	op->a = to;
	op->b = from;
	op->n = size_bytes;
	if (costs) {
		const struct fake_cost *c = kind == GF_GPU_TO_DEVICE ? &costs->to_device
					    : kind == GF_GPU_TO_HOST ? &costs->to_host
								     : &costs->within;

		op->takes_s = c->start_s + c->per_byte_s * (double)size_bytes;
	}
	pthread_mutex_unlock(&s->world->lock);
	return 0;
}

static void call_zero(struct fake_operation *op)
{
	memset(op->a, 0, op->n);
}

static int fake_zero(struct gf_gpu *g, struct gf_gpu_stream *s, void *p, size_t size_bytes,
		     struct gf_error *err)
{
	(void)err;
	fake_use(g);
	fake_call(s, call_zero, p, NULL, size_bytes, 0);
	return 0;
}

static int fake_check(struct gf_gpu *g, struct gf_error *err)
{
	(void)g;
	(void)err;
	return 0;
}

/* It is the world's. */
static void fake_close(struct gf_gpu *g)
{
	(void)g;
}

const struct gf_gpu_ops fake_gpu_ops = {
	.name = "fake",
	.alloc = fake_alloc,
	.free = fake_free,
	.host_alloc = fake_alloc,
	.host_free = fake_free,
	.host_pin = fake_host_pin,
	.host_unpin = fake_host_unpin,
	.free_bytes = fake_free_bytes,
	.stream_new = fake_stream_new,
	.stream_free = fake_stream_free,
	.stream_sync = fake_stream_sync,
	.event_new = fake_event_new,
	.event_free = fake_event_free,
	.record = fake_record,
	.wait = fake_wait,
	.hold = fake_hold_stream,
	.release = fake_release,
	.query = fake_query,
	.event_sync = fake_event_sync,
	.event_s = fake_event_s,
	.copy = fake_copy,
	.zero = fake_zero,
	.capture_begin = fake_capture_begin,
	.capture_end = fake_capture_end,
	.graph_launch = fake_graph_launch,
	.graph_free = fake_graph_free,
	.check = fake_check,
	.close = fake_close,
};
