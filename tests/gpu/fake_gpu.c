/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "gf_kernels.h"
#include "optim/lars.h"

/* --- the device's table --------------------------------------------------- */

static int fake_alloc(struct gf_gpu *g, size_t size_bytes, void **p,
		      struct gf_error *err)
{
	struct fake_world *w = fake_device_of(g)->world;

	(void)err;
	pthread_mutex_lock(&w->lock);
	fake_not_captured(fake_device_of(g),
			  "memory is allocated in a capture");
	*p = fake_remember(w, size_bytes);
	memset(*p, 0xff, size_bytes);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

static void fake_free(struct gf_gpu *g, void *p)
{
	(void)g;
	(void)p;
}

static int fake_host_pin(struct gf_gpu *g, void *p, size_t size_bytes,
			 struct gf_error *err)
{
	struct fake_world *w = fake_device_of(g)->world;

	(void)p;
	(void)size_bytes;
	(void)err;
	pthread_mutex_lock(&w->lock);
	w->pinned++;
	pthread_mutex_unlock(&w->lock);
	return 0;
}

static void fake_host_unpin(struct gf_gpu *g, void *p)
{
	struct fake_world *w = fake_device_of(g)->world;

	(void)p;
	pthread_mutex_lock(&w->lock);
	w->pinned--;
	pthread_mutex_unlock(&w->lock);
}

static int fake_free_bytes(struct gf_gpu *g, size_t *bytes,
			   struct gf_error *err)
{
	(void)g;
	(void)err;
	*bytes = (size_t)1 << 30;
	return 0;
}

static int fake_stream_new(struct gf_gpu *g, bool urgent,
			   struct gf_gpu_stream **s, struct gf_error *err)
{
	struct fake_world *w = fake_device_of(g)->world;
	struct gf_gpu_stream *n;

	(void)urgent;
	(void)err;
	pthread_mutex_lock(&w->lock);
	if (w->nstreams == STREAMS_MAX)
		abort();
	n = &w->streams[w->nstreams++];
	*n = (struct gf_gpu_stream){
		.world = w,
		.rank = (int)(fake_device_of(g) - w->devices),
		.used = true};
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

static int fake_stream_sync(struct gf_gpu *g, struct gf_gpu_stream *s,
			    struct gf_error *err)
{
	bool empty;

	(void)g;
	(void)err;
	pthread_mutex_lock(&s->world->lock);
	fake_not_captured(&s->world->devices[s->rank],
			  "the host waits in a capture");
	s->world->devices[s->rank].waited = s->world->devices[s->rank].calls;
	s->world->syncs++;
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
	struct fake_world *w = fake_device_of(g)->world;

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

static int fake_record(struct gf_gpu *g, struct gf_gpu_event *e,
		       struct gf_gpu_stream *s, struct gf_error *err)
{
	struct fake_operation *op;

	(void)g;
	(void)err;
	pthread_mutex_lock(&s->world->lock);
	op = fake_op(s, RECORD);
	op->event = e;
	if (!s->capture) /* else by each launch */
		op->count = ++e->recorded;
	pthread_mutex_unlock(&s->world->lock);
	return 0;
}

static int fake_wait(struct gf_gpu *g, struct gf_gpu_stream *s,
		     struct gf_gpu_event *e, struct gf_error *err)
{
	struct fake_operation *op;

	(void)g;
	(void)err;
	pthread_mutex_lock(&s->world->lock);
	op = fake_op(s, WAIT);
	op->event = e;
	op->count = e->recorded;
	pthread_mutex_unlock(&s->world->lock);
	return 0;
}

static int fake_query(struct gf_gpu *g, struct gf_gpu_event *e,
		      struct gf_error *err)
{
	bool happened;

	(void)err;
	pthread_mutex_lock(&e->world->lock);
	happened = e->happened == e->recorded;
	if (happened)
		fake_seen(fake_device_of(g), e->at_s);
	pthread_mutex_unlock(&e->world->lock);
	return happened;
}

static int fake_event_sync(struct gf_gpu *g, struct gf_gpu_event *e,
			   struct gf_error *err)
{
	pthread_mutex_lock(&e->world->lock);
	fake_not_captured(fake_device_of(g), "the host waits in a capture");
	pthread_mutex_unlock(&e->world->lock);
	while (!fake_query(g, e, err))
		usleep(50);
	return 0;
}

static int fake_event_s(struct gf_gpu *g, struct gf_gpu_event *from,
			struct gf_gpu_event *to, double *seconds,
			struct gf_error *err)
{
	(void)g;
	(void)err;
	pthread_mutex_lock(&from->world->lock);
	if (from->happened != from->recorded || to->happened != to->recorded ||
	    !from->recorded || !to->recorded)
		fake_complain(from->world,
			      "the time of an event that has not happened");
	*seconds = to->at_s - from->at_s;
	pthread_mutex_unlock(&from->world->lock);
	return 0;
}

static void call_copy(struct fake_operation *op)
{
	memmove(op->a, op->b, op->n);
}

static int fake_copy(struct gf_gpu *g, struct gf_gpu_stream *s, void *to,
		     const void *from, size_t size_bytes, enum gf_gpu_copy kind,
		     struct gf_error *err)
{
	const struct fake_costs *costs = s->world->costs;
	struct fake_operation *op;

	(void)g;
	(void)err;
	pthread_mutex_lock(&s->world->lock);
	s->world->to_host_bytes += kind == GF_GPU_TO_HOST ? size_bytes : 0;
	op = fake_op(s, CALL);
	op->call = call_copy;
	op->a = to;
	op->b = from;
	op->n = size_bytes;
	if (costs) {
		const struct fake_cost *c =
			kind == GF_GPU_TO_DEVICE ? &costs->to_device
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

static int fake_zero(struct gf_gpu *g, struct gf_gpu_stream *s, void *p,
		     size_t size_bytes, struct gf_error *err)
{
	(void)g;
	(void)err;
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

/* --- kernels: ref's, when their turn comes -------------------------------- */

#define KERNEL(name, to_type, from_type)                                       \
	static void call_##name(struct fake_operation *op)                     \
	{                                                                      \
		gf_kernels_named("ref")->name(op->a, op->b, op->n);            \
	}                                                                      \
	static void fake_##name(struct gf_gpu_stream *s, to_type *to,          \
				from_type *from, size_t n)                     \
	{                                                                      \
		fake_call(s, call_##name, to, from, n, 0);                     \
	}
KERNEL(add_f32, float, const float)

#define CODE(name)                                                             \
	static void call_##name(struct fake_operation *op)                     \
	{                                                                      \
		gf_kernels_named("ref")->name(op->a, op->b, op->n);            \
	}                                                                      \
	static void fake_##name(struct gf_gpu_stream *s, void *to,             \
				const void *from, size_t n, size_t block)      \
	{                                                                      \
		(void)block;                                                   \
		fake_call(s, call_##name, to, from, n, 0);                     \
	}
CODE(f16_encode)
CODE(f16_decode)
CODE(f16_decode_add)
CODE(bf16_encode)
CODE(bf16_decode)
CODE(bf16_decode_add)
CODE(trunc16_encode)

#define Q8_KERNEL(name, to_type, from_type, to_step, from_step)                \
	static void call_##name(struct fake_operation *op)                     \
	{                                                                      \
		to_type *to = op->a;                                           \
		from_type *from = op->b;                                       \
		for (size_t at = 0, b = 0; at < op->n; at += op->m, b++)       \
			gf_kernels_named("ref")->name(                         \
				to + b * (to_step), from + b * (from_step),    \
				op->n - at < op->m ? op->n - at : op->m);      \
	}                                                                      \
	static void fake_##name(struct gf_gpu_stream *s, void *to,             \
				const void *from, size_t n, size_t block)      \
	{                                                                      \
		fake_call(s, call_##name, to, from, n, block);                 \
	}
Q8_KERNEL(q8_encode, uint8_t, const float, op->m + 4, op->m)
Q8_KERNEL(q8_decode, float, const uint8_t, op->m, op->m + 4)
Q8_KERNEL(q8_decode_add, float, const uint8_t, op->m, op->m + 4)

struct axpby {
	float a, b;
	const float *x;
	float *y;
	size_t n;
};

static void run_axpby(void *ctx)
{
	struct axpby *o = ctx;

	for (size_t i = 0; i < o->n; i++)
		o->y[i] = o->a * o->x[i] + o->b * o->y[i];
}

static void fake_axpby_f32(struct gf_gpu_stream *s, float a, const float *x,
			   float b, float *y, size_t n)
{
	struct axpby o = {a, b, x, y, n};

	fake_enqueue_copy(s, run_axpby, &o, sizeof(o));
}

static void call_nonfinite(struct fake_operation *op)
{
	const float *x = op->b;

	for (size_t i = 0; i < op->n; i++)
		if (!isfinite(x[i]))
			*(uint32_t *)op->a |= 1;
}

static void fake_nonfinite_f32(struct gf_gpu_stream *s, const float *x,
			       uint32_t *flag, size_t n)
{
	fake_call(s, call_nonfinite, flag, x, n, 0);
}

/* --- top-k */

static void run_topk(void *ctx)
{
	struct gf_gpu_topk *t = ctx;
	const struct gf_topk top = {
		.values = t->values,
		.add = t->add,
		.count = t->count,
		.k = t->k,
		.index = t->index,
		.scratch = t->work,
	};

	gf_kernels_named("ref")->topk_f32(&top);
	free(t);
}

static void fake_topk_f32(struct gf_gpu_stream *s, const struct gf_gpu_topk *t)
{
	fake_enqueue(s, run_topk, gf_xmemdup(t, sizeof(*t)));
}

static size_t fake_topk_work_bytes(size_t count)
{
	return 2 * count * sizeof(uint32_t);
}

struct move {
	float *to, *from;
	const uint32_t *index;
	size_t n;
};

static void run_take(void *ctx)
{
	struct move *m = ctx;

	gf_kernels_named("ref")->take_f32(m->to, m->from, m->index, m->n);
	free(m);
}

static void fake_take_f32(struct gf_gpu_stream *s, float *to, float *from,
			  const uint32_t *index, size_t n)
{
	struct move m = {to, from, index, n};

	fake_enqueue(s, run_take, gf_xmemdup(&m, sizeof(m)));
}

/* Within one call indices are distinct: a device adds in any order. */
static void run_scatter_add(void *ctx)
{
	struct move *m = ctx;
	size_t i;

	uint32_t least = 0;

	for (i = 0; i < m->n; i++) {
		if (m->index[i] == GF_GPU_NO_INDEX)
			continue;
		if (m->index[i] < least)
			abort();
		least = m->index[i] + 1;
		m->to[m->index[i]] += m->from[i];
	}
	free(m);
}

static void fake_scatter_add_f32(struct gf_gpu_stream *s, float *to,
				 const float *from, const uint32_t *index,
				 size_t n)
{
	struct move m = {to, (float *)(uintptr_t)from, index, n};

	fake_enqueue(s, run_scatter_add, gf_xmemdup(&m, sizeof(m)));
}

static struct gf_sparse used_of(const struct gf_gpu_sparse *l)
{
	struct gf_sparse s = {l->index, l->value, 0};

	while (s.count < l->room && s.index[s.count] != GF_GPU_NO_INDEX)
		s.count++;
	return s;
}

struct lists {
	struct gf_gpu_sparse a, b, out;
	const uint32_t *at;
	size_t k;
};

static void run_merge(void *ctx)
{
	const struct lists *l = ctx;
	struct gf_sparse a = used_of(&l->a), b = used_of(&l->b);
	struct gf_sparse out = {l->out.index, l->out.value, 0};

	gf_kernels_named("ref")->merge_f32(&a, &b, &out);
	for (size_t i = out.count; i < l->out.room; i++) {
		l->out.index[i] = GF_GPU_NO_INDEX;
		l->out.value[i] = 0;
	}
}

static void fake_merge_f32(struct gf_gpu_stream *s,
			   const struct gf_gpu_sparse *a,
			   const struct gf_gpu_sparse *b,
			   const struct gf_gpu_sparse *out, void *work)
{
	struct lists l = {.a = *a, .b = *b, .out = *out};

	(void)work;
	if (out->room != a->room + b->room)
		abort();
	fake_enqueue_copy(s, run_merge, &l, sizeof(l));
}

static void run_move(void *ctx)
{
	const struct lists *l = ctx;
	struct gf_sparse a = {l->a.index, l->a.value, l->a.room};
	struct gf_sparse out = {l->out.index, l->out.value, 0};

	gf_kernels_named("ref")->move_f32(&a, l->at, l->k, &out);
}

static void fake_move_f32(struct gf_gpu_stream *s,
			  const struct gf_gpu_sparse *from, const uint32_t *at,
			  size_t k, const struct gf_gpu_sparse *to)
{
	struct lists l = {.a = *from, .out = *to, .at = at, .k = k};

	fake_enqueue_copy(s, run_move, &l, sizeof(l));
}

static void run_leave_out(void *ctx)
{
	const struct lists *l = ctx;
	struct gf_sparse a = {l->a.index, l->a.value, l->a.room};
	struct gf_sparse in = {l->b.index, l->b.value, l->b.room};

	gf_kernels_named("ref")->leave_out(&a, &in);
}

static void fake_leave_out(struct gf_gpu_stream *s,
			   const struct gf_gpu_sparse *list,
			   const struct gf_gpu_sparse *in)
{
	struct lists l = {.a = *list, .b = *in};

	fake_enqueue_copy(s, run_leave_out, &l, sizeof(l));
}

static size_t fake_merge_work_bytes(size_t room)
{
	return room;
}

struct copied {
	const uint32_t *skip;
	float *to;
	const float *from;
	size_t n;
};

static void run_copy(void *ctx)
{
	const struct copied *c = ctx;

	if (!*c->skip)
		memcpy(c->to, c->from, c->n * sizeof(*c->to));
}

static void fake_copy_f32(struct gf_gpu_stream *s, const uint32_t *skip,
			  float *to, const float *from, size_t n)
{
	struct copied c = {skip, to, from, n};

	fake_enqueue_copy(s, run_copy, &c, sizeof(c));
}

struct update {
	struct gf_sgd_step step;
	struct gf_gpu_lars lars;
	struct gf_gpu_tensors tensors;
	struct gf_gpu_gate gate;
	const float *grad;
	float *weight, *velocity;
	size_t n;
};

static struct gf_gpu_gate gate_of(const struct gf_gpu_gate *given)
{
	return given ? *given : (struct gf_gpu_gate){NULL, NULL};
}

/* Is it to be left out? Else its scale is the gate's. */
static bool skips(struct update *u, float *scale)
{
	if (u->gate.scale)
		*scale = *u->gate.scale;
	return u->gate.skip && *u->gate.skip;
}

static void run_sgd(void *ctx)
{
	struct update *u = ctx;

	if (!skips(u, &u->step.scale))
		gf_kernels_named("ref")->sgd_f32(&u->step, u->grad, u->weight,
						 u->velocity, u->n);
}

static void fake_sgd_f32(struct gf_gpu_stream *s, const struct gf_sgd_step *o,
			 const struct gf_gpu_gate *gate, const float *grad,
			 float *weight, float *velocity, size_t n)
{
	struct update u = {.step = *o,
			   .gate = gate_of(gate),
			   .grad = grad,
			   .weight = weight,
			   .velocity = velocity,
			   .n = n};

	fake_enqueue_copy(s, run_sgd, &u, sizeof(u));
}

static void plain_update(const struct gf_lars *o, float scale,
			 const float *grad, float *weight, float *velocity,
			 size_t n)
{
	gf_sgd_update(&o->sgd, scale, grad, weight, velocity, n);
}

static void run_lars(void *ctx)
{
	struct update *u = ctx;
	const struct gf_gpu_tensors *t = &u->tensors;
	const bool skip = skips(u, &u->lars.step.scale);

	for (size_t i = 0; i < t->count && !skip; i++) {
		const size_t at = t->offsets[i], n = t->offsets[i + 1] - at;
		const struct gf_lars o = {
			.sgd = {.lr = (double)u->lars.step.lr,
				.momentum = (double)u->lars.step.momentum,
				.weight_decay =
					t->plain[i] ? 0 : u->lars.weight_decay,
				.nesterov = u->lars.step.nesterov},
			.eta = u->lars.eta,
			.epsilon = u->lars.epsilon,
		};

		(t->plain[i] ? plain_update : gf_lars_update)(
			&o, u->lars.step.scale, u->grad + at, u->weight + at,
			u->velocity + at, n);
	}
}

static void fake_lars_f32(struct gf_gpu_stream *s, const struct gf_gpu_lars *o,
			  const struct gf_gpu_tensors *t,
			  const struct gf_gpu_gate *gate, const float *grad,
			  float *weight, float *velocity)
{
	struct update u = {.lars = *o,
			   .tensors = *t,
			   .gate = gate_of(gate),
			   .grad = grad,
			   .weight = weight,
			   .velocity = velocity};

	fake_enqueue_copy(s, run_lars, &u, sizeof(u));
}

static size_t fake_lars_work_bytes(const struct gf_gpu_tensors *t)
{
	return t->count;
}

struct clip {
	struct gf_gpu_clip o;
	const float *grad;
	size_t n;
	float *factor;
};

static void run_clip(void *ctx)
{
	struct clip *c = ctx;
	const double norm =
		fabs((double)c->o.scale) *
		sqrt(gf_kernels_named("ref")->sum_squares_f32(c->grad, c->n));

	*c->factor = norm > c->o.norm
			     ? (float)((double)c->o.scale * (c->o.norm / norm))
			     : c->o.scale;
}

static void fake_clip_f32(struct gf_gpu_stream *s, const struct gf_gpu_clip *o,
			  const float *grad, size_t n, float *factor)
{
	struct clip c = {*o, grad, n, factor};

	fake_enqueue_copy(s, run_clip, &c, sizeof(c));
}

static size_t fake_clip_work_bytes(size_t n)
{
	return n;
}

const struct gf_gpu_kernels fake_gpu_kernels = {
	.name = "fake",
	.add_f32 = fake_add_f32,
	.axpby_f32 = fake_axpby_f32,
	.sgd_f32 = fake_sgd_f32,
	.lars_f32 = fake_lars_f32,
	.lars_work_bytes = fake_lars_work_bytes,
	.clip_f32 = fake_clip_f32,
	.clip_work_bytes = fake_clip_work_bytes,
	.nonfinite_f32 = fake_nonfinite_f32,
	.f16 = {fake_f16_encode, fake_f16_decode, fake_f16_decode_add},
	.bf16 = {fake_bf16_encode, fake_bf16_decode, fake_bf16_decode_add},
	.trunc16 = {fake_trunc16_encode, fake_bf16_decode,
		    fake_bf16_decode_add},
	.q8 = {fake_q8_encode, fake_q8_decode, fake_q8_decode_add},
	.topk_f32 = fake_topk_f32,
	.topk_work_bytes = fake_topk_work_bytes,
	.take_f32 = fake_take_f32,
	.scatter_add_f32 = fake_scatter_add_f32,
	.chunk_norms_f32 = fake_chunk_norms_f32,
	.gather_chunks_f32 = fake_gather_chunks_f32,
	.scatter_chunks_f32 = fake_scatter_chunks_f32,
	.keep_chunks_f32 = fake_keep_chunks_f32,
	.merge_f32 = fake_merge_f32,
	.merge_work_bytes = fake_merge_work_bytes,
	.move_f32 = fake_move_f32,
	.leave_out = fake_leave_out,
	.copy_f32 = fake_copy_f32,
};
