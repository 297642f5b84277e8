/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topk and gtopk where gradients are on a GPU (compressors/topk.h): the residual is kept
 * there, and the k largest are taken out there. All bits are those of topk.c. Sets go from GPU
 * to GPU and are merged where they land (compressors/sets_gpu.h).
 *
 * A step ends before the next one's first gradients are taken. Between the two gradients hold what
 * was not sent, and the residual is as it was.
 */

#include "base/heap.h"
#include "compressors/topk.h"
#include "compressors/sets_gpu.h"

struct gf_topk_gpu {
	void *residual;
	struct gf_sparse_gpu **messages;
};

static struct gf_topk_gpu *gpu_of(const struct gf_selector *s)
{
	return ((struct gf_topk_select *)s->priv)->gpu;
}

/* --- memory --------------------------------------------------------------- */

static int open_messages(struct gf_selector *s, struct gf_error *err)
{
	const struct gf_plan *plan = s->env.plan;
	struct gf_topk_gpu *g = gpu_of(s);
	int rc = 0;

	g->messages = gf_xcalloc(plan->nmessages + 1, sizeof(struct gf_sparse_gpu *));
	for (size_t i = 0; i < plan->nmessages && !rc; i++) {
		const size_t first = plan->messages[i].first;
		const size_t count = s->plan_work[0][i].count_elems;

		rc = gf_sparse_gpu_new(
			&(struct gf_sparse_gpu_config){
				.gpu = s->env.place.gpu,
				.residual = (float *)g->residual + s->env.pools[0].offsets[first],
				.count_elems = count,
				.merges = gf_topk_kind(s).merges,
				.putback = gf_topk_kind(s).putback,
				.ranks = plan->ranks,
				.rank = s->env.rank,
				.most_k = gf_topk_most_k(s, count),
			},
			&g->messages[i], err);
		if (rc)
			gf_error_prefix(err, "message %zu", i);
	}
	return rc;
}

static int open_topk(struct gf_selector *s, struct gf_error *err)
{
	const size_t bytes = s->env.pools[0].count_elems * sizeof(float);
	const struct gf_gpu_ops *ops = s->env.place.gpu->ops;
	struct gf_topk_select *p;
	const struct gf_topk_kind kind = gf_topk_kind(s);
	int rc;

	gf_topk_open(s, &kind);
	p = s->priv;
	p->gpu = gf_xcalloc(1, sizeof(*p->gpu));
	rc = ops->alloc(s->env.place.gpu, bytes, &p->gpu->residual, err);
	if (rc)
		gf_error_prefix(err, "residual");
	/* before the first selection, on whichever stream */
	rc = rc ?: ops->zero(s->env.place.gpu, s->env.place.stream, p->gpu->residual, bytes, err);
	rc = rc ?: ops->stream_sync(s->env.place.gpu, s->env.place.stream, err);
	return rc ?: open_messages(s, err);
}

static void close_topk(struct gf_selector *s)
{
	struct gf_topk_select *p = s->priv;
	struct gf_topk_gpu *g = p ? p->gpu : NULL;
	struct gf_gpu *gpu = s->env.place.gpu;
	const struct gf_gpu_ops *ops = gpu->ops;
	struct gf_error ignored;

	if (!g) {
		gf_topk_close(s);
		return;
	}
	(void)ops->stream_sync(gpu, s->env.place.stream, &ignored);
	for (size_t i = 0; g->messages && i < s->env.plan->nmessages; i++)
		gf_sparse_gpu_free(g->messages[i]);
	ops->free(gpu, g->residual);
	free(g->messages);
	free(g);
	gf_topk_close(s);
}

static void begin(struct gf_selector *s, size_t slot, size_t step, const struct gf_work **list,
		  size_t *n)
{
	struct gf_topk_gpu *g = gpu_of(s);
	struct gf_work *work = s->slots[slot].list;

	(void)step;
	(void)list;
	for (size_t i = 0; i < *n; i++) {
		work[i] = s->plan_work[slot][i];
		gf_sparse_gpu_work(g->messages[i], &work[i]);
	}
}

/* --- hooks ---------------------------------------------------------------- */

/* Sets are as large as they can be before the first step. */
static const struct gf_work *expect(struct gf_selector *s, size_t *n)
{
	const struct gf_work *list = s->slots[0].list;

	*n = s->slots[0].nlist;
	begin(s, 0, 1, &list, n);
	return list;
}

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_work *w = &s->plan_work[slot][message];

	return gf_sparse_gpu_prepare(gpu_of(s)->messages[message], w->data,
				     gf_topk_k(s, s->slots[slot].step.number, w->count_elems), q,
				     err);
}

static int finish(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		  struct gf_error *err)
{
	const struct gf_selector *s = ctx;

	(void)slot;
	return gf_sparse_gpu_finish(gpu_of(s)->messages[message], q, err);
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_topk_gpu *g = gpu_of(s);
	int rc = gf_select_clear_flag(s, slot, q, err);

	for (size_t i = 0; i < s->env.plan->nmessages && !rc; i++)
		gf_sparse_gpu_look(g->messages[i], q, s->slots[slot].step.flag);
	for (size_t i = 0; i < s->env.plan->nmessages && !rc; i++)
		rc = gf_sparse_gpu_apply(g->messages[i], q, s->slots[slot].step.flag, err);
	return rc;
}

/* --- checkpoints ---------------------------------------------------------- */

static int fetch(struct gf_selector *s, struct gf_error *err)
{
	const struct gf_topk_select *p = s->priv;

	return gf_select_copy(s, s->residual, p->gpu->residual, GF_GPU_TO_HOST, err);
}

static int send(struct gf_selector *s, struct gf_error *err)
{
	const struct gf_topk_select *p = s->priv;

	return gf_select_copy(s, p->gpu->residual, s->residual, GF_GPU_TO_DEVICE, err);
}

const struct gf_select_ops gf_select_topk_gpu = {
	.hooks = {.prepare = prepare, .finish = finish, .end = end},
	.slot_bytes = sizeof(struct gf_topk_slot),
	.residual = "sparse.residual",
	.open = open_topk,
	.close = close_topk,
	.begin = begin,
	.expect = expect,
	.fetch = fetch,
	.send = send,
};
