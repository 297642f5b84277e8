/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * csc where gradients are on a GPU (compressors/csc.h): the history is kept there, and chunks are
 * measured and packed there. All bits are those of csc.c.
 *
 * Nothing leaves the GPUs: hooks enqueue, the next step's chunks are chosen there, and the host is
 * told them, as it cuts the messages; `adopt` is when it has waited for that.
 *
 * A step ends before the next one's first gradient is taken, so that memory which no later step
 * needs is there once for all slots.
 */
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "compressors/csc.h"
#include "cuda/lanes/program.h"

/* Data that the host and the device exchange in a step, in pinned memory. */
struct told {
	uint32_t *chosen; /* as the step's */
	uint8_t *sent;    /* per chunk, 1: it goes */
	uint32_t *next;   /* nnext chunks, ascending, from the device */
	size_t nnext;
};

struct gf_csc_gpu {
	struct told *told; /* per slot */
	void *host;        /* their memory */
	/* The device's. Each slot has its own `packed`. */
	void *history, *packed, *norms, *chosen, *sent;
	/* Norms of packed chunks, what ranks add up, and the choice. */
	void *sums, *shared, *next, *work;
	/* of the step begun last */
	size_t slot, taken_tensors, taken_chunks, taken_packs;
};

static struct gf_csc_gpu *gpu_of(const struct gf_selector *s)
{
	return ((struct gf_csc *)s->priv)->gpu;
}

static size_t elems_of(const struct gf_selector *s)
{
	return s->env.pools[0].count_elems;
}

/* From one slot's `packed` to the next one's, whatever is done to either. */
static size_t stride(const struct gf_selector *s)
{
	const struct gf_csc *c = gf_csc_of(s);

	return (gf_csc_place(c, c->nchunks) + 63) / 64 * 64;
}

/* --- memory --------------------------------------------------------------- */

static int open_told(struct gf_selector *s, struct gf_error *err)
{
	struct gf_csc_gpu *g = gpu_of(s);
	const size_t n = gf_csc_of(s)->nchunks, all = n * s->env.depth;
	uint32_t *words;
	int rc;

	g->told = gf_xcalloc(s->env.depth, sizeof(*g->told));
	rc = s->env.place.gpu->ops->host_alloc(
		s->env.place.gpu, all * (2 * sizeof(*words) + sizeof(uint8_t)), &g->host, err);
	if (rc)
		return rc;
	words = g->host;
	for (size_t i = 0; i < s->env.depth; i++)
		g->told[i] = (struct told){
			.chosen = words + i * n,
			.next = words + all + i * n,
			.sent = (uint8_t *)(words + 2 * all) + i * n,
		};
	return 0;
}

static int allocate(struct gf_selector *s, struct gf_error *err)
{
	struct gf_csc_gpu *g = gpu_of(s);
	const struct gf_csc *c = gf_csc_of(s);
	const struct gf_gpu_ops *ops = s->env.place.gpu->ops;
	const size_t n = c->nchunks, bytes = elems_of(s) * sizeof(float);
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
	int rc = open_told(s, err);

	for (size_t i = 0; i < GF_ARRAY_LENGTH(all) && !rc; i++)
		rc = ops->alloc(s->env.place.gpu, all[i].size_bytes, all[i].p, err);
	/* before the first take, on whichever stream */
	rc = rc ?: ops->zero(s->env.place.gpu, s->env.place.stream, g->history, bytes, err);
	/* what lies between packs stays so */
	rc = rc ?: ops->zero(s->env.place.gpu, s->env.place.stream, g->packed, packed_bytes, err);
	return rc ?: ops->stream_sync(s->env.place.gpu, s->env.place.stream, err);
}

static int open_csc(struct gf_selector *s, struct gf_error *err)
{
	struct gf_csc *c = gf_xcalloc(1, sizeof(*c));
	int rc;

	s->priv = c;
	rc = gf_csc_init(c, &s->env, err);
	if (rc)
		return rc;
	c->gpu = gf_xcalloc(1, sizeof(*c->gpu));
	c->gap_elems = GF_LANE_GRAIN_ELEMS - 1 -
		       (c->pack_chunks * c->chunk_elems - 1) % GF_LANE_GRAIN_ELEMS;
	rc = allocate(s, err);
	for (size_t i = 0; i < s->env.depth && !rc; i++)
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

/* --- what is made of gradients before they go ----------------------------- */

static void begin(struct gf_selector *s, size_t slot, size_t step, const struct gf_work **list,
		  size_t *n)
{
	struct gf_csc_gpu *g = gpu_of(s);
	const struct gf_csc *c = gf_csc_of(s);
	struct gf_csc_step *t = gf_csc_step_of(s, slot);
	struct told *told = &g->told[slot];

	g->slot = slot;
	g->taken_tensors = g->taken_chunks = g->taken_packs = 0;
	gf_csc_begin(s, slot, step, list, n);
	/* what a message takes is all that was made up to its last tensor */
	for (size_t i = 0; i < t->nlist; i++)
		t->list[i].first = 0;
	t->list[t->nlist - 1].data = g->shared;
	memcpy(told->chosen, t->chosen, t->nchosen * sizeof(*told->chosen));
	memset(told->sent, 0, c->nchunks);
	for (size_t i = 0; i < t->nchosen; i++)
		told->sent[t->chosen[i]] = 1;
}

static int send_lists(struct gf_selector *s, struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_csc_gpu *g = gpu_of(s);
	const struct gf_gpu_ops *ops = s->env.place.gpu->ops;
	const struct told *told = &g->told[g->slot];
	int rc = ops->copy(s->env.place.gpu, q, g->sent, told->sent, gf_csc_of(s)->nchunks,
			   GF_GPU_TO_DEVICE, err);

	return rc ? rc
		  : ops->copy(s->env.place.gpu, q, g->chosen, told->chosen,
			      gf_csc_step_of(s, g->slot)->nchosen * sizeof(uint32_t),
			      GF_GPU_TO_DEVICE, err);
}

/* Chunks that are complete. Those that go are measured when they are sums, too: one pass over
 * neighbours costs less than many over what lies between. */
static void measure(struct gf_selector *s, size_t ntensors, struct gf_gpu_stream *q)
{
	struct gf_csc_gpu *g = gpu_of(s);
	const struct gf_csc *c = gf_csc_of(s);
	const size_t first = g->taken_chunks;
	size_t end = first, at, n;

	while (end < c->nchunks && gf_csc_chunk_last_tensor(c, end) < ntensors)
		end++;
	g->taken_chunks = end;
	if (end == first)
		return;
	at = gf_csc_chunk_first(c, first);
	n = gf_csc_chunk_first(c, end - 1) + gf_csc_chunk_count(c, end - 1) - at;
	s->env.place.gpu->kernels->chunk_norms_f32(q, gf_csc_step_of(s, g->slot)->data + at,
						   (float *)g->history + at, n, c->chunk_elems,
						   (double *)g->norms + first);
}

/* Packed messages of which every tensor is there. */
static void pack(struct gf_selector *s, size_t ntensors, struct gf_gpu_stream *q)
{
	struct gf_csc_gpu *g = gpu_of(s);
	const struct gf_csc *c = gf_csc_of(s);
	const struct gf_csc_step *t = gf_csc_step_of(s, g->slot);
	const struct gf_work *w = &t->work[g->taken_packs];

	for (; g->taken_packs < t->nwork && w->last < ntensors; w++) {
		const size_t *first = &t->first_chosen[g->taken_packs++];

		s->env.place.gpu->kernels->gather_chunks_f32(
			q, w->data, t->data, elems_of(s), c->chunk_elems,
			(uint32_t *)g->chosen + first[0], first[1] - first[0]);
	}
}

/* On q, after the gradients of the first so many tensors: chunks that they complete take up their
 * history and are measured; packed messages that they complete are packed. */
static int take(struct gf_selector *s, size_t ntensors, struct gf_gpu_stream *q,
		struct gf_error *err)
{
	struct gf_csc_gpu *g = gpu_of(s);
	const struct gf_csc_step *step = gf_csc_step_of(s, g->slot);
	const size_t *offsets = s->env.pools[0].offsets;
	const size_t first = offsets[g->taken_tensors];
	int rc = g->taken_tensors ? 0 : send_lists(s, q, err);

	if (rc)
		return rc;
	if (step->dense) { /* all of it goes */
		s->env.place.gpu->kernels->add_f32(q, step->data + first,
						   (float *)g->history + first,
						   offsets[ntensors] - first);
	} else {
		measure(s, ntensors, q);
		pack(s, ntensors, q);
	}
	g->taken_tensors = ntensors;
	return s->env.place.gpu->ops->check(s->env.place.gpu, err);
}

/* --- hooks ---------------------------------------------------------------- */

static int share(struct gf_selector *s, size_t slot, struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_csc_gpu *g = gpu_of(s);
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
		gpu->kernels->chunk_norms_f32(q, t->data, NULL, elems_of(s), c->chunk_elems,
					      g->sums);
	gpu->kernels->share_norms(q, &o);
	return gpu->ops->check(gpu, err);
}

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_csc_step *t = gf_csc_step_of(s, slot);
	int rc = take(s, t->list[message].last + 1, q, err);

	if (rc)
		return rc;
	return gf_csc_is_norms(t, message) ? share(s, slot, q, err)
					   : gf_select_scale(s, slot, &t->list[message], q, err);
}

static int finish(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		  struct gf_error *err)
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
		(double *)gpu_of(s)->sums + t->first_chosen[message]);
	return s->env.place.gpu->ops->check(s->env.place.gpu, err);
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_csc_gpu *g = gpu_of(s);
	const struct gf_csc *c = gf_csc_of(s);
	const struct gf_csc_step *t = gf_csc_step_of(s, slot);
	struct gf_gpu *gpu = s->env.place.gpu;
	struct gf_gpu_topk top = {.index = g->next, .work = g->work};
	int rc = gf_select_clear_flag(s, slot, q, err);

	if (rc)
		return rc;
	/* marks of ranks, not norms: these may be infinite in f32 */
	gpu->kernels->nonfinite_f32(q, (float *)g->shared + c->nchunks, s->slots[slot].step.flag,
				    gf_csc_shared_elems(c) - c->nchunks);
	/* the history becomes this step's, unless the step is bad */
	gpu->kernels->keep_chunks_f32(q, s->slots[slot].step.flag, g->history, t->data, elems_of(s),
				      c->chunk_elems, g->sent, c->decay);
	top.values = g->shared;
	top.count = c->nchunks;
	top.k = gf_csc_kept(c->params, c->nchunks, t->number + 1);
	gpu->kernels->topk_f32(q, &top);
	g->told[slot].nnext = top.k;
	return gpu->ops->copy(gpu, q, g->told[slot].next, g->next, top.k * sizeof(uint32_t),
			      GF_GPU_TO_HOST, err);
}

/* --- what becomes of a step ----------------------------------------------- */

/* Tells the host the chunks that the device has chosen. */
static void mark_next(struct gf_selector *s, size_t slot)
{
	const struct told *told = &gpu_of(s)->told[slot];
	struct gf_csc_step *t = gf_csc_step_of(s, slot);

	memset(t->next, 0, t->csc->nchunks * sizeof(*t->next));
	for (size_t i = 0; i < told->nnext; i++)
		t->next[told->next[i]] = 1;
}

static void adopt(struct gf_selector *s, size_t slot)
{
	mark_next(s, slot);
	gf_csc_adopt(s, slot);
}

/* --- checkpoints ---------------------------------------------------------- */

/* Sums of a slot's step, where they lie, and at `values`, as the pool. */
static int copy_sums(struct gf_selector *s, size_t slot, float *values, enum gf_gpu_copy kind,
		     struct gf_error *err)
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

		rc = ops->copy(s->env.place.gpu, s->env.place.stream, down ? here : there,
			       down ? there : here, p->count_elems * sizeof(float), kind, err);
	}
	return rc ?: ops->stream_sync(s->env.place.gpu, s->env.place.stream, err);
}

static int keep(struct gf_selector *s, size_t slot, size_t age, bool bad, float *values,
		struct gf_error *err)
{
	mark_next(s, slot);
	gf_csc_note(gf_csc_step_of(s, slot), age, bad);
	memset(values, 0, elems_of(s) * sizeof(*values));
	return copy_sums(s, slot, values, GF_GPU_TO_HOST, err);
}

static int restore(struct gf_selector *s, size_t slot, size_t age, const float *values,
		   struct gf_error *err)
{
	struct told *told = &gpu_of(s)->told[slot];
	struct gf_csc_step *t = gf_csc_step_of(s, slot);
	size_t i;

	gf_csc_recall(t, age);
	for (told->nnext = i = 0; i < t->csc->nchunks; i++)
		if (t->next[i])
			told->next[told->nnext++] = (uint32_t)i;
	return copy_sums(s, slot, (float *)(uintptr_t)values, GF_GPU_TO_DEVICE, err);
}

static int fetch(struct gf_selector *s, struct gf_error *err)
{
	return gf_select_copy(s, gf_csc_of(s)->history, gpu_of(s)->history, GF_GPU_TO_HOST, err);
}

static int send(struct gf_selector *s, struct gf_error *err)
{
	return gf_select_copy(s, gpu_of(s)->history, gf_csc_of(s)->history, GF_GPU_TO_DEVICE, err);
}

const struct gf_select_ops gf_select_csc_gpu = {
	.hooks = {.prepare = prepare, .finish = finish, .end = end},
	.open = open_csc,
	.close = close_csc,
	.begin = begin,
	.expect = gf_csc_expect,
	.sums = gf_csc_sums,
	.adopt = adopt,
	.state = gf_csc_state,
	.keep = keep,
	.restore = restore,
	.fetch = fetch,
	.send = send,
};
