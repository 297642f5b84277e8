/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ef21: error feedback of 2021 (Richtarik, Sokolov, Fatkhullin: EF21: A New,
 * Simpler, Theoretically Better, and Practically Faster Error Feedback, NeurIPS
 * 2021, Algorithm 2), with the k largest elements as its compressor. A rank
 * sends the change of an estimate of its velocity. Nothing waits to be sent
 * late: a rank has no residual.
 *
 * A gradient of few samples is mostly noise, and k elements cannot follow it.
 * The velocity is smoother, so momentum m comes before the compressor
 * (Fatkhullin, Tyurin, Richtarik: Momentum Provably Improves Error Feedback!,
 * NeurIPS 2023, Algorithm 1; here v is 1/(1 - m) times theirs, as SGD has it),
 * and the update adds none. Without momentum v is the gradient.
 *
 * Step t on each of P ranks, for every message of n elements (v, the velocity,
 * h, this rank's estimate of it, and s, the sum of h over ranks, begin at 0):
 *	v = m v + gradient
 *	c = the k largest |v - h|, k = max(1, floor(density * n))
 *	h = h + c
 *	s = s + (sum over ranks of c)
 *	w = w - rate * s / P
 *
 * On the wire: one set of k entries per rank and message, all of them gathered,
 * as topk sends them, 8 k bytes. For n = 4,
 * density 1/4, P = 1, m = 0, gradients that stay (4, -2, 1, 0): the first step
 * sends 0: 4, and s is (4, 0, 0, 0); the second sends 1: -2, and s is (4, -2, 0,
 * 0); from the third on s is the gradient, where topk would still apply single
 * elements by turns.
 *
 * On another number P' of ranks every h and v is the mean of those before, and
 * s is s P'/P, their sum.
 *
 * Until the step has ended and is found finite, h, s and v - h are as before it; what v - h is to
 * become is in the pool. Then the pool becomes s.
 */
#include "compressors/halves.h"

#include <string.h>

#include "base/heap.h"

struct params {
	double density;           /* k/n, (0, 1] */
	double *warmup_densities; /* of the first epochs */
	size_t nwarmup;
	char *extra; /* x- keys */
};

#if GF_PLAN_HALF

static const struct gf_field fields[] = {
	GF_DENSITY_FIELDS,
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct params, fields),
};

static const struct params defaults = {.density = 0.01};

/* MANUAL
 * Each rank keeps a velocity v = m v + g, where m is the optimiser's momentum, and sends the k
 * largest changes of it since an estimate that all ranks keep of it, as topk sends values.
 * The sum of all estimates is applied, and there is no residual. */
const struct gf_select_plan gf_select_plan_ef21 = {
	.name = "ef21",
	.description = "the k largest changes of each rank's velocity",
	.place = 60,
	.source = "EF21 (Richtarik et al. 2021, Fatkhullin et al. 2023)",
	.traits = GF_SELECT_SETS | GF_SELECT_MOMENTUM | GF_SELECT_BARE,
	.record = &record,
	.defaults = &defaults,
	.less_momentum = "the estimate of the velocity follows it late",
	.most_momentum = 0.8, /* docs/methods.md, "Accuracy" */
	.rate_share = 0.3,
	.wire = gf_density_wire,
	.warm = gf_density_warm,
};

#else

#include "compressors/topk.h"

/* Arrays: h, s and v - h. */
enum { ESTIMATE, SUM, REST };

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
	gf_kernels()->axpby_f32(momentum - 1, gf_topk_of(s)->arrays[ESTIMATE] + at, 1, m->data,
				m->count_elems);
	if (momentum > 0)
		gf_kernels()->axpby_f32(momentum, gf_topk_of(s)->arrays[REST] + at, 1, m->data,
					m->count_elems);
	gf_sparse_select(m, m->k, s->env.rank);
	return 0;
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_pool *pool = &s->env.pools[slot];
	int rc = gf_topk_conclude(s, slot, err);

	(void)q;
	if (rc || s->slots[slot].bad.found)
		return rc;
	for (size_t i = 0; i < s->env.plan->nmessages; i++) {
		struct gf_sparse_message *m = &gf_topk_slot(s, slot)->messages[i];
		const size_t at = (size_t)(m->data - pool->data);

		gf_kernels()->scatter_add_f32(gf_topk_of(s)->arrays[ESTIMATE] + at, m->sent_value,
					      m->sent, m->k);
		gf_sparse_add(m, gf_topk_of(s)->arrays[SUM] + at);
	}
	memcpy(gf_topk_of(s)->arrays[REST], pool->data, pool->count_elems * sizeof(*pool->data));
	memcpy(pool->data, gf_topk_of(s)->arrays[SUM], pool->count_elems * sizeof(*pool->data));
	return 0;
}

static void state(struct gf_selector *s, struct gf_state *list)
{
	const struct gf_shape shape = {1, {s->env.pools[0].count_elems}};

	gf_state_add(list, GF_STATE_OWN, gf_xstrdup("ef21.estimate"), &shape,
		     gf_topk_of(s)->arrays[ESTIMATE])
		->rule = GF_STATE_MEAN;
	gf_state_add(list, GF_STATE_OWN, gf_xstrdup("ef21.rest"), &shape,
		     gf_topk_of(s)->arrays[REST])
		->rule = GF_STATE_MEAN;
	gf_state_add(list, GF_STATE_SHARED, gf_xstrdup("ef21.sum"), &shape,
		     gf_topk_of(s)->arrays[SUM])
		->rule = GF_STATE_SUM;
}

static const struct gf_select_ops ops = {
	.hooks = {.prepare = prepare, .end = end},
	.slot_bytes = sizeof(struct gf_topk_slot),
	.open = gf_topk_open_arrays,
	.close = gf_topk_close,
	.begin = gf_topk_begin,
	.state = state,
};

const struct gf_selection_entry gf_selection_ef21 = {
	.plan = &gf_select_plan_ef21,
	.ops = &ops,
};

#endif
