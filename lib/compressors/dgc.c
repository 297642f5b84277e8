/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dgc; doc/selections/select_dgc.h has its source, equations and an example. The norm that is
 * clipped is that of all gradients: with a clip_norm every message waits for the end of backward.
 *
 * Until the step has ended and is found finite, u and v are as before it. The pool has the values
 * that v is to become, and `next` those of u.
 */
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "compressors/selections.h"
#include "doc/selections/select_dgc.h"
#include "gf_kernels.h"

/* u, what it is to become, and the factor for this step's gradients. */
static float *velocity_of(const struct gf_selector *s)
{
	return ((struct gf_topk_select *)s->priv)->arrays[0];
}

static float *next_of(const struct gf_selector *s)
{
	return ((struct gf_topk_select *)s->priv)->arrays[1];
}

static float *clipping_of(const struct gf_selector *s)
{
	return &((struct gf_topk_select *)s->priv)->factor;
}

static const struct gf_dgc_params *params_of(const struct gf_selector *s)
{
	return gf_dgc_params(&s->env.plan->selection);
}

/* --- on the thread that moves messages ------------------------------------ */

/* The factor for gradients: 1, or less to clip them. */
static float clipping(const struct gf_selector *s, const struct gf_pool *pool)
{
	const double most = params_of(s)->clip_norm / sqrt(s->env.plan->ranks);
	double norm;

	if (most == 0)
		return 1;
	norm = sqrt(gf_kernels()->sum_squares_f32(pool->data, pool->count_elems));
	return norm > most ? (float)(most / norm) : 1;
}

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_pool *pool = &s->env.pools[slot];
	struct gf_sparse_message *m = &gf_topk_slot(s, slot)->messages[message];
	const size_t bytes = m->count_elems * sizeof(*m->data);
	float *next = next_of(s) + (m->data - pool->data);
	const double momentum =
		isnan(params_of(s)->momentum) ? s->env.momentum : params_of(s)->momentum;

	(void)q;
	(void)err;
	if (message == 0) /* no other gradient has been touched yet */
		*clipping_of(s) = clipping(s, pool);
	/* u becomes g + m u in `next`, then in the pool */
	memcpy(next, velocity_of(s) + (m->data - pool->data), bytes);
	gf_kernels()->axpby_f32(*clipping_of(s), m->data, (float)momentum, next, m->count_elems);
	memcpy(m->data, next, bytes);
	gf_sparse_select(m, m->k, s->env.rank);
	return 0;
}

/* u where this rank sent something is zero. */
static void mask(const struct gf_sparse_message *m, float *next)
{
	size_t i;

	for (i = 0; i < m->k; i++)
		next[m->sent[i]] = 0;
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_pool *pool = &s->env.pools[slot];
	const struct gf_topk_slot *t = gf_topk_slot(s, slot);
	size_t i;
	int rc = gf_topk_conclude(s, slot, err);

	(void)q;
	if (rc || s->slots[slot].bad.found)
		return rc;
	for (i = 0; i < s->env.plan->nmessages && params_of(s)->masking; i++)
		mask(&t->messages[i], next_of(s) + (t->messages[i].data - pool->data));
	memcpy(velocity_of(s), next_of(s), pool->count_elems * sizeof(*pool->data));
	gf_topk_commit(s, slot);
	return 0;
}

/* --- on the compute thread ------------------------------------------------ */

static int open_dgc(struct gf_selector *s, struct gf_error *err)
{
	const struct gf_dgc_params *params = params_of(s);
	const struct gf_topk_kind kind = {
		.density = params->density,
		.warmup_densities = params->warmup_densities,
		.nwarmup = params->nwarmup,
	};

	return gf_topk_open_arrays(s, &kind, err);
}

static void begin(struct gf_selector *s, size_t slot, size_t step, const struct gf_work **list,
		  size_t *n)
{
	struct gf_work *work = s->slots[slot].list;
	size_t i;

	gf_topk_begin(s, slot, step, list, n);
	for (i = 0; i < *n && params_of(s)->clip_norm > 0; i++)
		work[i].at_end = true;
}

static void state(struct gf_selector *s, struct gf_state *list)
{
	const struct gf_shape shape = {1, {s->env.pools[0].count_elems}};

	gf_state_add(list, GF_STATE_OWN, gf_xstrdup("dgc.velocity"), &shape, velocity_of(s))->rule =
		GF_STATE_SUM;
}

static const struct gf_select_ops ops = {
	.hooks = {.prepare = prepare, .end = end},
	.slot_bytes = sizeof(struct gf_topk_slot),
	.residual = "dgc.residual",
	.check = gf_select_check_whole,
	.open = open_dgc,
	.close = gf_topk_close,
	.begin = begin,
	.state = state,
};

const struct gf_selection_entry gf_selection_dgc = {
	.plan = &gf_select_plan_dgc,
	.ops = &ops,
};
