/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/exchange_sparse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "train/exchanges.h"

/*
 * topk and gtopk (Shi et al. 2019): of every message each rank sends the k
 * largest of gradient plus residual, as values with indices; the rest is its
 * residual of the next step. topk gathers all ranks' sets and applies their
 * sum; gtopk merges them along a tree, keeping k at each node (rt/sparse.h).
 *
 * Until the step has ended and is found finite, the residual is as before it;
 * what it is to become is in the pool. Then the pool becomes the sum. On a GPU
 * (exchange_sparse_device.c) its gradients stand for the pool.
 */

/* A piece of that exchange stays in cache. */
#define BLOCK_ELEMS ((size_t)16384)

/* --- on the thread that moves messages -------------------------------------
 */

static struct gf_sparse_slot *slot_of(void *ctx, size_t slot)
{
	struct gf_exchange *x = ctx;
	struct gf_sparse_exchange *p = x->priv;

	return &p->slots[slot];
}

static void prepare(void *ctx, size_t slot, size_t message)
{
	struct gf_exchange *x = ctx;
	const struct gf_sparse_exchange *p = x->priv;
	struct gf_sparse_message *m = &slot_of(x, slot)->messages[message];

	if (p->device)
		gf_sparse_selected(m, m->k, x->env.comm->rank);
	else
		gf_sparse_select(m, m->k, x->env.comm->rank);
}

/* The residual is what the pool holds, the pool is the sum over ranks. */
static void commit(struct gf_sparse_message *m, float *residual)
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

static void end(void *ctx, size_t slot)
{
	struct gf_exchange *x = ctx;
	struct gf_sparse_exchange *p = x->priv;
	struct gf_sparse_slot *s = slot_of(x, slot);
	const struct gf_pool *pool = &x->pools[slot];
	size_t i, at;

	s->bad.found = false;
	for (i = 0; i < x->env.plan->nmessages && !s->bad.found; i++) {
		struct gf_sparse_message *m = &s->messages[i];

		gf_sparse_conclude(m);
		at = gf_sparse_bad(m);
		if (at == m->count_elems)
			continue;
		at += (size_t)(m->data - pool->data);
		s->bad.found = true;
		s->bad.tensor = gf_pool_tensor_at(pool, at);
		s->bad.element = at - pool->offsets[s->bad.tensor];
	}
	if (p->device)
		return;
	for (i = 0; i < x->env.plan->nmessages && !s->bad.found; i++)
		commit(&s->messages[i],
		       p->residual + (s->messages[i].data - pool->data));
}

/* --- on the compute thread -------------------------------------------------
 */

double gf_sparse_exchange_density(const struct gf_exchange *x)
{
	const struct gf_selection *s = &x->env.plan->selection;
	double most = s->density;
	size_t i;

	for (i = 0; i < s->nwarmup; i++)
		if (s->warmup_densities[i] > most)
			most = s->warmup_densities[i];
	return most;
}

static void init_message(struct gf_exchange *x, size_t slot, size_t i,
			 struct gf_sparse_message *m)
{
	const struct gf_plan *plan = x->env.plan;
	const struct gf_work *w = &x->plan_work[slot][i];
	const struct gf_sparse_exchange *p = x->priv;

	*m = (struct gf_sparse_message){
		.method = plan->selection.method,
		.putback = plan->selection.putback,
		.ranks = plan->ranks,
		.count_elems = w->count_elems,
		.data = w->data,
		.residual =
			p->residual + ((float *)w->data - x->pools[slot].data),
	};
}

/* All messages' memory in one piece, which the transport likes. */
static int open_slot(struct gf_exchange *x, size_t slot, size_t *sets_bytes,
		     struct gf_error *err)
{
	double density = gf_sparse_exchange_density(x);
	struct gf_sparse_exchange *p = x->priv;
	struct gf_sparse_slot *s = &p->slots[slot];
	size_t n = x->env.plan->nmessages, bytes = 0, i, k;
	char *at;
	int rc = 0;

	s->messages = gf_xcalloc(n, sizeof(*s->messages));
	s->list = gf_xcalloc(n, sizeof(*s->list));
	for (i = 0; i < n && !rc; i++) {
		struct gf_sparse_message *m = &s->messages[i];

		init_message(x, slot, i, m);
		m->scratch = p->scratch;
		k = gf_sparse_k(density, m->count_elems);
		bytes += gf_sparse_sets_bytes(m, k);
		rc = gf_sparse_init(m, k, err);
	}
	if (!rc)
		rc = x->env.comm->ops->buffer_alloc(x->env.comm, bytes,
						    &s->sets, err);
	for (i = 0, at = s->sets; i < n && !rc; i++) {
		struct gf_sparse_message *m = &s->messages[i];

		m->sets = at;
		at += gf_sparse_sets_bytes(
			m, gf_sparse_k(density, m->count_elems));
	}
	*sets_bytes = bytes;
	return rc;
}

static int alloc(struct gf_exchange *x, struct gf_sparse_exchange *p,
		 struct gf_error *err)
{
	double density = gf_sparse_exchange_density(x);
	size_t count = x->pools[0].count_elems, most = 0, i, n;
	struct gf_sparse_message m;

	p->residual = calloc(count + 1, sizeof(*p->residual));
	for (i = 0; i < x->env.plan->nmessages; i++) {
		init_message(x, 0, i, &m);
		n = gf_sparse_scratch_elems(
			&m, gf_sparse_k(density, m.count_elems));
		most = n > most ? n : most;
	}
	p->scratch = malloc((most + 1) * sizeof(*p->scratch));
	if (p->residual && p->scratch)
		return 0;
	return gf_error_set(err, -ENOMEM,
			    "no memory for the residual of %zu gradients",
			    count);
}

static int open_sparse(struct gf_exchange *x, struct gf_engine_hooks *hooks,
		       struct gf_error *err)
{
	struct gf_sparse_exchange *p = gf_xcalloc(1, sizeof(*p));
	size_t sets_bytes = 0, i;
	int rc;

	x->priv = p;
	*hooks = (struct gf_engine_hooks){
		.prepare = prepare, .end = end, .ctx = x, .serial = true};
	p->slots = gf_xcalloc(x->env.depth, sizeof(*p->slots));
	rc = alloc(x, p, err);
	for (i = 0; i < x->env.depth && !rc; i++)
		rc = open_slot(x, i, &sets_bytes, err);
	if (!rc && x->env.device_grads)
		rc = gf_sparse_exchange_open_device(x, sets_bytes, err);
	return rc;
}

static void begin(struct gf_exchange *x, size_t slot, size_t step)
{
	const struct gf_plan *plan = x->env.plan;
	const struct gf_sparse_exchange *p = x->priv;
	struct gf_sparse_slot *s = slot_of(x, slot);
	/* a replay knows no epochs: it shows what comes after warm-up */
	double density =
		x->env.epoch_steps
			? gf_sparse_density(&plan->selection,
					    (step - 1) / x->env.epoch_steps)
			: plan->selection.density;
	size_t i;

	s->restored = false;
	if (p->device)
		gf_sparse_exchange_begin_device(x);
	for (i = 0; i < plan->nmessages; i++) {
		struct gf_sparse_message *m = &s->messages[i];
		bool gathers = gf_sparse_gathers(m);

		m->k = gf_sparse_k(density, m->count_elems);
		s->list[i] = x->plan_work[slot][i];
		s->list[i].sparse = gf_sparse_find(gathers ? "topk" : "gtopk");
		s->list[i].half = gathers ? GF_COLL_ALL_GATHER : GF_COLL_WHOLE;
		s->list[i].set = gf_element_set(gf_sparse_set_bytes(m->k),
						gf_sparse_merge, m);
		s->list[i].data = m->sets;
		s->list[i].count_elems = gathers ? (size_t)m->ranks : 1;
	}
	gf_engine_begin_work(x->engine, s->list, plan->nmessages);
}

static struct gf_exchange_bad inspect(struct gf_exchange *x, size_t slot)
{
	return slot_of(x, slot)->bad;
}

static void apply(struct gf_exchange *x, size_t slot, struct gf_update *u,
		  double lr)
{
	const float *sums = x->pools[slot].data;
	struct gf_sparse_exchange *p = x->priv;

	if (p->device)
		sums = gf_sparse_exchange_sums(x, slot);
	gf_update_all(u, lr, sums, 1.0f / (float)x->env.plan->ranks);
}

static void state(struct gf_exchange *x, struct gf_state *s)
{
	struct gf_sparse_exchange *p = x->priv;
	struct gf_shape shape = {1, {x->pools[0].count_elems}};

	gf_state_add(s, GF_STATE_OWN, gf_xstrdup("sparse.residual"), &shape,
		     p->residual)
		->rule = GF_STATE_SUM;
}

static void close_sparse(struct gf_exchange *x)
{
	struct gf_sparse_exchange *p = x->priv;
	size_t i, k;

	if (!p)
		return;
	gf_sparse_exchange_close_device(p);
	for (i = 0; p->slots && i < x->env.depth; i++) {
		struct gf_sparse_slot *s = &p->slots[i];

		for (k = 0; s->messages && k < x->env.plan->nmessages; k++)
			gf_sparse_release(&s->messages[k]);
		x->env.comm->ops->buffer_free(x->env.comm, s->sets);
		free(s->messages);
		free(s->list);
	}
	free(p->slots);
	free(p->residual);
	free(p->scratch);
	free(p);
}

const struct gf_exchange_ops gf_exchange_topk = {
	.name = "topk",
	.description = "each rank's k largest, all of them applied",
	.check = gf_exchange_check_whole,
	.open = open_sparse,
	.begin = begin,
	.inspect = inspect,
	.apply = apply,
	.state = state,
	.keep = gf_sparse_exchange_keep,
	.restore = gf_sparse_exchange_restore,
	.take = gf_sparse_exchange_take,
	.commit = gf_sparse_exchange_commit,
	.fetch = gf_sparse_exchange_fetch,
	.send = gf_sparse_exchange_send,
	.close = close_sparse,
};

const struct gf_exchange_ops gf_exchange_gtopk = {
	.name = "gtopk",
	.description = "the k largest of all ranks, merged along a tree",
	.check = gf_exchange_check_whole,
	.open = open_sparse,
	.begin = begin,
	.inspect = inspect,
	.apply = apply,
	.state = state,
	.keep = gf_sparse_exchange_keep,
	.restore = gf_sparse_exchange_restore,
	.take = gf_sparse_exchange_take,
	.commit = gf_sparse_exchange_commit,
	.fetch = gf_sparse_exchange_fetch,
	.send = gf_sparse_exchange_send,
	.close = close_sparse,
};
