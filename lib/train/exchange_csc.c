/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/exchange_csc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "train/exchanges.h"

/*
 * GradientFlow's coarse-grained sparse communication: the chunks with the
 * largest L1 norms go out packed, the others' gradients wait in a history
 * (rt/csc.h). Packing and measuring happen on the thread that moves messages,
 * while backward runs. The last message of a step carries the norms; it is the
 * same sum on every rank whatever algorithm the plan's messages have.
 *
 * Several steps may be under way: the thread that moves messages takes them one
 * behind the other, so a history is always that of the step before; but what is
 * chosen in a step is taken over when that step is applied, K - 1 steps late.
 *
 * On a GPU (exchange_csc_device.c) histories and gradients lie there, and
 * chunks are packed and measured there; all that is exchanged is in `packed`.
 */
static const struct gf_message norms_how = {
	.algorithm = (char *)"rhd",
	.codec = (char *)"f32",
};

/* --- on the thread that moves messages -------------------------------------
 */

static struct gf_csc_slot *slot_of(void *ctx, size_t slot)
{
	struct gf_exchange *x = ctx;
	struct gf_csc_exchange *c = x->priv;

	return &c->slots[slot];
}

static void prepare(void *ctx, size_t slot, size_t message)
{
	struct gf_exchange *x = ctx;
	const struct gf_csc_exchange *c = x->priv;
	struct gf_csc_slot *s = slot_of(x, slot);
	const struct gf_work *w = &s->list[message];

	if (message + 1 == s->nlist && c->device) {
		gf_csc_device_measured(c->device, slot);
		gf_csc_share(&s->step, x->env.comm->rank);
	} else if (message + 1 == s->nlist) {
		while (gf_csc_accumulate(&s->step, x->pools[slot].ntensors))
			;
		gf_csc_share(&s->step, x->env.comm->rank);
	} else if (c->device) {
		; /* it came so */
	} else if (s->step.dense) {
		gf_csc_take_up(&s->step,
			       (size_t)((float *)w->data - s->step.data),
			       w->count_elems);
	} else {
		gf_csc_pack(&s->step, message);
	}
	if (x->env.scaled && message + 1 < s->nlist)
		gf_exchange_multiply(w, x->scale[slot] / x->env.plan->ranks);
}

static void finish(void *ctx, size_t slot, size_t message)
{
	const struct gf_exchange *x = ctx;
	struct gf_csc_slot *s = slot_of(ctx, slot);

	if (message + 1 == s->nlist)
		return;
	if (x->env.scaled)
		gf_exchange_multiply(&s->list[message], 1 / x->scale[slot]);
	if (!s->step.dense)
		gf_csc_measure(&s->step, message);
}

static void end(void *ctx, size_t slot)
{
	struct gf_exchange *x = ctx;
	const struct gf_csc_exchange *c = x->priv;
	struct gf_csc_slot *s = slot_of(x, slot);

	s->bad = gf_csc_bad(&s->step) < x->pools[slot].count_elems;
	if (s->bad)
		return;
	if (!c->device)
		gf_csc_commit(&s->step);
	gf_csc_choose(&s->step);
}

static bool meanwhile(void *ctx, size_t slot, size_t nready)
{
	return gf_csc_accumulate(&slot_of(ctx, slot)->step, nready);
}

/* --- on the compute thread -------------------------------------------------
 */

static int open_csc(struct gf_exchange *x, struct gf_engine_hooks *hooks,
		    struct gf_error *err)
{
	struct gf_csc_exchange *c = gf_xcalloc(1, sizeof(*c));
	size_t i;
	int rc;

	x->priv = c;
	*hooks = (struct gf_engine_hooks){prepare,   finish, end,
					  meanwhile, x,      true};
	if (x->env.device_grads)
		hooks->meanwhile = NULL;
	rc = gf_csc_init(&c->csc, x->env.plan, &x->pools[0], x->env.momentum,
			 err);
	c->csc.means = x->env.scaled;
	c->slots = gf_xcalloc(x->env.depth, sizeof(*c->slots));
	c->pieces = gf_xcalloc(c->csc.nchunks + 1, sizeof(*c->pieces));
	c->flight_sent = gf_xcalloc(x->env.depth * (c->csc.nchunks + 1),
				    sizeof(*c->flight_sent));
	c->flight_next = gf_xcalloc(x->env.depth * (c->csc.nchunks + 1),
				    sizeof(*c->flight_next));
	for (i = 0; i < x->env.depth && !rc; i++) {
		rc = gf_csc_step_init(&c->slots[i].step, &c->csc,
				      x->pools[i].data, err);
		c->slots[i].list =
			gf_xcalloc(c->csc.nchunks + x->nplan_work + 1,
				   sizeof(*c->slots[i].list));
	}
	if (!rc && x->env.device_grads)
		rc = gf_csc_exchange_open_device(x, err);
	return rc;
}

static void begin(struct gf_exchange *x, size_t slot, size_t step)
{
	const struct gf_csc_exchange *c = x->priv;
	struct gf_csc_slot *s = slot_of(x, slot);
	const struct gf_csc_step *t = &s->step;
	const struct gf_work *from;
	size_t i;

	gf_csc_begin(&s->step, x->env.plan, step - 1);
	if (c->device)
		gf_csc_device_begin(c->device, slot);
	from = t->dense ? x->plan_work[slot] : t->work;
	s->nlist = t->dense ? x->nplan_work : t->nwork;
	for (i = 0; i < s->nlist; i++) {
		s->list[i] = from[i];
		if (t->dense) /* in `packed` if gradients are on a device */
			s->list[i].data = t->data + ((float *)from[i].data -
						     x->pools[slot].data);
	}
	s->list[s->nlist++] = (struct gf_work){
		.last = x->pools[slot].ntensors - 1,
		.at_end = true,
		.how = &norms_how,
		.data = t->shared,
		.count_elems = gf_csc_shared_elems(t->csc),
	};
	gf_engine_begin_work(x->engine, s->list, s->nlist);
}

static struct gf_exchange_bad inspect(struct gf_exchange *x, size_t slot)
{
	struct gf_csc_slot *s = slot_of(x, slot);
	const struct gf_pool *pool = &x->pools[slot];
	struct gf_exchange_bad bad = {.found = s->bad};
	size_t at;

	if (!s->bad)
		return bad;
	at = gf_csc_bad(&s->step);
	bad.tensor = gf_pool_tensor_at(pool, at);
	bad.element = at - pool->offsets[bad.tensor];
	return bad;
}

/* Where they lie by gf_csc_range's places. */
static const float *sums(struct gf_exchange *x, size_t slot)
{
	const struct gf_csc_exchange *c = x->priv;
	const struct gf_csc_step *t = &c->slots[slot].step;

	if (c->device)
		return gf_csc_exchange_sums(x, slot);
	/* of a dense step the places are those in the pool */
	return t->dense ? t->data : t->packed;
}

static void apply(struct gf_exchange *x, size_t slot, struct gf_update *u,
		  double lr)
{
	const struct gf_csc_step *t = &slot_of(x, slot)->step;
	float mean = x->env.scaled ? 1 : 1.0f / (float)x->env.plan->ranks;
	struct gf_optim_piece *pieces = ((struct gf_csc_exchange *)x->priv)
						->pieces,
			      *p;
	const float *packed = sums(x, slot);
	size_t index = 0, place, n = 0;

	for (p = pieces;
	     (p->count_elems = gf_csc_range(t, &index, &place, &p->first));
	     p = &pieces[++n])
		p->grad = packed + place;
	gf_update_pieces(u, lr, pieces, n, mean);
	gf_csc_adopt(&slot_of(x, slot)->step);
}

/* A plan's message has come with the pack of its last tensor. */
static void times(const struct gf_exchange *x, struct gf_message_times *times)
{
	const struct gf_plan *plan = x->env.plan;
	const struct gf_message_times *packs = gf_engine_times(x->engine);
	const struct gf_csc_exchange *c = x->priv;
	const struct gf_csc_step *t =
		&c->slots[gf_engine_last_slot(x->engine)].step;
	size_t i, k, pack = 0;

	for (i = 0; i < plan->nmessages; i++) {
		const struct gf_message *m = &plan->messages[i];

		if (t->dense) {
			times[i] = packs[i];
			continue;
		}
		while (pack + 1 < t->nwork && t->work[pack].last < m->last)
			pack++;
		times[i] = packs[pack];
		times[i].ready_s = 0;
		for (k = m->first; k <= m->last; k++)
			times[i].ready_s =
				fmax(times[i].ready_s,
				     gf_engine_ready_s(x->engine, k));
		times[i].start_s = fmax(times[i].start_s, times[i].ready_s);
		times[i].end_s = fmax(times[i].end_s, times[i].start_s);
	}
}

void gf_csc_add_state(struct gf_state *s, const struct gf_csc *csc,
		      uint64_t *flight_sent, uint64_t *flight_next,
		      size_t words)
{
	const struct gf_shape shape = {1, {csc->layout->count_elems}};

	gf_state_add(s, GF_STATE_OWN, gf_xstrdup("csc.history"), &shape,
		     csc->history)
		->rule = GF_STATE_SUM;
	gf_state_add_words(s, GF_STATE_SHARED, "csc.important", "U64",
			   csc->important, csc->nchunks);
	if (!words)
		return;
	gf_state_add_words(s, GF_STATE_SHARED, "csc.flight.sent", "U64",
			   flight_sent, words);
	gf_state_add_words(s, GF_STATE_SHARED, "csc.flight.next", "U64",
			   flight_next, words);
}

static void state(struct gf_exchange *x, struct gf_state *s)
{
	struct gf_csc_exchange *c = x->priv;

	gf_csc_add_state(s, &c->csc, c->flight_sent, c->flight_next,
			 (x->env.depth - 1) * c->csc.nchunks);
}

static void keep(struct gf_exchange *x, size_t slot, size_t age, float *values)
{
	struct gf_csc_exchange *c = x->priv;
	size_t n = c->csc.nchunks;

	gf_csc_keep(&slot_of(x, slot)->step, values, c->flight_sent + age * n,
		    c->flight_next + age * n);
	if (slot_of(x, slot)->bad) /* it chose nothing */
		memset(c->flight_next + age * n, 0,
		       n * sizeof(*c->flight_next));
}

static void restore(struct gf_exchange *x, size_t slot, size_t age)
{
	struct gf_csc_exchange *c = x->priv;
	size_t n = c->csc.nchunks;

	gf_csc_restore(&slot_of(x, slot)->step, x->pools[slot].data,
		       c->flight_sent + age * n, c->flight_next + age * n);
}

static void close_csc(struct gf_exchange *x)
{
	struct gf_csc_exchange *c = x->priv;
	size_t i;

	if (!c)
		return;
	gf_csc_device_free(c->device);
	for (i = 0; c->slots && i < x->env.depth; i++) {
		gf_csc_step_release(&c->slots[i].step);
		free(c->slots[i].list);
	}
	free(c->slots);
	free(c->pieces);
	free(c->flight_sent);
	free(c->flight_next);
	gf_csc_release(&c->csc);
	free(c);
}

const struct gf_exchange_ops gf_exchange_csc = {
	.name = "csc",
	.description = "chunks with the largest norms, the others wait",
	.pieces = true,
	.check = gf_exchange_check_whole,
	.open = open_csc,
	.begin = begin,
	.inspect = inspect,
	.apply = apply,
	.times = times,
	.state = state,
	.keep = keep,
	.restore = restore,
	.take = gf_csc_exchange_take,
	.commit = gf_csc_exchange_commit,
	.fetch = gf_csc_exchange_fetch,
	.send = gf_csc_exchange_send,
	.close = close_csc,
};
