/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * randomk: the same random elements on every rank (Stich, Cordonnier and Jaggi
 * 2018, "Sparsified SGD with Memory"; with a common seed as in Vogels et al.
 * 2019). Since all ranks draw alike, values alone travel, and the message's own
 * algorithm and codec sum them.
 *
 * doc/select_randomk.h has the equations and an example.
 *
 * A gradient that is not finite might not be drawn. Its rank then sends NaN as
 * the message's first value, so that all ranks learn of it in this step.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "doc/select_density.h"
#include "doc/select_randomk.h"
#include "gf_kernels.h"
#include "select/feedback.h"
#include "select/finite.h"
#include "select/selections.h"

struct slot {
	struct gf_work *list; /* the plan's messages and halves, packed */
	float *packed;        /* of all messages */
	uint32_t *index;      /* beside packed: within the message */
	size_t step;
	struct gf_select_bad bad;
};

struct randomk {
	const struct gf_randomk_params *params; /* borrowed */
	struct gf_feedback feedback;
	struct slot *slots;
};

static struct slot *slot_of(const struct gf_selector *s, size_t slot)
{
	const struct randomk *p = s->priv;

	return &p->slots[slot];
}

static const struct gf_work *message_of(const struct gf_selector *s,
					size_t slot, size_t message)
{
	return &s->plan_work[slot][message];
}

static size_t first_of(const struct gf_selector *s, size_t slot, size_t message)
{
	const float *data = message_of(s, slot, message)->data;

	return (size_t)(data - s->env.pools[slot].data);
}

static uint32_t *index_of(const struct slot *t, size_t message)
{
	return t->index + ((float *)t->list[message].data - t->packed);
}

/* --- on the thread that moves messages ------------------------------------ */

static int prepare(void *ctx, size_t slot, size_t message,
		   struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	struct randomk *p = s->priv;
	struct slot *t = slot_of(s, slot);
	const struct gf_work *w = &t->list[message];
	const size_t n = message_of(s, slot, message)->count_elems;
	const size_t first = first_of(s, slot, message);
	float *data = s->env.pools[slot].data;
	uint32_t *index = index_of(t, message);

	(void)q;
	(void)err;
	if (w->half == GF_COLL_ALL_GATHER)
		return 0;
	gf_randomk_pick(p->params->seed, t->step, message, n, w->count_elems,
			index);
	if (gf_feedback_add(&p->feedback, data, first, n) < n)
		data[first + index[0]] = NAN;
	gf_kernels()->take_f32(w->data, data + first, index, w->count_elems);
	return gf_select_scale(s, slot, w, q, err);
}

static int finish(void *ctx, size_t slot, size_t message,
		  struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_work *w = &slot_of(s, slot)->list[message];

	(void)q;
	(void)err;
	return w->half == GF_COLL_REDUCE_SCATTER
		       ? 0
		       : gf_select_unscale(s, slot, w, q, err);
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q,
	       struct gf_error *err)
{
	struct gf_selector *s = ctx;
	struct randomk *p = s->priv;
	struct slot *t = slot_of(s, slot);
	struct gf_pool *pool = &s->env.pools[slot];
	size_t i, at;

	(void)q;
	(void)err;
	t->bad.found = false;
	for (i = 0; i < s->env.plan->nmessages && !t->bad.found; i++) {
		const struct gf_work *w = &t->list[i];

		at = gf_finite_prefix(w->data, w->count_elems);
		if (at < w->count_elems)
			t->bad = gf_select_bad_at(pool,
						  first_of(s, slot, i) +
							  index_of(t, i)[at]);
	}
	for (i = 0; i < s->env.plan->nmessages && !t->bad.found; i++) {
		const struct gf_work *w = &t->list[i];
		const size_t first = first_of(s, slot, i);

		gf_feedback_commit(&p->feedback, pool->data, first,
				   message_of(s, slot, i)->count_elems);
		gf_kernels()->scatter_add_f32(pool->data + first, w->data,
					      index_of(t, i), w->count_elems);
	}
	return 0;
}

/* --- on the compute thread ------------------------------------------------ */

/* The message of the plan that the i-th of a list is, or is a half of. */
static size_t whole_of(const struct gf_work *w, size_t i)
{
	return w->after ? w->after - 1 : i;
}

/* Messages have room for the k of the densest epoch. */
static int open_slot(struct gf_selector *s, size_t slot, struct gf_error *err)
{
	const struct randomk *p = s->priv;
	const double most = gf_density_greatest(p->params->density,
						p->params->warmup_densities,
						p->params->nwarmup);
	const size_t n = s->env.plan->nmessages;
	struct gf_comm *comm = s->env.pools[0].comm;
	struct slot *t = slot_of(s, slot);
	size_t *at = gf_xcalloc(n + 1, sizeof(*at)), i;
	void *packed = NULL;
	int rc;

	for (i = 0; i < n; i++)
		at[i + 1] = at[i] +
			    gf_density_count(
				    most, message_of(s, slot, i)->count_elems);
	t->list = gf_xcalloc(s->nplan_work + 1, sizeof(*t->list));
	t->index = gf_xcalloc(at[n] + 1, sizeof(*t->index));
	rc = comm->ops->buffer_alloc(comm, at[n] * sizeof(float), &packed, err);
	t->packed = packed;
	for (i = 0; i < s->nplan_work && !rc; i++) {
		t->list[i] = *message_of(s, slot, i);
		t->list[i].data = t->packed + at[whole_of(&t->list[i], i)];
	}
	free(at);
	return rc;
}

static int open_randomk(struct gf_selector *s, struct gf_error *err)
{
	struct randomk *p = gf_xcalloc(1, sizeof(*p));
	size_t i;
	int rc;

	s->priv = p;
	p->params = gf_randomk_params(&s->env.plan->selection);
	p->slots = gf_xcalloc(s->env.depth, sizeof(*p->slots));
	rc = gf_feedback_open(&p->feedback, s, err);
	for (i = 0; i < s->env.depth && !rc; i++)
		rc = open_slot(s, i, err);
	return rc;
}

static void close_randomk(struct gf_selector *s)
{
	struct gf_comm *comm = s->env.pools[0].comm;
	struct randomk *p = s->priv;
	size_t i;

	if (!p)
		return;
	for (i = 0; i < s->env.depth; i++) {
		comm->ops->buffer_free(comm, p->slots[i].packed);
		free(p->slots[i].index);
		free(p->slots[i].list);
	}
	gf_feedback_close(&p->feedback);
	free(p->slots);
	free(p);
}

static void begin(struct gf_selector *s, size_t slot, size_t step,
		  const struct gf_work **list, size_t *n)
{
	const struct randomk *p = s->priv;
	struct slot *t = slot_of(s, slot);
	/* a replay has no epochs: it shows what follows warm-up */
	const double density =
		s->env.epoch_steps
			? gf_density_at(p->params->density,
					p->params->warmup_densities,
					p->params->nwarmup,
					(step - 1) / s->env.epoch_steps)
			: p->params->density;
	size_t i;

	t->step = step;
	for (i = 0; i < s->nplan_work; i++)
		t->list[i].count_elems = gf_density_count(
			density, message_of(s, slot, i)->count_elems);
	*list = t->list;
	*n = s->nplan_work;
}

static struct gf_select_bad inspect(struct gf_selector *s, size_t slot)
{
	return slot_of(s, slot)->bad;
}

static void state(struct gf_selector *s, struct gf_state *list)
{
	struct randomk *p = s->priv;

	gf_feedback_state(&p->feedback, list, gf_xstrdup("randomk.residual"));
}

const struct gf_select_ops gf_select_randomk = {
	.hooks = {.prepare = prepare,
		  .finish = finish,
		  .end = end,
		  .serial = true},
	.open = open_randomk,
	.close = close_randomk,
	.begin = begin,
	.inspect = inspect,
	.state = state,
};
