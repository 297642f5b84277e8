/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "select/selections.h"
#include "select/sets.h"
#include "select/topk_device.h"

/*
 * topk and gtopk (Shi et al. 2019): of every message each rank sends the k
 * largest of gradient plus residual, as values with indices; the rest is its
 * residual of the next step. topk gathers all ranks' sets and applies their
 * sum; gtopk merges them along a tree, keeping k at each node (select/sets.h).
 *
 * Until the step has ended and is found finite, the residual is as before it;
 * what it is to become is in the pool. Then the pool becomes the sum.
 *
 * Where gradients and residuals lie on a GPU (select/topk_device.h), sets alone
 * come to the host, and go back as sums; there the device's gradients stand for
 * the pool.
 */

/* A piece of that exchange stays in cache. */
#define BLOCK_ELEMS ((size_t)16384)

struct slot {
	struct gf_sparse_message *messages; /* the plan's nmessages */
	struct gf_work *list;
	void *sets; /* of all messages */
	struct gf_select_bad bad;
	bool restored; /* on a GPU: its sums are in the pool, not in sets */
};

struct topk {
	float *residual;
	uint32_t *scratch; /* of the thread that moves messages */
	struct slot *slots;
	struct gf_sparse_device *device; /* NULL: all on the host */
	/* then, per tensor: which message it is in; per message: tensors of
	 * this step whose gradients are not taken yet */
	size_t *message_of, *missing;
};

static struct slot *slot_of(void *ctx, size_t slot)
{
	const struct gf_selector *s = ctx;
	const struct topk *p = s->priv;

	return &p->slots[slot];
}

/* --- on the thread that moves messages -------------------------------------
 */

static int prepare(void *ctx, size_t slot, size_t message,
		   struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_selector *s = ctx;
	const struct topk *p = s->priv;
	struct gf_sparse_message *m = &slot_of(ctx, slot)->messages[message];

	(void)q;
	(void)err;
	(p->device ? gf_sparse_selected : gf_sparse_select)(m, m->k,
							    s->env.rank);
	return 0;
}

/* The residual is what the pool holds, the pool is the sum over ranks. */
static void take_over(struct gf_sparse_message *m, float *residual)
{
	size_t first, n;

	for (first = 0; first < m->count_elems; first += n) {
		n = m->count_elems - first;
		n = n < BLOCK_ELEMS ? n : BLOCK_ELEMS;
		memcpy(residual + first, m->data + first, n * sizeof(float));
		memset(m->data + first, 0, n * sizeof(float));
	}
	gf_sparse_expand(m, m->data);
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q,
	       struct gf_error *err)
{
	struct gf_selector *s = ctx;
	struct topk *p = s->priv;
	struct slot *t = slot_of(s, slot);
	const struct gf_pool *pool = &s->env.pools[slot];
	size_t i, at;

	(void)q;
	(void)err;
	t->bad.found = false;
	for (i = 0; i < s->env.plan->nmessages && !t->bad.found; i++) {
		struct gf_sparse_message *m = &t->messages[i];

		gf_sparse_conclude(m);
		at = gf_sparse_bad(m);
		if (at < m->count_elems)
			t->bad = gf_select_bad_at(
				pool, at + (size_t)(m->data - pool->data));
	}
	if (p->device)
		return 0;
	for (i = 0; i < s->env.plan->nmessages && !t->bad.found; i++)
		take_over(&t->messages[i],
			  p->residual + (t->messages[i].data - pool->data));
	return 0;
}

/* --- opening and closing -------------------------------------------------- */

static void init_message(const struct gf_selector *s, size_t slot, size_t i,
			 struct gf_sparse_message *m)
{
	const struct gf_plan *plan = s->env.plan;
	const struct gf_work *w = &s->plan_work[slot][i];
	const struct topk *p = s->priv;

	*m = (struct gf_sparse_message){
		.merges = gf_topk_merges(&plan->selection),
		.putback = gf_topk_params(&plan->selection)->putback,
		.ranks = plan->ranks,
		.count_elems = w->count_elems,
		.data = w->data,
		.residual = p->residual +
			    ((float *)w->data - s->env.pools[slot].data),
		.scratch = p->scratch,
	};
}

/* All messages' memory in one piece, which the transport likes. */
static int open_slot(struct gf_selector *s, size_t slot, size_t *sets_bytes,
		     struct gf_error *err)
{
	double density = gf_topk_greatest_density(
		gf_topk_params(&s->env.plan->selection));
	struct slot *t = slot_of(s, slot);
	struct gf_comm *comm = s->env.pools[0].comm;
	size_t n = s->env.plan->nmessages, bytes = 0, i, k;
	size_t *at = gf_xcalloc(n + 1, sizeof(*at));
	int rc = 0;

	t->messages = gf_xcalloc(n, sizeof(*t->messages));
	t->list = gf_xcalloc(n, sizeof(*t->list));
	for (i = 0; i < n && !rc; i++) {
		struct gf_sparse_message *m = &t->messages[i];

		init_message(s, slot, i, m);
		k = gf_density_count(density, m->count_elems);
		at[i] = bytes;
		bytes += gf_sparse_sets_bytes(m, k);
		rc = gf_sparse_init(m, k, err);
	}
	rc = rc ? rc : comm->ops->buffer_alloc(comm, bytes, &t->sets, err);
	for (i = 0; i < n && !rc; i++)
		t->messages[i].sets = (char *)t->sets + at[i];
	free(at);
	*sets_bytes = bytes;
	return rc;
}

static int alloc(struct gf_selector *s, struct topk *p, struct gf_error *err)
{
	double density = gf_topk_greatest_density(
		gf_topk_params(&s->env.plan->selection));
	size_t count = s->env.pools[0].count_elems, most = 0, i, n;
	struct gf_sparse_message m;

	p->residual = calloc(count + 1, sizeof(*p->residual));
	for (i = 0; i < s->env.plan->nmessages; i++) {
		init_message(s, 0, i, &m);
		n = gf_sparse_scratch_elems(
			&m, gf_density_count(density, m.count_elems));
		most = n > most ? n : most;
	}
	p->scratch = malloc((most + 1) * sizeof(*p->scratch));
	if (p->residual && p->scratch)
		return 0;
	return gf_error_set(err, -ENOMEM,
			    "no memory for the residual of %zu gradients",
			    count);
}

static int open_device(struct gf_selector *s, size_t sets_bytes,
		       struct gf_error *err)
{
	const struct gf_plan *plan = s->env.plan;
	struct topk *p = s->priv;
	size_t *firsts = gf_xcalloc(plan->nmessages + 1, sizeof(*firsts));
	struct gf_sparse_device_slot *slots =
		gf_xcalloc(s->env.depth, sizeof(*slots));
	size_t i, t;
	int rc;

	p->missing = gf_xcalloc(plan->nmessages + 1, sizeof(*p->missing));
	p->message_of = gf_xcalloc(s->env.pools[0].ntensors + 1,
				   sizeof(*p->message_of));
	for (i = 0; i < plan->nmessages; i++) {
		const struct gf_message *m = &plan->messages[i];

		firsts[i] = s->env.pools[0].offsets[m->first];
		for (t = m->first; t <= m->last; t++)
			p->message_of[t] = i;
	}
	for (i = 0; i < s->env.depth; i++)
		slots[i] = (struct gf_sparse_device_slot){p->slots[i].messages,
							  p->slots[i].sets};
	rc = gf_sparse_device_new(
		&(struct gf_sparse_device_config){
			.gpu = s->env.gpu,
			.compute = s->env.stream,
			.grads = s->env.device_grads,
			.count_elems = s->env.pools[0].count_elems,
			.slots = slots,
			.depth = s->env.depth,
			.firsts = firsts,
			.nmessages = plan->nmessages,
			.sets_bytes = sets_bytes,
			.density = gf_topk_greatest_density(
				gf_topk_params(&plan->selection)),
			.rank = s->env.rank,
		},
		&p->device, err);
	free(slots);
	free(firsts);
	return rc;
}

static int open_topk(struct gf_selector *s, struct gf_error *err)
{
	struct topk *p = gf_xcalloc(1, sizeof(*p));
	size_t sets_bytes = 0, i;
	int rc;

	s->priv = p;
	p->slots = gf_xcalloc(s->env.depth, sizeof(*p->slots));
	rc = alloc(s, p, err);
	for (i = 0; i < s->env.depth && !rc; i++)
		rc = open_slot(s, i, &sets_bytes, err);
	return rc || !s->env.device_grads ? rc
					  : open_device(s, sets_bytes, err);
}

static void close_topk(struct gf_selector *s)
{
	struct gf_comm *comm = s->env.pools[0].comm;
	struct topk *p = s->priv;
	size_t i, k;

	if (!p)
		return;
	gf_sparse_device_free(p->device);
	for (i = 0; i < s->env.depth; i++) {
		struct slot *t = &p->slots[i];

		for (k = 0; t->messages && k < s->env.plan->nmessages; k++)
			gf_sparse_release(&t->messages[k]);
		comm->ops->buffer_free(comm, t->sets);
		free(t->messages);
		free(t->list);
	}
	free(p->message_of);
	free(p->missing);
	free(p->slots);
	free(p->residual);
	free(p->scratch);
	free(p);
}

/* --- on the compute thread ------------------------------------------------ */

static void begin(struct gf_selector *s, size_t slot, size_t step,
		  const struct gf_work **list, size_t *n)
{
	const struct gf_plan *plan = s->env.plan;
	const struct topk *p = s->priv;
	const struct gf_topk_params *params = gf_topk_params(&plan->selection);
	struct slot *t = slot_of(s, slot);
	/* a replay knows no epochs: it shows what comes after warm-up */
	double density =
		s->env.epoch_steps
			? gf_topk_density(params,
					  (step - 1) / s->env.epoch_steps)
			: params->density;
	size_t i;

	t->restored = false;
	for (i = 0; i < plan->nmessages; i++) {
		struct gf_sparse_message *m = &t->messages[i];
		bool gathers = gf_sparse_gathers(m);

		if (p->device)
			p->missing[i] = plan->messages[i].last -
					plan->messages[i].first + 1;
		m->k = gf_density_count(density, m->count_elems);
		t->list[i] = s->plan_work[slot][i];
		t->list[i].sparse = gf_sparse_find(gathers ? "topk" : "gtopk");
		t->list[i].half = gathers ? GF_COLL_ALL_GATHER : GF_COLL_WHOLE;
		t->list[i].element = gf_element_set(gf_sparse_set_bytes(m->k),
						gf_sparse_merge, m);
		t->list[i].data = m->sets;
		t->list[i].count_elems = gathers ? (size_t)m->ranks : 1;
	}
	*list = t->list;
	*n = plan->nmessages;
}

static struct gf_select_bad inspect(struct gf_selector *s, size_t slot)
{
	return slot_of(s, slot)->bad;
}

static void state(struct gf_selector *s, struct gf_state *list)
{
	struct topk *p = s->priv;
	struct gf_shape shape = {1, {s->env.pools[0].count_elems}};

	gf_state_add(list, GF_STATE_OWN, gf_xstrdup("sparse.residual"), &shape,
		     p->residual)
		->rule = GF_STATE_SUM;
}

/* --- gradients on a GPU --------------------------------------------------- */

/* A message is selected after the last of its tensors. */
static int ready(struct gf_selector *s, size_t slot, size_t tensor,
		 struct gf_gpu_stream *q, struct gf_error *err)
{
	struct topk *p = s->priv;
	size_t i = p->message_of[tensor];

	assert(p->missing[i]);
	if (--p->missing[i])
		return 0;
	return gf_sparse_device_take(p->device, slot, i, q, err);
}

static int commit(struct gf_selector *s, size_t slot, struct gf_gpu_stream *q,
		  struct gf_error *err)
{
	struct topk *p = s->priv;

	(void)slot; /* the one taken last, whatever its number */
	return gf_sparse_device_commit(p->device, q, err);
}

/* Enqueued, to lie where the gradients were. */
static int sums(struct gf_selector *s, size_t slot, struct gf_select_sums *out,
		struct gf_error *err)
{
	const struct gf_pool *pool = &s->env.pools[slot];
	struct topk *p = s->priv;

	if (!p->device)
		return 0;
	s->whole.grad = s->env.device_grads;
	(void)out;
	if (!slot_of(s, slot)->restored)
		return gf_sparse_device_apply(p->device, slot, err);
	return s->env.gpu->ops->copy(
		s->env.gpu, s->env.stream, s->env.device_grads, pool->data,
		pool->count_elems * sizeof(float), GF_GPU_TO_DEVICE, err);
}

static void keep(struct gf_selector *s, size_t slot, size_t age, float *values)
{
	const struct topk *p = s->priv;
	const struct slot *t = slot_of(s, slot);
	const struct gf_pool *pool = &s->env.pools[slot];
	size_t i;

	(void)age;
	if (!p->device || t->restored) {
		memcpy(values, pool->data, pool->count_elems * sizeof(*values));
		return;
	}
	for (i = 0; i < s->env.plan->nmessages; i++)
		gf_sparse_expand(&t->messages[i],
				 values + (t->messages[i].data - pool->data));
}

static void restore(struct gf_selector *s, size_t slot, size_t age,
		    const float *values)
{
	struct gf_pool *pool = &s->env.pools[slot];

	(void)age;
	slot_of(s, slot)->restored = true;
	memcpy(pool->data, values, pool->count_elems * sizeof(*values));
}

static int fetch(struct gf_selector *s, struct gf_error *err)
{
	struct topk *p = s->priv;

	return gf_sparse_device_fetch(p->device, p->residual, err);
}

static int send(struct gf_selector *s, struct gf_error *err)
{
	struct topk *p = s->priv;

	return gf_sparse_device_send(p->device, p->residual, err);
}

const struct gf_select_ops gf_select_topk = {
	.hooks = {.prepare = prepare, .end = end, .serial = true},
	.check = gf_select_check_whole,
	.open = open_topk,
	.close = close_topk,
	.begin = begin,
	.inspect = inspect,
	.sums = sums,
	.state = state,
	.keep = keep,
	.restore = restore,
	.ready = ready,
	.commit = commit,
	.fetch = fetch,
	.send = send,
};
