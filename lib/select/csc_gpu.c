/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * csc where gradients are on a GPU (select/csc.h): the history is kept there,
 * and chunks are measured and packed there. All bits are those of csc.c.
 *
 * Nothing leaves the GPUs: hooks enqueue, the next step's chunks are chosen
 * there, and the host is told them, as it cuts the messages; `adopt` is when it
 * has waited for that.
 *
 * A step ends before the next one's first gradient is taken, so that memory
 * which no later step needs is there once for all slots.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "lane/program.h"
#include "select/csc_gpu.h"
#include "select/selections.h"

/* From one slot's `packed` to the next one's, whatever is done to either. */
static size_t stride(const struct gf_selector *s)
{
	const struct gf_csc *c = gf_csc_of(s);

	return (gf_csc_place(c, c->nchunks) + 63) / 64 * 64;
}

/* --- memory --------------------------------------------------------------- */

static int open_told(struct gf_selector *s, struct gf_error *err)
{
	struct gf_csc_gpu *g = gf_csc_gpu(s);
	const size_t n = gf_csc_of(s)->nchunks, all = n * s->env.depth;
	uint32_t *words;
	size_t i;
	int rc;

	g->told = gf_xcalloc(s->env.depth, sizeof(*g->told));
	rc = s->env.place.gpu->ops->host_alloc(
		s->env.place.gpu, all * (2 * sizeof(*words) + sizeof(uint8_t)),
		&g->host, err);
	if (rc)
		return rc;
	words = g->host;
	for (i = 0; i < s->env.depth; i++)
		g->told[i] = (struct gf_csc_told){
			.chosen = words + i * n,
			.next = words + all + i * n,
			.sent = (uint8_t *)(words + 2 * all) + i * n,
		};
	return 0;
}

static int allocate(struct gf_selector *s, struct gf_error *err)
{
	struct gf_csc_gpu *g = gf_csc_gpu(s);
	const struct gf_csc *c = gf_csc_of(s);
	const struct gf_gpu_ops *ops = s->env.place.gpu->ops;
	const size_t n = c->nchunks, bytes = gf_csc_elems(s) * sizeof(float);
	const size_t packed_bytes = stride(s) * s->env.depth * sizeof(float);
	const struct {
		void **p;
		size_t size_bytes;
	} all[] = {
		{&g->history, bytes},
		{&g->packed, packed_bytes},
		{&g->norms, n * sizeof(double)},
		{&g->chosen, n * sizeof(uint32_t)},
		{&g->sent, n},
		{&g->sums, n * sizeof(double)},
		{&g->next, n * sizeof(uint32_t)},
		{&g->shared, gf_csc_shared_elems(c) * sizeof(float)},
		{&g->work, s->env.place.gpu->kernels->topk_work_bytes(n)},
	};
	size_t i;
	int rc = open_told(s, err);

	for (i = 0; i < GF_ARRAY_LENGTH(all) && !rc; i++)
		rc = ops->alloc(s->env.place.gpu, all[i].size_bytes, all[i].p,
				err);
	/* before the first take, on whichever stream */
	rc = rc ? rc
		: ops->zero(s->env.place.gpu, s->env.place.stream, g->history,
			    bytes, err);
	/* what lies between packs stays so */
	rc = rc ? rc
		: ops->zero(s->env.place.gpu, s->env.place.stream, g->packed,
			    packed_bytes, err);
	return rc ? rc
		  : ops->stream_sync(s->env.place.gpu, s->env.place.stream,
				     err);
}

static int open_csc(struct gf_selector *s, struct gf_error *err)
{
	struct gf_csc *c = gf_xcalloc(1, sizeof(*c));
	size_t i;
	int rc;

	s->priv = c;
	rc = gf_csc_init(c, &s->env, err);
	if (rc)
		return rc;
	c->gpu = gf_xcalloc(1, sizeof(*c->gpu));
	c->gap_elems =
		GF_LANE_GRAIN_ELEMS - 1 -
		(c->pack_chunks * c->chunk_elems - 1) % GF_LANE_GRAIN_ELEMS;
	rc = allocate(s, err);
	for (i = 0; i < s->env.depth && !rc; i++)
		c->steps[i].packed = (float *)c->gpu->packed + i * stride(s);
	if (rc)
		gf_error_prefix(err, "selection");
	return rc;
}

static void close_csc(struct gf_selector *s)
{
	struct gf_csc *c = s->priv;
	struct gf_csc_gpu *g = c ? c->gpu : NULL;
	const struct gf_gpu_ops *ops;
	struct gf_gpu *gpu = s->env.place.gpu;
	struct gf_error ignored;

	if (!c)
		return;
	if (!g) {
		gf_csc_release(c);
		free(c);
		return;
	}
	ops = gpu->ops;
	(void)ops->stream_sync(gpu, s->env.place.stream, &ignored);
	ops->host_free(gpu, g->host);
	ops->free(gpu, g->history);
	ops->free(gpu, g->packed);
	ops->free(gpu, g->norms);
	ops->free(gpu, g->chosen);
	ops->free(gpu, g->sent);
	ops->free(gpu, g->sums);
	ops->free(gpu, g->next);
	ops->free(gpu, g->shared);
	ops->free(gpu, g->work);
	free(g->told);
	free(g);
	gf_csc_release(c);
	free(c);
}

/* --- hooks ---------------------------------------------------------------- */

static int share(struct gf_selector *s, size_t slot, struct gf_gpu_stream *q,
		 struct gf_error *err)
{
	const struct gf_csc_gpu *g = gf_csc_gpu(s);
	const struct gf_csc *c = gf_csc_of(s);
	const struct gf_csc_step *t = gf_csc_step_of(s, slot);
	struct gf_gpu *gpu = s->env.place.gpu;
	const size_t nmarks = gf_csc_shared_elems(c) - c->nchunks;
	float *marks = (float *)g->shared + c->nchunks;
	const struct gf_gpu_norms o = {
		.shared = g->shared,
		.bad = marks + (size_t)s->env.rank * (nmarks / c->ranks),
		.left = g->norms,
		.sent = g->sent,
		.count = c->nchunks,
		.sums = g->sums,
		.chosen = g->chosen,
		.nchosen = t->nchosen,
		/* a sum is every rank's: they share its norm */
		.part = c->means ? 1 : 1.0 / c->ranks,
	};
	int rc = gpu->ops->zero(gpu, q, marks, nmarks * sizeof(*marks), err);

	if (rc)
		return rc;
	if (t->dense)
		gpu->kernels->chunk_norms_f32(q, t->data, NULL, gf_csc_elems(s),
					      c->chunk_elems, g->sums);
	gpu->kernels->share_norms(q, &o);
	return gpu->ops->check(gpu, err);
}

static int prepare(void *ctx, size_t slot, size_t message,
		   struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_csc_step *t = gf_csc_step_of(s, slot);
	int rc = gf_csc_gpu_take(s, t->list[message].last + 1, q, err);

	if (rc)
		return rc;
	return gf_csc_is_norms(t, message)
		       ? share(s, slot, q, err)
		       : gf_select_scale(s, slot, &t->list[message], q, err);
}

static int finish(void *ctx, size_t slot, size_t message,
		  struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	struct gf_csc_step *t = gf_csc_step_of(s, slot);
	const struct gf_work *w = &t->list[message];
	int rc;

	if (gf_csc_is_norms(t, message))
		return 0;
	rc = gf_select_unscale(s, slot, w, q, err);
	if (rc || t->dense)
		return rc;
	s->env.place.gpu->kernels->chunk_norms_f32(
		q, w->data, NULL, w->count_elems, t->csc->chunk_elems,
		(double *)gf_csc_gpu(s)->sums + t->first_chosen[message]);
	return s->env.place.gpu->ops->check(s->env.place.gpu, err);
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q,
	       struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_csc_gpu *g = gf_csc_gpu(s);
	const struct gf_csc *c = gf_csc_of(s);
	const struct gf_csc_step *t = gf_csc_step_of(s, slot);
	struct gf_gpu *gpu = s->env.place.gpu;
	struct gf_gpu_topk top = {.index = g->next, .work = g->work};
	int rc;

	rc = gf_select_clear_flag(s, slot, q, err);
	if (rc)
		return rc;
	/* marks of ranks, not norms: these may be infinite in f32 */
	gpu->kernels->nonfinite_f32(q, (float *)g->shared + c->nchunks,
				    s->flag[slot],
				    gf_csc_shared_elems(c) - c->nchunks);
	/* the history becomes this step's, unless the step is bad */
	gpu->kernels->keep_chunks_f32(q, s->flag[slot], g->history, t->data,
				      gf_csc_elems(s), c->chunk_elems, g->sent,
				      c->decay);
	top.values = g->shared;
	top.count = c->nchunks;
	top.k = gf_csc_kept(c->params, c->nchunks, t->number + 1);
	gpu->kernels->topk_f32(q, &top);
	g->told[slot].nnext = top.k;
	return gpu->ops->copy(gpu, q, g->told[slot].next, g->next,
			      top.k * sizeof(uint32_t), GF_GPU_TO_HOST, err);
}

/* --- what becomes of a step ----------------------------------------------- */

/* Tells the host the chunks that the device has chosen. */
static void mark_next(struct gf_selector *s, size_t slot)
{
	const struct gf_csc_told *told = &gf_csc_gpu(s)->told[slot];
	struct gf_csc_step *t = gf_csc_step_of(s, slot);
	size_t i;

	memset(t->next, 0, t->csc->nchunks * sizeof(*t->next));
	for (i = 0; i < told->nnext; i++)
		t->next[told->next[i]] = 1;
}

static void adopt(struct gf_selector *s, size_t slot)
{
	mark_next(s, slot);
	gf_csc_adopt(s, slot);
}

/* --- checkpoints ---------------------------------------------------------- */

/* Sums of a slot's step, where they lie, and at `values`, as the pool. */
static int copy_sums(struct gf_selector *s, size_t slot, float *values,
		     enum gf_gpu_copy kind, struct gf_error *err)
{
	const struct gf_csc_step *t = gf_csc_step_of(s, slot);
	const struct gf_gpu_ops *ops = s->env.place.gpu->ops;
	struct gf_optim_piece *p = t->csc->pieces;
	size_t n = gf_csc_pieces(t);
	int rc = 0;

	for (; n && !rc; n--, p++) {
		float *there = (float *)(uintptr_t)p->grad;
		float *here = values + p->first;
		const bool down = kind == GF_GPU_TO_HOST;

		rc = ops->copy(s->env.place.gpu, s->env.place.stream,
			       down ? here : there, down ? there : here,
			       p->count_elems * sizeof(float), kind, err);
	}
	return rc ? rc
		  : ops->stream_sync(s->env.place.gpu, s->env.place.stream,
				     err);
}

static int keep(struct gf_selector *s, size_t slot, size_t age, bool bad,
		float *values, struct gf_error *err)
{
	mark_next(s, slot);
	gf_csc_note(gf_csc_step_of(s, slot), age, bad);
	memset(values, 0, gf_csc_elems(s) * sizeof(*values));
	return copy_sums(s, slot, values, GF_GPU_TO_HOST, err);
}

static int restore(struct gf_selector *s, size_t slot, size_t age,
		   const float *values, struct gf_error *err)
{
	struct gf_csc_told *told = &gf_csc_gpu(s)->told[slot];
	struct gf_csc_step *t = gf_csc_step_of(s, slot);
	size_t i;

	gf_csc_recall(t, age);
	for (told->nnext = i = 0; i < t->csc->nchunks; i++)
		if (t->next[i])
			told->next[told->nnext++] = (uint32_t)i;
	return copy_sums(s, slot, (float *)(uintptr_t)values, GF_GPU_TO_DEVICE,
			 err);
}

static int fetch(struct gf_selector *s, struct gf_error *err)
{
	return gf_select_copy(s, gf_csc_of(s)->history, gf_csc_gpu(s)->history,
			      GF_GPU_TO_HOST, err);
}

static int send(struct gf_selector *s, struct gf_error *err)
{
	return gf_select_copy(s, gf_csc_gpu(s)->history, gf_csc_of(s)->history,
			      GF_GPU_TO_DEVICE, err);
}

const struct gf_select_ops gf_select_csc_gpu = {
	.hooks = {.prepare = prepare,
		  .finish = finish,
		  .end = end,
		  .serial = true},
	.check = gf_select_check_whole,
	.open = open_csc,
	.close = close_csc,
	.begin = gf_csc_gpu_begin,
	.expect = gf_csc_expect,
	.sums = gf_csc_sums,
	.adopt = adopt,
	.state = gf_csc_state,
	.keep = keep,
	.restore = restore,
	.fetch = fetch,
	.send = send,
};
