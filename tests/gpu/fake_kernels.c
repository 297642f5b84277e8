/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels: ref's, when their turn comes. */
#include "fake_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "gf_kernels.h"
#include "adamw.h"
#include "trainer/optim/sgd.h"

#define KERNEL(name, to_type, from_type)                                                           \
	static void call_##name(struct fake_operation *op)                                         \
	{                                                                                          \
		gf_kernels_named("ref")->name(op->a, op->b, op->n);                                \
	}                                                                                          \
	static void fake_##name(struct gf_gpu_stream *s, to_type *to, from_type *from, size_t n)   \
	{                                                                                          \
		fake_call(s, call_##name, to, from, n, 0);                                         \
	}
KERNEL(add_f32, float, const float)

#define CODE(NUMBER, what)                                                                         \
	static void call_##NUMBER##_##what(struct fake_operation *op)                              \
	{                                                                                          \
		gf_kernels_named("ref")->codecs[GF_CODEC_##NUMBER].what(op->a, op->b, op->n,       \
									op->m);                    \
	}                                                                                          \
	static void fake_##NUMBER##_##what(struct gf_gpu_stream *s, void *to, const void *from,    \
					   size_t n, size_t block)                                 \
	{                                                                                          \
		fake_call(s, call_##NUMBER##_##what, to, from, n, block);                          \
	}
#define CODEC(NUMBER)                                                                              \
	CODE(NUMBER, encode)                                                                       \
	CODE(NUMBER, decode)                                                                       \
	CODE(NUMBER, decode_add)
CODEC(F16)
CODEC(BF16)
CODEC(TRUNC16)
CODEC(Q8)
CODEC(FP8)
CODEC(FP4)
#define ENTRY(NUMBER)                                                                              \
	[GF_CODEC_##NUMBER] = {fake_##NUMBER##_encode, fake_##NUMBER##_decode,                     \
			       fake_##NUMBER##_decode_add}

struct scale {
	float a;
	const float *x;
	float *y;
	size_t n;
};

static void run_scale(void *ctx)
{
	struct scale *o = ctx;

	for (size_t i = 0; i < o->n; i++)
		o->y[i] = o->a * o->x[i];
}

static void fake_scale_f32(struct gf_gpu_stream *s, float a, const float *x, float *y, size_t n)
{
	struct scale o = {a, x, y, n};

	fake_enqueue_copy(s, run_scale, &o, sizeof(o));
}

static void call_nonfinite(struct fake_operation *op)
{
	const float *x = op->b;

	for (size_t i = 0; i < op->n; i++)
		if (!isfinite(x[i]))
			*(uint32_t *)op->a |= 1;
}

static void fake_nonfinite_f32(struct gf_gpu_stream *s, const float *x, uint32_t *flag, size_t n)
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

static void fake_take_f32(struct gf_gpu_stream *s, float *to, float *from, const uint32_t *index,
			  size_t n)
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

static void fake_scatter_add_f32(struct gf_gpu_stream *s, float *to, const float *from,
				 const uint32_t *index, size_t n)
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

static void fake_merge_f32(struct gf_gpu_stream *s, const struct gf_gpu_sparse *a,
			   const struct gf_gpu_sparse *b, const struct gf_gpu_sparse *out,
			   void *work)
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

static void fake_move_f32(struct gf_gpu_stream *s, const struct gf_gpu_sparse *from,
			  const uint32_t *at, size_t k, const struct gf_gpu_sparse *to)
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

static void fake_leave_out(struct gf_gpu_stream *s, const struct gf_gpu_sparse *list,
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

static void fake_copy_f32(struct gf_gpu_stream *s, const uint32_t *skip, float *to,
			  const float *from, size_t n)
{
	struct copied c = {skip, to, from, n};

	fake_enqueue_copy(s, run_copy, &c, sizeof(c));
}

static void call_spoil(struct fake_operation *op)
{
	const uint32_t *flag = op->b;

	for (size_t i = 0; *flag && i < op->n; i++)
		((float *)op->a)[i] = NAN;
}

static void fake_spoil_f32(struct gf_gpu_stream *s, const uint32_t *flag, float *y, size_t n)
{
	fake_call(s, call_spoil, y, flag, n, 0);
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
		gf_kernels_named("ref")->sgd_f32(&u->step, u->grad, u->weight, u->velocity, u->n);
}

static void fake_sgd_f32(struct gf_gpu_stream *s, const struct gf_sgd_step *o,
			 const struct gf_gpu_gate *gate, const float *grad, float *weight,
			 float *velocity, size_t n)
{
	struct update u = {.step = *o,
			   .gate = gate_of(gate),
			   .grad = grad,
			   .weight = weight,
			   .velocity = velocity,
			   .n = n};

	fake_enqueue_copy(s, run_sgd, &u, sizeof(u));
}

static void run_lars(void *ctx)
{
	struct update *u = ctx;
	const struct gf_gpu_tensors *t = &u->tensors;
	const bool skip = skips(u, &u->lars.step.scale);

	for (size_t i = 0; i < t->count && !skip; i++) {
		const size_t at = t->offsets[i], n = t->offsets[i + 1] - at;
		const bool inside = u->lars.rate != 1;
		const struct gf_lars o = {
			.sgd = {.lr = inside ? u->lars.rate : (double)u->lars.step.lr,
				.momentum = (double)u->lars.step.momentum,
				.weight_decay = u->lars.weight_decay,
				.nesterov = u->lars.step.nesterov},
			.eta = u->lars.eta,
			.epsilon = u->lars.epsilon,
			.inside = inside,
			.plain = t->plain[i],
		};

		gf_lars_update(&o, u->lars.step.scale, u->grad + at, u->weight + at,
			       u->velocity + at, n);
	}
}

static void fake_lars_f32(struct gf_gpu_stream *s, const struct gf_gpu_lars *o,
			  const struct gf_gpu_tensors *t, const struct gf_gpu_gate *gate,
			  const float *grad, float *weight, float *velocity)
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

struct adamw {
	struct gf_adamw_rule rule;
	struct gf_gpu_gate gate;
	float scale;
	uint64_t *steps;
	struct gf_adamw_step *now;
	bool plain;
	const float *grad;
	float *weight, *m, *v;
	size_t n;
};

static void run_adamw_begin(void *ctx)
{
	const struct adamw *a = ctx;

	if (a->gate.skip && *a->gate.skip)
		return;
	*a->now = adamw_step(&a->rule, a->gate.scale ? *a->gate.scale : a->scale, ++*a->steps);
}

static void fake_adamw_begin(struct gf_gpu_stream *s, const struct gf_adamw_rule *o, float scale,
			     const struct gf_gpu_gate *gate, uint64_t *steps,
			     struct gf_adamw_step *now)
{
	struct adamw a = {
		.rule = *o, .gate = gate_of(gate), .scale = scale, .steps = steps, .now = now};

	fake_enqueue_copy(s, run_adamw_begin, &a, sizeof(a));
}

static void run_adamw(void *ctx)
{
	const struct adamw *a = ctx;
	struct gf_adamw_step now = *a->now;

	if (a->plain)
		now.keep = 1;
	if (!a->gate.skip || !*a->gate.skip)
		gf_kernels_named("ref")->adamw_f32(&now, a->grad, a->weight, a->m, a->v, a->n);
}

static void fake_adamw_f32(struct gf_gpu_stream *s, const struct gf_adamw_step *now, bool plain,
			   const uint32_t *skip, const float *grad, float *weight, float *m,
			   float *v, size_t n)
{
	struct adamw a = {.now = (struct gf_adamw_step *)now,
			  .gate.skip = skip,
			  .plain = plain,
			  .grad = grad,
			  .weight = weight,
			  .m = m,
			  .v = v,
			  .n = n};

	fake_enqueue_copy(s, run_adamw, &a, sizeof(a));
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
	const double norm = fabs((double)c->o.scale) *
			    sqrt(gf_kernels_named("ref")->sum_squares_f32(c->grad, c->n));

	*c->factor =
		norm > c->o.norm ? (float)((double)c->o.scale * (c->o.norm / norm)) : c->o.scale;
}

static void fake_clip_f32(struct gf_gpu_stream *s, const struct gf_gpu_clip *o, const float *grad,
			  size_t n, float *factor)
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
	.scale_f32 = fake_scale_f32,
	.sgd_f32 = fake_sgd_f32,
	.lars_f32 = fake_lars_f32,
	.lars_work_bytes = fake_lars_work_bytes,
	.adamw_begin = fake_adamw_begin,
	.adamw_f32 = fake_adamw_f32,
	.clip_f32 = fake_clip_f32,
	.clip_work_bytes = fake_clip_work_bytes,
	.nonfinite_f32 = fake_nonfinite_f32,
	.codecs = {ENTRY(F16), ENTRY(BF16), ENTRY(TRUNC16), ENTRY(Q8), ENTRY(FP8), ENTRY(FP4)},
	.topk_f32 = fake_topk_f32,
	.topk_work_bytes = fake_topk_work_bytes,
	.take_f32 = fake_take_f32,
	.scatter_add_f32 = fake_scatter_add_f32,
	.chunk_norms_f32 = fake_chunk_norms_f32,
	.gather_chunks_f32 = fake_gather_chunks_f32,
	.keep_chunks_f32 = fake_keep_chunks_f32,
	.share_norms = fake_share_norms,
	.merge_f32 = fake_merge_f32,
	.merge_work_bytes = fake_merge_work_bytes,
	.move_f32 = fake_move_f32,
	.leave_out = fake_leave_out,
	.copy_f32 = fake_copy_f32,
	.spoil_f32 = fake_spoil_f32,
};
