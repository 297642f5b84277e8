/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ef21; doc/selections/select_ef21.h has its sources, equations and an example. Until the step has
 * ended and is found finite, h, s and v - h are as before it; what v - h is to become is in the
 * pool. Then the pool becomes s.
 */
#include <string.h>

#include "base/heap.h"
#include "compressors/selections.h"
#include "doc/selections/select_ef21.h"
#include "gf_kernels.h"

/* h, s and v - h, laid out as the pool. */
static float *estimate_of(const struct gf_selector *s)
{
	return ((struct gf_topk_select *)s->priv)->arrays[0];
}

static float *sum_of(const struct gf_selector *s)
{
	return ((struct gf_topk_select *)s->priv)->arrays[1];
}

static float *rest_of(const struct gf_selector *s)
{
	return ((struct gf_topk_select *)s->priv)->arrays[2];
}

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_pool *pool = &s->env.pools[slot];
	struct gf_sparse_message *m = &gf_topk_slot(s, slot)->messages[message];
	const size_t at = (size_t)(m->data - pool->data);
	const float momentum = (float)s->env.momentum;

	(void)q;
	(void)err;
	/* v - h is g + m (h + (v - h)) - h */
	gf_kernels()->axpby_f32(momentum - 1, estimate_of(s) + at, 1, m->data, m->count_elems);
	if (momentum > 0)
		gf_kernels()->axpby_f32(momentum, rest_of(s) + at, 1, m->data, m->count_elems);
	gf_sparse_select(m, m->k, s->env.rank);
	return 0;
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_pool *pool = &s->env.pools[slot];
	size_t i;
	int rc = gf_topk_conclude(s, slot, err);

	(void)q;
	if (rc || s->slots[slot].bad.found)
		return rc;
	for (i = 0; i < s->env.plan->nmessages; i++) {
		struct gf_sparse_message *m = &gf_topk_slot(s, slot)->messages[i];
		const size_t at = (size_t)(m->data - pool->data);

		gf_kernels()->scatter_add_f32(estimate_of(s) + at, m->sent_value, m->sent, m->k);
		gf_sparse_add(m, sum_of(s) + at);
	}
	memcpy(rest_of(s), pool->data, pool->count_elems * sizeof(*pool->data));
	memcpy(pool->data, sum_of(s), pool->count_elems * sizeof(*pool->data));
	return 0;
}

static int open_ef21(struct gf_selector *s, struct gf_error *err)
{
	const struct gf_ef21_params *params = gf_ef21_params(&s->env.plan->selection);
	const struct gf_topk_kind kind = {
		.density = params->density,
		.warmup_densities = params->warmup_densities,
		.nwarmup = params->nwarmup,
	};

	return gf_topk_open_arrays(s, &kind, err);
}

static void state(struct gf_selector *s, struct gf_state *list)
{
	const struct gf_shape shape = {1, {s->env.pools[0].count_elems}};

	gf_state_add(list, GF_STATE_OWN, gf_xstrdup("ef21.estimate"), &shape, estimate_of(s))
		->rule = GF_STATE_MEAN;
	gf_state_add(list, GF_STATE_OWN, gf_xstrdup("ef21.rest"), &shape, rest_of(s))->rule =
		GF_STATE_MEAN;
	gf_state_add(list, GF_STATE_SHARED, gf_xstrdup("ef21.sum"), &shape, sum_of(s))->rule =
		GF_STATE_SUM;
}

static const struct gf_select_ops ops = {
	.hooks = {.prepare = prepare, .end = end},
	.slot_bytes = sizeof(struct gf_topk_slot),
	.check = gf_select_check_whole,
	.open = open_ef21,
	.close = gf_topk_close,
	.begin = gf_topk_begin,
	.state = state,
};

const struct gf_selection_entry gf_selection_ef21 = {
	.plan = &gf_select_plan_ef21,
	.ops = &ops,
};
