/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topk and gtopk where gradients are on a GPU (select/selections.h): the
 * residual is kept there, and the k largest are taken out there. All bits are
 * those of topk_host.c.
 *
 * BY THE HOST, sets alone come to the host, where ranks exchange them, and go
 * back as sums; what returns to the residual is noted on the way. Else sets go
 * from GPU to GPU and are merged where they land (select/sets_gpu.h).
 *
 * A step ends before the next one's first gradients are taken. Between the two
 * gradients hold what was not sent, and the residual is as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "select/selections.h"
#include "select/sets_gpu.h"

/* By the host: a message's entries of the returns. */
struct part {
	size_t returns, room;
};

struct gf_topk_gpu {
	void *residual;
	struct gf_sparse_gpu **messages; /* not by the host */
	/* By the host: */
	struct part *parts;
	struct gf_sparse_returns *returns; /* nmessages */
	size_t nreturns;                   /* of all messages */
	/* indices of all messages, then values */
	void *host_returns, *device_returns;
	/* The values that were not sent. NULL: one step is under way at a time,
	 * and the values stay where the gradients were. */
	void *left;
	void *sets;     /* the device's, laid out as a slot's of the host */
	void *work;     /* of one selection; they come one after the other */
	size_t npinned; /* slots whose sets are */
	size_t next;    /* the message of this step that is taken next */
	struct gf_gpu_stream *taking; /* where selections went last */
};

static struct gf_topk_gpu *gpu_of(const struct gf_selector *s)
{
	return ((struct gf_topk_select *)s->priv)->gpu;
}

static size_t count_elems(const struct gf_selector *s)
{
	return s->env.pools[0].count_elems;
}

/* The first element of message i. */
static size_t first_of(const struct gf_selector *s, size_t i)
{
	return s->env.pools[0].offsets[s->env.plan->messages[i].first];
}

/* --- memory --------------------------------------------------------------- */

static void lay_out_returns(struct gf_selector *s)
{
	struct gf_topk_gpu *g = gpu_of(s);
	size_t n = s->env.plan->nmessages, i;

	g->parts = gf_xcalloc(n + 1, sizeof(*g->parts));
	g->returns = gf_xcalloc(n + 1, sizeof(*g->returns));
	for (i = 0; i < n; i++) {
		const struct gf_sparse_message *m =
			&gf_topk_slot(s, 0)->messages[i];

		g->parts[i] = (struct part){
			.returns = g->nreturns,
			.room = gf_sparse_returns_room(
				m, gf_topk_most_k(s, m->count_elems)),
		};
		g->nreturns += g->parts[i].room;
	}
}

static void give_returns(struct gf_selector *s)
{
	struct gf_topk_gpu *g = gpu_of(s);
	uint32_t *index = g->host_returns;
	float *value = index ? (float *)(void *)(index + g->nreturns) : NULL;
	size_t i, slot;

	for (i = 0; i < s->env.plan->nmessages; i++) {
		for (slot = 0; slot < s->env.depth; slot++)
			gf_topk_slot(s, slot)->messages[i].returns =
				&g->returns[i];
		if (!g->parts[i].room)
			continue;
		g->returns[i].index = index + g->parts[i].returns;
		g->returns[i].value = value + g->parts[i].returns;
	}
}

static int open_by_host(struct gf_selector *s, struct gf_error *err)
{
	const struct gf_topk_select *p = s->priv;
	struct gf_topk_gpu *g = p->gpu;
	struct gf_gpu *gpu = s->env.place.gpu;
	const struct gf_gpu_ops *ops = gpu->ops;
	size_t most = 0, bytes, i;
	int rc;

	lay_out_returns(s);
	for (i = 0; i < s->env.plan->nmessages; i++)
		if (s->plan_work[0][i].count_elems > most)
			most = s->plan_work[0][i].count_elems;
	bytes = g->nreturns * (sizeof(uint32_t) + sizeof(float));
	rc = ops->alloc(gpu, p->sets_bytes, &g->sets, err);
	if (!rc && s->env.depth > 1)
		rc = ops->alloc(gpu, count_elems(s) * sizeof(float), &g->left,
				err);
	rc = rc ? rc
		: ops->alloc(gpu, gpu->kernels->topk_work_bytes(most), &g->work,
			     err);
	if (!rc && bytes)
		rc = ops->alloc(gpu, bytes, &g->device_returns, err);
	if (!rc && bytes)
		rc = ops->host_alloc(gpu, bytes, &g->host_returns, err);
	for (; !rc && g->npinned < s->env.depth; g->npinned += !rc)
		rc = ops->host_pin(gpu, s->slots[g->npinned].memory[0],
				   p->sets_bytes, err);
	if (!rc)
		give_returns(s);
	return rc;
}

static int open_messages(struct gf_selector *s, struct gf_error *err)
{
	const struct gf_plan *plan = s->env.plan;
	struct gf_topk_gpu *g = gpu_of(s);
	size_t i;
	int rc = 0;

	g->messages =
		gf_xcalloc(plan->nmessages + 1, sizeof(struct gf_sparse_gpu *));
	for (i = 0; i < plan->nmessages && !rc; i++) {
		const size_t count = s->plan_work[0][i].count_elems;

		rc = gf_sparse_gpu_new(
			&(struct gf_sparse_gpu_config){
				.gpu = s->env.place.gpu,
				.residual =
					(float *)g->residual + first_of(s, i),
				.count_elems = count,
				.merges = gf_topk_merges(&plan->selection),
				.putback = gf_topk_params(&plan->selection)
						   ->putback,
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
	const size_t bytes = count_elems(s) * sizeof(float);
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
	rc = rc ? rc
		: ops->zero(s->env.place.gpu, s->env.place.stream,
			    p->gpu->residual, bytes, err);
	rc = rc ? rc
		: ops->stream_sync(s->env.place.gpu, s->env.place.stream, err);
	if (rc || !s->env.place.by_host)
		return rc ? rc : open_messages(s, err);
	rc = gf_topk_open_messages(s, err);
	if (rc)
		return rc;
	rc = open_by_host(s, err);
	if (rc)
		gf_error_prefix(err, "selection");
	return rc;
}

static void close_topk(struct gf_selector *s)
{
	struct gf_topk_select *p = s->priv;
	struct gf_topk_gpu *g = p ? p->gpu : NULL;
	struct gf_gpu *gpu = s->env.place.gpu;
	const struct gf_gpu_ops *ops = gpu->ops;
	struct gf_error ignored;
	size_t i;

	if (!g) {
		gf_topk_close(s);
		return;
	}
	if (g->taking)
		(void)ops->stream_sync(gpu, g->taking, &ignored);
	(void)ops->stream_sync(gpu, s->env.place.stream, &ignored);
	for (i = 0; g->messages && i < s->env.plan->nmessages; i++)
		gf_sparse_gpu_free(g->messages[i]);
	while (g->npinned > 0)
		ops->host_unpin(gpu, s->slots[--g->npinned].memory[0]);
	ops->host_free(gpu, g->host_returns);
	ops->free(gpu, g->device_returns);
	ops->free(gpu, g->work);
	ops->free(gpu, g->sets);
	ops->free(gpu, g->left);
	ops->free(gpu, g->residual);
	free(g->messages);
	free(g->returns);
	free(g->parts);
	free(g);
	gf_topk_close(s);
}

static void begin(struct gf_selector *s, size_t slot, size_t step,
		  const struct gf_work **list, size_t *n)
{
	struct gf_topk_gpu *g = gpu_of(s);
	struct gf_work *work = s->slots[slot].list;
	size_t i;

	g->next = 0;
	if (s->env.place.by_host) {
		gf_topk_begin(s, slot, step, list, n);
		return;
	}
	for (i = 0; i < *n; i++) {
		work[i] = s->plan_work[slot][i];
		gf_sparse_gpu_work(g->messages[i], &work[i]);
	}
}

/* --- from GPU to GPU ------------------------------------------------------ */

/* Sets are as large as they can be before the first step. */
static const struct gf_work *expect(struct gf_selector *s, size_t *n)
{
	const struct gf_work *list = s->slots[0].list;

	*n = s->slots[0].nlist;
	begin(s, 0, 1, &list, n);
	return list;
}

static int prepare(void *ctx, size_t slot, size_t message,
		   struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_work *w = &s->plan_work[slot][message];
	struct gf_sparse_message *m;

	if (q)
		return gf_sparse_gpu_prepare(
			gpu_of(s)->messages[message], w->data,
			gf_topk_k(s, s->slots[slot].step, w->count_elems), q,
			err);
	m = &gf_topk_slot(s, slot)->messages[message];
	gf_sparse_selected(m, m->k, s->env.rank);
	return 0;
}

static int finish(void *ctx, size_t slot, size_t message,
		  struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_selector *s = ctx;

	(void)slot;
	return q ? gf_sparse_gpu_finish(gpu_of(s)->messages[message], q, err)
		 : 0;
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q,
	       struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_topk_gpu *g = gpu_of(s);
	size_t i;
	int rc;

	if (!q)
		return gf_topk_conclude(s, slot, err);
	rc = gf_select_clear_flag(s, slot, q, err);
	for (i = 0; i < s->env.plan->nmessages && !rc; i++)
		gf_sparse_gpu_look(g->messages[i], q, s->flag[slot]);
	for (i = 0; i < s->env.plan->nmessages && !rc; i++)
		rc = gf_sparse_gpu_apply(g->messages[i], q, s->flag[slot], err);
	return rc;
}

/* --- by the host ---------------------------------------------------------- */

/* The place of a message's sets on the device. Slots use it one after the
 * other, and nothing stays there. */
static char *sets_of(const struct gf_selector *s, size_t slot, size_t i)
{
	const struct gf_topk_slot *t = gf_topk_slot(s, slot);

	return (char *)gpu_of(s)->sets +
	       ((char *)t->messages[i].sets - (char *)s->slots[slot].memory[0]);
}

static float *left(const struct gf_selector *s)
{
	return gpu_of(s)->left ? gpu_of(s)->left : s->env.place.grads;
}

static int take(struct gf_selector *s, size_t slot, size_t i,
		struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_topk_gpu *g = gpu_of(s);
	const struct gf_sparse_message *m = &gf_topk_slot(s, slot)->messages[i];
	const struct gf_gpu_ops *ops = s->env.place.gpu->ops;
	const struct gf_gpu_kernels *kernels = s->env.place.gpu->kernels;
	const size_t bytes = gf_sparse_set_bytes(m, m->k);
	const size_t at = gf_sparse_own_place(m, s->env.rank) * bytes;
	uint32_t *index = (uint32_t *)(void *)(sets_of(s, slot, i) + at);
	const struct gf_gpu_topk top = {
		.values = s->env.place.grads + first_of(s, i),
		.add = (float *)g->residual + first_of(s, i),
		.count = m->count_elems,
		.k = m->k,
		.index = index,
		.work = g->work,
	};
	int rc;

	kernels->topk_f32(q, &top);
	kernels->take_f32(q, (float *)(void *)(index + m->k), top.values, index,
			  m->k);
	rc = ops->copy(s->env.place.gpu, q, (char *)m->sets + at, index, bytes,
		       GF_GPU_TO_HOST, err);
	if (!rc && g->left)
		rc = ops->copy(s->env.place.gpu, q, left(s) + first_of(s, i),
			       top.values, m->count_elems * sizeof(float),
			       GF_GPU_WITHIN, err);
	return rc;
}

/* A message is selected after the last of its tensors. */
static int ready(struct gf_selector *s, size_t slot, size_t tensor,
		 struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_topk_gpu *g = gpu_of(s);

	g->taking = q;
	if (tensor < s->env.plan->messages[g->next].last)
		return 0;
	return take(s, slot, g->next++, q, err);
}

static int upload(struct gf_selector *s, struct gf_gpu_stream *q, void *to,
		  const void *from, size_t size_bytes, struct gf_error *err)
{
	return s->env.place.gpu->ops->copy(s->env.place.gpu, q, to, from,
					   size_bytes, GF_GPU_TO_DEVICE, err);
}

/* Lists may name an element more than once: they go one after the other. */
static int add_returns(struct gf_selector *s, size_t i, struct gf_gpu_stream *q,
		       struct gf_error *err)
{
	const struct gf_topk_gpu *g = gpu_of(s);
	const struct gf_sparse_returns *r = &g->returns[i];
	const size_t count = r->nlists ? r->end[r->nlists - 1] : 0;
	uint32_t *all = g->device_returns;
	uint32_t *index = all + g->parts[i].returns;
	float *value =
		(float *)(void *)(all + g->nreturns) + g->parts[i].returns;
	size_t l, at = 0;
	int rc;

	if (!count)
		return 0;
	rc = upload(s, q, index, r->index, count * sizeof(*index), err);
	rc = rc ? rc
		: upload(s, q, value, r->value, count * sizeof(*value), err);
	for (l = 0; !rc && l < r->nlists; at = r->end[l++])
		if (r->end[l] > at)
			s->env.place.gpu->kernels->scatter_add_f32(
				q, left(s) + first_of(s, i), value + at,
				index + at, r->end[l] - at);
	return rc;
}

static int commit(struct gf_selector *s, size_t slot, struct gf_gpu_stream *q,
		  struct gf_error *err)
{
	size_t i;
	int rc = 0;

	(void)slot; /* the one taken last, whatever its number */
	for (i = 0; i < s->env.plan->nmessages && !rc; i++)
		rc = add_returns(s, i, q, err);
	return rc ? rc
		  : s->env.place.gpu->ops->copy(
			    s->env.place.gpu, q, gpu_of(s)->residual, left(s),
			    count_elems(s) * sizeof(float), GF_GPU_WITHIN, err);
}

/* In the order of ranks, as everywhere. */
static int add_sets(struct gf_selector *s, size_t slot, size_t i,
		    struct gf_error *err)
{
	const struct gf_sparse_message *m = &gf_topk_slot(s, slot)->messages[i];
	const size_t bytes = gf_sparse_set_bytes(m, m->k);
	const size_t n = gf_sparse_common(m);
	char *at = sets_of(s, slot, i);
	int rc = upload(s, s->env.place.stream, at, m->sets, n * bytes, err);
	size_t r;

	for (r = 0; !rc && r < n; r++, at += bytes) {
		uint32_t *index = (uint32_t *)(void *)at;

		s->env.place.gpu->kernels->scatter_add_f32(
			s->env.place.stream,
			s->env.place.grads + first_of(s, i),
			(float *)(void *)(index + m->k), index, m->k);
	}
	return rc;
}

/* Sums lie where the gradients were: zeros in most places. */
static int sums_by_host(struct gf_selector *s, size_t slot,
			struct gf_error *err)
{
	const size_t bytes = count_elems(s) * sizeof(float);
	size_t i;
	int rc;

	if (gf_topk_slot(s, slot)->restored)
		return upload(s, s->env.place.stream, s->env.place.grads,
			      s->env.pools[slot].data, bytes, err);
	rc = s->env.place.gpu->ops->zero(s->env.place.gpu, s->env.place.stream,
					 s->env.place.grads, bytes, err);
	for (i = 0; i < s->env.plan->nmessages && !rc; i++)
		rc = add_sets(s, slot, i, err);
	return rc;
}

static int sums(struct gf_selector *s, size_t slot, struct gf_select_sums *out,
		struct gf_error *err)
{
	(void)out; /* the whole pool */
	return s->env.place.by_host ? sums_by_host(s, slot, err) : 0;
}

/* --- checkpoints ---------------------------------------------------------- */

static int keep(struct gf_selector *s, size_t slot, size_t age, bool bad,
		float *values, struct gf_error *err)
{
	const struct gf_topk_slot *t = gf_topk_slot(s, slot);
	const float *pool = s->env.pools[slot].data;
	size_t i;

	(void)age;
	(void)bad;
	if (!s->env.place.by_host || t->restored)
		return gf_select_keep_pool(s, slot, values, err);
	memset(values, 0, s->env.pools[slot].count_elems * sizeof(*values));
	for (i = 0; i < s->env.plan->nmessages; i++)
		gf_sparse_add(&t->messages[i],
			      values + (t->messages[i].data - pool));
	return 0;
}

static int restore(struct gf_selector *s, size_t slot, size_t age,
		   const float *values, struct gf_error *err)
{
	(void)age;
	gf_topk_slot(s, slot)->restored = true;
	return gf_select_restore_pool(s, slot, values, err);
}

static int fetch(struct gf_selector *s, struct gf_error *err)
{
	const struct gf_topk_select *p = s->priv;

	return gf_select_copy(s, s->feedback.residual, p->gpu->residual,
			      GF_GPU_TO_HOST, err);
}

static int send(struct gf_selector *s, struct gf_error *err)
{
	const struct gf_topk_select *p = s->priv;

	return gf_select_copy(s, p->gpu->residual, s->feedback.residual,
			      GF_GPU_TO_DEVICE, err);
}

const struct gf_select_ops gf_select_topk_gpu = {
	.hooks = {.prepare = prepare,
		  .finish = finish,
		  .end = end,
		  .serial = true},
	.slot_bytes = sizeof(struct gf_topk_slot),
	.residual = "sparse.residual",
	.check = gf_select_check_whole,
	.open = open_topk,
	.close = close_topk,
	.begin = begin,
	.expect = expect,
	.sums = sums,
	.keep = keep,
	.restore = restore,
	.ready = ready,
	.commit = commit,
	.fetch = fetch,
	.send = send,
};
