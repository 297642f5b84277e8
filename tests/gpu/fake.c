/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"

#define ALIGN 256

/* The device that this thread's calls go to: CUDA keeps one for each thread. */
static _Thread_local struct fake_device *current;

void fake_complain(struct fake_world *w, const char *what)
{
	if (!w->complaint[0])
		snprintf(w->complaint, sizeof(w->complaint), "%s", what);
}

void *fake_remember(struct fake_world *w, size_t size_bytes)
{
	const size_t room = (size_bytes / ALIGN + 1) * ALIGN;
	void *p = aligned_alloc(ALIGN, room);

	if (!p)
		abort();
	memset(p, 0, room);
	*(struct fake_memory *)gf_array_push(&w->memory, &w->nmemory, &w->memory_capacity) =
		(struct fake_memory){p, size_bytes, false};
	return p;
}

struct fake_device *fake_use(struct gf_gpu *g)
{
	current = (struct fake_device *)(void *)g;
	return current;
}

/* A thread that has chosen none has CUDA's first: rank 0's. */
bool fake_uses(const struct fake_device *d)
{
	return current ? current == d : d == d->world->devices;
}

/* --- streams -------------------------------------------------------------- */

void fake_not_captured(struct fake_device *d, const char *what)
{
	if (d->capturing)
		fake_complain(d->world, what);
}

void fake_seen(struct fake_device *d, double at_s)
{
	if (at_s > d->seen_s)
		d->seen_s = at_s;
}

void fake_host_waits(struct fake_device *d)
{
	fake_not_captured(d, "the host waits in a capture");
	if (d->holds)
		fake_complain(d->world, "the host waits for what it holds");
}

void fake_host_enqueues(const struct gf_gpu_stream *s)
{
	if (s->world->costs && !s->capture)
		s->world->devices[s->rank].seen_s += s->world->costs->enqueue_s;
}

void fake_push(struct gf_gpu_stream *s, struct fake_operation *op)
{
	struct fake_operation ***last = s->capture ? &s->capture->last : &s->last;

	op->from_s = s->world->devices[s->rank].seen_s;
	**last = op;
	*last = &op->next;
}

struct fake_operation *fake_op(struct gf_gpu_stream *s, enum kind kind)
{
	struct fake_operation *op = gf_xcalloc(1, sizeof(*op));

	op->kind = kind;
	fake_host_enqueues(s);
	fake_push(s, op);
	return op;
}

static void check_current(const struct gf_gpu_stream *s)
{
	if (!fake_uses(&s->world->devices[s->rank]))
		fake_complain(s->world, "a kernel on another device's stream");
}

void fake_call(struct gf_gpu_stream *s, void (*call)(struct fake_operation *op), void *a,
	       const void *b, size_t n, size_t m)
{
	struct fake_operation *op;

	pthread_mutex_lock(&s->world->lock);
	check_current(s);
	op = fake_op(s, CALL);
	op->call = call;
	op->a = a;
	op->b = b;
	op->n = n;
	op->m = m;
	pthread_mutex_unlock(&s->world->lock);
}

static void call_run(struct fake_operation *op)
{
	op->run(op->a);
}

static double kernel_s(const struct gf_gpu_stream *s)
{
	const struct fake_costs *costs = s->world->costs;
	const struct fake_device *d = &s->world->devices[s->rank];

	if (!costs)
		return 0;
	return costs->kernel_s *
	       (costs->beside_nccl > 0 && d->calls > d->waited ? costs->beside_nccl : 1);
}

static void enqueue(struct gf_gpu_stream *s, void (*run)(void *ctx), void *ctx, size_t own_bytes)
{
	struct fake_operation *op;

	pthread_mutex_lock(&s->world->lock);
	check_current(s);
	if (!own_bytes && s->capture)
		fake_complain(s->world, "what runs once is in a graph");
	op = fake_op(s, CALL);
	op->own_bytes = own_bytes;
	op->call = call_run;
	op->run = run;
	op->a = ctx;
	op->takes_s = kernel_s(s);
	pthread_mutex_unlock(&s->world->lock);
}

void fake_enqueue(struct gf_gpu_stream *s, void (*run)(void *ctx), void *ctx)
{
	enqueue(s, run, ctx, 0);
}

void fake_enqueue_copy(struct gf_gpu_stream *s, void (*run)(void *ctx), const void *ctx,
		       size_t size_bytes)
{
	enqueue(s, run, gf_xmemdup(ctx, size_bytes), size_bytes);
}

void fake_hold(struct gf_gpu_stream *s, const atomic_bool *held)
{
	pthread_mutex_lock(&s->world->lock);
	fake_op(s, HOLD)->held = held;
	pthread_mutex_unlock(&s->world->lock);
}

void fake_pop(struct gf_gpu_stream *s)
{
	struct fake_operation *op = s->first;

	s->at_s += op->takes_s;
	s->first = op->next;
	if (!s->first)
		s->last = &s->first;
	if (op->own_bytes)
		free(op->a);
	free(op);
}

static bool play(struct gf_gpu_stream *s)
{
	struct fake_operation *op = s->first;

	if (s->world->costs && s->at_s < op->from_s)
		s->at_s = op->from_s;
	switch (op->kind) {
	case NCCL:
		return fake_play_nccl(s, op);
	case WAIT:
		if (op->event->happened < op->count)
			return false;
		if (s->world->costs && op->event->at_s > s->at_s)
			s->at_s = op->event->at_s;
		break;
	case HOLD:
		if (*op->held)
			return false;
		if (s->world->costs && op->hold && op->hold->released_s > s->at_s)
			s->at_s = op->hold->released_s;
		break;
	case RECORD:
		op->event->happened = op->count;
		op->event->at_s = s->world->costs ? s->at_s : gf_clock_s();
		break;
	case CALL:
		op->call(op);
		break;
	}
	fake_pop(s);
	return true;
}

static void *device_thread(void *world)
{
	struct fake_world *w = world;
	size_t idle = 0;

	pthread_mutex_lock(&w->lock);
	while (!w->quit) {
		struct gf_gpu_stream *s =
			w->nstreams ? &w->streams[gf_rng_below(&w->rng, w->nstreams)] : NULL;

		idle = s && s->first && play(s) ? 0 : idle + 1;
		if (idle > 4 * STREAMS_MAX || gf_rng_below(&w->rng, 64) == 0) {
			pthread_mutex_unlock(&w->lock);
			usleep(idle ? 50 : 1);
			pthread_mutex_lock(&w->lock);
		}
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

void fake_world_costs(struct fake_world *w, const struct fake_costs *costs)
{
	pthread_mutex_lock(&w->lock);
	w->costs = costs;
	pthread_mutex_unlock(&w->lock);
}

/* --- the world ------------------------------------------------------------ */

struct fake_world *fake_world_new(int ranks, int slots, unsigned seed,
				  const struct fake_faults *faults)
{
	struct fake_world *w = gf_xcalloc(1, sizeof(*w));

	w->ranks = ranks;
	w->slots = slots;
	w->faults = *faults;
	w->plain = fake_gpu_ops;
	w->plain.capture_begin = NULL;
	gf_rng_init(&w->rng, seed, 0);
	pthread_mutex_init(&w->lock, NULL);
	for (int r = 0; r < ranks; r++) {
		struct fake_device *d = &w->devices[r];

		d->world = w;
		d->gpu.ops = faults->no_graphs ? &w->plain : &fake_gpu_ops;
		d->gpu.kernels = &fake_gpu_kernels;
		snprintf(d->gpu.pci, sizeof(d->gpu.pci), "0000:%02x:00.0",
			 faults->one_gpu ? 0x17u : 0x17u + (unsigned)r % 64);
	}
	if (pthread_create(&w->thread, NULL, device_thread, w))
		abort();
	return w;
}

struct gf_gpu *fake_gpu(struct fake_world *w, int rank)
{
	return &w->devices[rank].gpu;
}

struct fake_counts fake_world_counts(struct fake_world *w)
{
	struct fake_counts counts;

	pthread_mutex_lock(&w->lock);
	counts = w->counts;
	for (size_t i = 0; i < w->ncomms; i++)
		counts.comms += w->comms[i]->exists;
	for (size_t i = 0; i < w->nstreams; i++)
		for (const struct fake_operation *op = w->streams[i].first; op; op = op->next)
			counts.waiting++;
	pthread_mutex_unlock(&w->lock);
	return counts;
}

const char *fake_world_complaint(struct fake_world *w)
{
	const struct fake_counts counts = fake_world_counts(w);

	if (counts.comms)
		fake_complain(w, "communicators are left");
	if (counts.pinned)
		fake_complain(w, "pinned memory is left");
	return w->complaint[0] ? w->complaint : NULL;
}

void fake_world_free(struct fake_world *w)
{
	pthread_mutex_lock(&w->lock);
	w->quit = true;
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	for (size_t i = 0; i < w->nstreams; i++)
		while (w->streams[i].first)
			fake_pop(&w->streams[i]);
	for (size_t i = 0; i < w->nmeetings; i++)
		free(w->meetings[i]);
	for (size_t i = 0; i < w->ncomms; i++)
		free(w->comms[i]);
	for (size_t i = 0; i < w->nmemory; i++)
		free(w->memory[i].at);
	free(w->memory);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
