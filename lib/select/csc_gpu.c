/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * csc where gradients are on a GPU (select/csc.h): the history is kept there,
 * and chunks are measured and packed there. All bits are those of csc.c.
 *
 * BY THE HOST, packed chunks and the norms of the others come to the host, are
 * exchanged and chosen there, and go back as sums. Else nothing leaves the
 * GPUs: hooks enqueue, the next step's chunks are chosen there, and the host is
 * told them, as it cuts the messages; `adopt` is when it has waited for that.
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
	double *norms;
	uint32_t *words;
	size_t i;
	int rc;

	g->told = gf_xcalloc(s->env.depth, sizeof(*g->told));
	rc = s->env.place.gpu->ops->host_alloc(
		s->env.place.gpu,
		all * (sizeof(*norms) + 2 * sizeof(*words) + sizeof(uint8_t)),
		&g->host, err);
	if (rc)
		return rc;
	norms = g->host;
	words = (uint32_t *)(void *)(norms + all);
	for (i = 0; i < s->env.depth; i++)
		g->told[i] = (struct gf_csc_told){
			.norms = norms + i * n,
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
	const bool by_host = s->env.place.by_host;
	const size_t n = c->nchunks, bytes = gf_csc_elems(s) * sizeof(float);
	const size_t packed_bytes =
		by_host ? bytes : stride(s) * s->env.depth * sizeof(float);
	const struct {
		void **p;
		size_t size_bytes;
		bool wanted;
	} all[] = {
		{&g->history, bytes, true},
		{&g->packed, packed_bytes, true},
		{&g->norms, n * sizeof(double), true},
		{&g->chosen, n * sizeof(uint32_t), true},
		{&g->sent, n, true},
		{&g->left, bytes, by_host && s->env.depth > 1},
		{&g->sums, n * sizeof(double), !by_host},
		{&g->next, n * sizeof(uint32_t), !by_host},
		{&g->shared, gf_csc_shared_elems(c) * sizeof(float), !by_host},
		{&g->work, s->env.place.gpu->kernels->topk_work_bytes(n),
		 !by_host},
	};
	size_t i;
	int rc = open_told(s, err);

	for (i = 0; i < GF_ARRAY_LENGTH(all) && !rc; i++)
		if (all[i].wanted)
			rc = ops->alloc(s->env.place.gpu, all[i].size_bytes,
					all[i].p, err);
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

/* A chunk that waits, for the host; of a step that has a gradient which is not
 * finite: its takes have ended, and nothing has been enqueued that would change
 * it. The chunk's place is the same for all slots. */
static const float *look(void *selector, size_t chunk)
{
	struct gf_selector *s = selector;
	struct gf_csc_gpu *g = gf_csc_gpu(s);
	const struct gf_csc *c = gf_csc_of(s);
	const struct gf_gpu_ops *ops = s->env.place.gpu->ops;
	struct gf_error ignored;
	int rc;

	rc = ops->copy(s->env.place.gpu, g->looking, g->looked_at,
		       gf_csc_left(s, 0) + gf_csc_chunk_first(c, chunk),
		       gf_csc_chunk_count(c, chunk) * sizeof(float),
		       GF_GPU_TO_HOST, &ignored);
	rc = rc ? rc : ops->stream_sync(s->env.place.gpu, g->looking, &ignored);
	return rc ? NULL : g->looked_at;
}

/* Messages are on the host: a dense step, in which every chunk goes, is one
 * without gaps. */
static int open_by_host(struct gf_selector *s, struct gf_error *err)
{
	struct gf_csc_gpu *g = gf_csc_gpu(s);
	struct gf_csc *c = gf_csc_of(s);
	const struct gf_gpu_ops *ops = s->env.place.gpu->ops;
	int rc = ops->host_alloc(s->env.place.gpu,
				 c->chunk_elems * sizeof(float), &g->looked_at,
				 err);

	rc = rc ? rc
		: ops->stream_new(s->env.place.gpu, false, &g->looking, err);
	for (; !rc && g->npinned < s->env.depth; g->npinned += !rc) {
		struct gf_csc_step *t = &c->steps[g->npinned];

		rc = gf_csc_alloc_packed(t, err);
		rc = rc ? rc
			: ops->host_pin(s->env.place.gpu, t->packed,
					gf_csc_elems(s) * sizeof(float), err);
		t->data = t->packed;
		t->fetch = look;
		t->fetch_ctx = s;
	}
	return rc;
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
	if (!s->env.place.by_host)
		c->gap_elems = GF_LANE_GRAIN_ELEMS - 1 -
			       (c->pack_chunks * c->chunk_elems - 1) %
				       GF_LANE_GRAIN_ELEMS;
	rc = allocate(s, err);
	if (!rc && s->env.place.by_host)
		rc = open_by_host(s, err);
	for (i = 0; i < s->env.depth && !rc && !s->env.place.by_host; i++) {
		c->steps[i].data = s->env.pools[i].data;
		c->steps[i].packed = (float *)c->gpu->packed + i * stride(s);
	}
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
	if (g->taking)
		(void)ops->stream_sync(gpu, g->taking, &ignored);
	(void)ops->stream_sync(gpu, s->env.place.stream, &ignored);
	ops->stream_free(gpu, g->looking);
	while (g->npinned > 0)
		ops->host_unpin(gpu, c->steps[--g->npinned].packed);
	ops->host_free(gpu, g->looked_at);
	ops->host_free(gpu, g->host);
	ops->free(gpu, g->history);
	ops->free(gpu, g->packed);
	ops->free(gpu, g->norms);
	ops->free(gpu, g->chosen);
	ops->free(gpu, g->sent);
	ops->free(gpu, g->left);
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

static void share_by_host(struct gf_selector *s, size_t slot)
{
	struct gf_csc_step *t = gf_csc_step_of(s, slot);
	size_t i;

	for (i = 0; i < t->nwaiting; i++)
		t->norms[t->waiting[i]] =
			gf_csc_gpu(s)->told[slot].norms[t->waiting[i]];
	gf_csc_share(t, s->env.rank);
}

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
	int rc = q ? gf_csc_gpu_take(s, t->list[message].last + 1, q, err) : 0;

	if (rc)
		return rc;
	if (!gf_csc_is_norms(t, message))
		return gf_select_scale(s, slot, &t->list[message], q, err);
	if (q)
		return share(s, slot, q, err);
	share_by_host(s, slot);
	return 0;
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
	if (!q) {
		gf_csc_measure(t, message);
		return 0;
	}
	s->env.place.gpu->kernels->chunk_norms_f32(
		q, w->data, NULL, w->count_elems, t->csc->chunk_elems,
		(double *)gf_csc_gpu(s)->sums + t->first_chosen[message]);
	return s->env.place.gpu->ops->check(s->env.place.gpu, err);
}

/* The history becomes this step's, unless *skip. */
static void keep_chunks(struct gf_selector *s, size_t slot,
			struct gf_gpu_stream *q, const uint32_t *skip)
{
	const struct gf_csc_gpu *g = gf_csc_gpu(s);
	const struct gf_csc *c = gf_csc_of(s);

	s->env.place.gpu->kernels->keep_chunks_f32(
		q, skip, g->history, gf_csc_left(s, slot), gf_csc_elems(s),
		c->chunk_elems, g->sent, c->decay);
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q,
	       struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_csc_gpu *g = gf_csc_gpu(s);
	const struct gf_csc *c = gf_csc_of(s);
	struct gf_csc_step *t = gf_csc_step_of(s, slot);
	struct gf_gpu *gpu = s->env.place.gpu;
	struct gf_gpu_topk top = {.index = g->next, .work = g->work};
	int rc;

	if (!q) {
		gf_csc_look(t);
		return 0;
	}
	rc = gf_select_clear_flag(s, slot, q, err);
	if (rc)
		return rc;
	/* marks of ranks, not norms: these may be infinite in f32 */
	gpu->kernels->nonfinite_f32(q, (float *)g->shared + c->nchunks,
				    s->flag[slot],
				    gf_csc_shared_elems(c) - c->nchunks);
	keep_chunks(s, slot, q, s->flag[slot]);
	top.values = g->shared;
	top.count = c->nchunks;
	top.k = gf_csc_kept(c->params, c->nchunks, t->number + 1);
	gpu->kernels->topk_f32(q, &top);
	g->told[slot].nnext = top.k;
	return gpu->ops->copy(gpu, q, g->told[slot].next, g->next,
			      top.k * sizeof(uint32_t), GF_GPU_TO_HOST, err);
}

/* --- what becomes of a step ----------------------------------------------- */

static int commit(struct gf_selector *s, size_t slot, struct gf_gpu_stream *q,
		  struct gf_error *err)
{
	keep_chunks(s, slot, q, NULL);
	return s->env.place.gpu->ops->check(s->env.place.gpu, err);
}

static int sums(struct gf_selector *s, size_t slot, struct gf_select_sums *out,
		struct gf_error *err)
{
	const struct gf_csc_gpu *g = gf_csc_gpu(s);
	const struct gf_csc *c = gf_csc_of(s);
	const struct gf_csc_step *t = gf_csc_step_of(s, slot);
	const float *from = t->dense ? t->data : t->packed;

	if (s->env.place.by_host)
		from = g->packed;
	out->pieces = c->pieces;
	out->npieces = gf_csc_pieces(t, from, c->pieces);
	if (!s->env.place.by_host)
		return 0;
	return s->env.place.gpu->ops->copy(
		s->env.place.gpu, s->env.place.stream, g->packed, t->packed,
		((t->nchosen - 1) * c->chunk_elems +
		 gf_csc_chunk_count(c, t->chosen[t->nchosen - 1])) *
			sizeof(float),
		GF_GPU_TO_DEVICE, err);
}

/* Tells the host the chunks that the device has chosen. */
static void mark_next(struct gf_selector *s, size_t slot)
{
	const struct gf_csc_told *told = &gf_csc_gpu(s)->told[slot];
	struct gf_csc_step *t = gf_csc_step_of(s, slot);
	size_t i;

	if (s->env.place.by_host)
		return;
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
	size_t n = gf_csc_pieces(t, t->dense ? t->data : t->packed, p);
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
	if (s->env.place.by_host)
		return gf_csc_keep(s, slot, age, bad, values, err);
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

	if (s->env.place.by_host)
		return gf_csc_restore(s, slot, age, values, err);
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
	.inspect = gf_csc_inspect,
	.sums = sums,
	.adopt = adopt,
	.state = gf_csc_state,
	.keep = keep,
	.restore = restore,
	.ready = gf_csc_gpu_ready,
	.commit = commit,
	.fetch = fetch,
	.send = send,
};
