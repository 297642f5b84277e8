/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_parts.h"

#include <stdlib.h>

#include "base/heap.h"

/* Graphs of the fake device. */

int fake_capture_begin(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_error *err)
{
	struct fake_device *d = fake_use(g);

	(void)err;
	pthread_mutex_lock(&d->world->lock);
	fake_not_captured(d, "a capture in a capture");
	s->capture = gf_xcalloc(1, sizeof(*s->capture));
	s->capture->last = &s->capture->first;
	d->capturing = true;
	pthread_mutex_unlock(&d->world->lock);
	return 0;
}

/* Operations that it holds, or holds no more. */
static void hold(const struct gf_gpu_graph *graph, bool holds)
{
	for (const struct fake_operation *op = graph->first; op; op = op->next)
		for (size_t k = 0; k < op->nitems; k++) {
			struct gf_nccl_comm *c = op->items[k].comm;

			c->graphs = holds ? c->graphs + 1 : c->graphs - 1;
		}
}

int fake_capture_end(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_graph **graph,
		     struct gf_error *err)
{
	struct fake_device *d = fake_use(g);

	(void)err;
	pthread_mutex_lock(&d->world->lock);
	if (!s->capture)
		fake_complain(d->world, "the end of no capture");
	hold(s->capture, true);
	*graph = s->capture;
	s->capture = NULL;
	d->capturing = false;
	pthread_mutex_unlock(&d->world->lock);
	return 0;
}

/* An event is recorded anew, and waited for as it is now. */
static void again(struct gf_gpu_stream *s, const struct fake_operation *o)
{
	struct fake_operation *op = gf_xmemdup(o, sizeof(*o));

	op->next = NULL;
	if (op->own_bytes)
		op->a = gf_xmemdup(op->a, op->own_bytes);
	if (op->kind == RECORD)
		op->count = ++op->event->recorded;
	if (op->kind == WAIT)
		op->count = op->event->recorded;
	if (op->kind == NCCL)
		fake_number(op);
	fake_push(s, op);
}

/* Does it move data of memory that was freed since? */
static bool is_stale(const struct fake_world *w, const struct fake_operation *op)
{
	for (size_t i = 0; i < w->nmemory; i++) {
		const struct fake_memory *m = &w->memory[i];

		for (size_t k = 0; m->freed && k < op->nitems; k++) {
			const char *at = op->items[k].data;

			if (at >= m->at && at < m->at + m->size_bytes)
				return true;
		}
	}
	return false;
}

int fake_graph_launch(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_graph *graph,
		      struct gf_error *err)
{
	struct fake_device *d = fake_use(g);
	const struct fake_operation *op;

	(void)err;
	pthread_mutex_lock(&d->world->lock);
	fake_not_captured(d, "a launch in a capture");
	fake_host_enqueues(s);
	for (op = graph->first; op; op = op->next) {
		if (op->kind == HOLD)
			fake_complain(d->world, "what no graph may hold");
		if (is_stale(d->world, op))
			fake_complain(d->world, "a graph of freed memory");
		again(s, op);
	}
	d->world->counts.launches++;
	pthread_mutex_unlock(&d->world->lock);
	return 0;
}

void fake_graph_free(struct gf_gpu *g, struct gf_gpu_graph *graph)
{
	struct fake_world *w = fake_use(g)->world;
	struct fake_operation *op;

	if (!graph)
		return;
	pthread_mutex_lock(&w->lock);
	hold(graph, false);
	pthread_mutex_unlock(&w->lock);
	while ((op = graph->first)) {
		graph->first = op->next;
		if (op->own_bytes)
			free(op->a);
		free(op);
	}
	free(graph);
}
