/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * randomk; doc/selections/select_randomk.h has its sources, equations and an example.
 *
 * A gradient that is not finite might not be drawn. Its rank then sends NaN as the message's first
 * value, so that all ranks learn of it in this step.
 */
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "compressors/selections.h"
#include "doc/selections/select_density.h"
#include "doc/selections/select_randomk.h"
#include "gf_kernels.h"

/* A slot's own: the places of all messages' values, within their messages. */

static const struct gf_randomk_params *params_of(const struct gf_selector *s)
{
	return gf_randomk_params(&s->env.plan->selection);
}

static const struct gf_work *message_of(const struct gf_selector *s, size_t slot, size_t message)
{
	return &s->plan_work[slot][message];
}

static size_t first_of(const struct gf_selector *s, size_t slot, size_t message)
{
	const float *data = message_of(s, slot, message)->data;

	return (size_t)(data - s->env.pools[slot].data);
}

static uint32_t *index_of(const struct gf_select_slot *t, size_t message)
{
	return (uint32_t *)t->more + ((float *)t->list[message].data - (float *)t->memory[0]);
}

/* --- on the thread that moves messages ------------------------------------ */

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	struct gf_selector *s = ctx;
	struct gf_select_slot *t = &s->slots[slot];
	const struct gf_work *w = &t->list[message];
	const size_t n = message_of(s, slot, message)->count_elems;
	const size_t first = first_of(s, slot, message);
	float *data = s->env.pools[slot].data;
	uint32_t *index = index_of(t, message);

	(void)q;
	(void)err;
	if (w->half == GF_COLL_ALL_GATHER)
		return 0;
	gf_randomk_pick(params_of(s)->seed, t->step.number, message, n, w->count_elems, index);
	gf_feedback_add(s, data, first, n);
	if (gf_finite_prefix(data + first, n) < n)
		data[first + index[0]] = NAN;
	gf_kernels()->take_f32(w->data, data + first, index, w->count_elems);
	return gf_select_scale(s, slot, w, q, err);
}

static int finish(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		  struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_work *w = &s->slots[slot].list[message];

	(void)q;
	(void)err;
	return w->half == GF_COLL_REDUCE_SCATTER ? 0 : gf_select_unscale(s, slot, w, q, err);
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	struct gf_select_slot *t = &s->slots[slot];
	struct gf_pool *pool = &s->env.pools[slot];
	size_t i, at;

	(void)q;
	(void)err;
	t->bad.found = false;
	for (i = 0; i < s->env.plan->nmessages && !t->bad.found; i++) {
		const struct gf_work *w = &t->list[i];

		at = gf_finite_prefix(w->data, w->count_elems);
		if (at < w->count_elems)
			t->bad = gf_select_bad_at(pool, first_of(s, slot, i) + index_of(t, i)[at]);
	}
	for (i = 0; i < s->env.plan->nmessages && !t->bad.found; i++) {
		const struct gf_work *w = &t->list[i];
		const size_t first = first_of(s, slot, i);

		gf_feedback_commit(s, pool->data, first, message_of(s, slot, i)->count_elems);
		gf_kernels()->scatter_add_f32(pool->data + first, w->data, index_of(t, i),
					      w->count_elems);
	}
	return 0;
}

/* --- on the compute thread ------------------------------------------------ */

/* Messages have room for the k of the densest epoch. */
static int open_slot(struct gf_selector *s, size_t slot, struct gf_error *err)
{
	const struct gf_randomk_params *p = params_of(s);
	const double most = gf_density_greatest(p->density, p->warmup_densities, p->nwarmup);
	const size_t n = s->env.plan->nmessages;
	struct gf_work *list = gf_select_own_work(s, slot, s->nplan_work);
	struct gf_select_slot *t = &s->slots[slot];
	size_t *at = gf_xcalloc(n + 1, sizeof(*at)), i;
	int rc;

	for (i = 0; i < n; i++)
		at[i + 1] = at[i] + gf_density_count(most, message_of(s, slot, i)->count_elems);
	t->more = gf_xcalloc(at[n] + 1, sizeof(uint32_t));
	rc = gf_select_memory(s, slot, 0, at[n] * sizeof(float), err);
	for (i = 0; i < s->nplan_work && !rc; i++)
		/* the message of the plan that it is, or is a half of */
		list[i].data = (float *)t->memory[0] + at[list[i].after ? list[i].after - 1 : i];
	free(at);
	return rc;
}

static void begin(struct gf_selector *s, size_t slot, size_t step, const struct gf_work **list,
		  size_t *n)
{
	const struct gf_randomk_params *p = params_of(s);
	/* a replay has no epochs: it shows what follows warm-up */
	const double density = s->env.epoch_steps
				       ? gf_density_at(p->density, p->warmup_densities, p->nwarmup,
						       (step - 1) / s->env.epoch_steps)
				       : p->density;
	size_t i;

	(void)list;
	for (i = 0; i < *n; i++)
		s->slots[slot].list[i].count_elems =
			gf_density_count(density, message_of(s, slot, i)->count_elems);
}

static const struct gf_select_ops ops = {
	.hooks = {.prepare = prepare, .finish = finish, .end = end},
	.residual = "randomk.residual",
	.open_slot = open_slot,
	.begin = begin,
};

const struct gf_selection_entry gf_selection_randomk = {
	.plan = &gf_select_plan_randomk,
	.ops = &ops,
};
