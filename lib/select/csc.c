/* SPDX-License-Identifier: BSD-3-Clause */
#include "select/csc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "select/csc_device.h"
#include "select/selections.h"

/*
 * GradientFlow's coarse-grained sparse communication: the chunks with the
 * largest L1 norms go out packed, the others' gradients wait in a history
 * (select/csc.h). Packing and measuring happen on the thread that moves
 * messages, while backward runs. The last message of a step carries the norms;
 * it is the same sum on every rank whatever algorithm the plan's messages have.
 *
 * Several steps may be under way: the thread that moves messages takes them one
 * after the other, so a history is always that of the step before; but what is
 * chosen in a step is taken over when that step is applied, K - 1 steps late.
 *
 * Where gradients and histories lie on a GPU (select/csc_device.h), chunks are
 * packed and measured there; all that is exchanged is in `packed`.
 */
const struct gf_message gf_csc_norms_how = {
	.algorithm = (char *)"rhd",
	.codec = (char *)"f32",
};

static struct gf_csc_step *step_of(void *ctx, size_t slot)
{
	struct gf_selector *s = ctx;
	struct gf_csc *c = s->priv;

	return &c->steps[slot];
}

static bool is_norms(const struct gf_csc_step *t, size_t message)
{
	return message + 1 == t->nlist;
}

/* --- on the thread that moves messages -------------------------------------
 */

static int prepare(void *ctx, size_t slot, size_t message,
		   struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_selector *s = ctx;
	struct gf_csc_step *t = step_of(ctx, slot);
	const struct gf_work *w = &t->list[message];

	(void)q;
	(void)err;
	if (is_norms(t, message)) {
		if (t->csc->device)
			gf_csc_device_measured(t->csc->device, slot);
		else
			while (gf_csc_accumulate(t, t->csc->layout->ntensors))
				;
		gf_csc_share(t, s->env.rank);
		return 0;
	}
	if (t->csc->device)
		; /* it came so */
	else if (t->dense)
		gf_csc_take_up(t, (size_t)((float *)w->data - t->data),
			       w->count_elems);
	else
		gf_csc_pack(t, message);
	gf_select_scale(s, slot, w);
	return 0;
}

static int finish(void *ctx, size_t slot, size_t message,
		  struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_csc_step *t = step_of(ctx, slot);

	(void)q;
	(void)err;
	if (is_norms(t, message))
		return 0;
	gf_select_unscale(ctx, slot, &t->list[message]);
	if (!t->dense)
		gf_csc_measure(t, message);
	return 0;
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q,
	       struct gf_error *err)
{
	struct gf_csc_step *t = step_of(ctx, slot);

	(void)q;
	(void)err;
	t->bad = gf_csc_bad(t) < t->csc->layout->count_elems;
	if (t->bad)
		return 0;
	if (!t->csc->device)
		gf_csc_commit(t);
	gf_csc_choose(t);
	return 0;
}

static bool meanwhile(void *ctx, size_t slot, size_t nready)
{
	return gf_csc_accumulate(step_of(ctx, slot), nready);
}

/* --- on the compute thread -------------------------------------------------
 */

static int open_device(struct gf_selector *s, struct gf_error *err)
{
	struct gf_csc *c = s->priv;
	struct gf_csc_step **steps =
		gf_xcalloc(s->env.depth, sizeof(struct gf_csc_step *));
	size_t i;
	int rc;

	s->hooks.meanwhile = NULL;
	for (i = 0; i < s->env.depth; i++) {
		steps[i] = &c->steps[i];
		steps[i]->data = steps[i]->packed;
	}
	rc = gf_csc_device_new(
		&(struct gf_csc_device_config){
			.gpu = s->env.gpu,
			.compute = s->env.stream,
			.grads = s->env.device_grads,
			.csc = c,
			.steps = steps,
			.depth = s->env.depth,
		},
		&c->device, err);
	free(steps);
	return rc;
}

static int open_csc(struct gf_selector *s, struct gf_error *err)
{
	struct gf_csc *c = gf_xcalloc(1, sizeof(*c));
	size_t i;
	int rc;

	s->priv = c;
	rc = gf_csc_init(c, s->env.plan, &s->env.pools[0], s->env.momentum,
			 s->env.depth, err);
	if (rc)
		return rc;
	c->means = s->env.scaled;
	c->steps = gf_xcalloc(s->env.depth, sizeof(*c->steps));
	for (i = 0; i < s->env.depth && !rc; i++) {
		rc = gf_csc_step_init(&c->steps[i], c, s->env.pools[i].data,
				      err);
		c->steps[i].list = gf_xcalloc(c->nchunks + s->nplan_work + 1,
					      sizeof(*c->steps[i].list));
	}
	return rc || !s->env.device_grads ? rc : open_device(s, err);
}

static void close_csc(struct gf_selector *s)
{
	struct gf_csc *c = s->priv;
	size_t i;

	if (!c)
		return;
	gf_csc_device_free(c->device);
	for (i = 0; c->steps && i < s->env.depth; i++)
		gf_csc_step_release(&c->steps[i]);
	gf_csc_release(c);
	free(c);
}

static void begin(struct gf_selector *s, size_t slot, size_t step,
		  const struct gf_work **list, size_t *n)
{
	struct gf_csc_step *t = step_of(s, slot);
	const struct gf_pool *pool = &s->env.pools[slot];
	const struct gf_work *from;
	size_t i;

	gf_csc_begin(t, s->env.plan, step - 1);
	if (t->csc->device)
		gf_csc_device_begin(t->csc->device, slot);
	from = t->dense ? s->plan_work[slot] : t->work;
	t->nlist = t->dense ? s->nplan_work : t->nwork;
	for (i = 0; i < t->nlist; i++) {
		t->list[i] = from[i];
		if (t->dense) /* in `packed` if gradients are on a GPU */
			t->list[i].data =
				t->data + ((float *)from[i].data - pool->data);
	}
	t->list[t->nlist++] = (struct gf_work){
		.last = pool->ntensors - 1,
		.after = GF_AFTER_ALL,
		.at_end = true,
		.how = &gf_csc_norms_how,
		.data = t->shared,
		.count_elems = gf_csc_shared_elems(t->csc),
	};
	*list = t->list;
	*n = t->nlist;
}

static struct gf_select_bad inspect(struct gf_selector *s, size_t slot)
{
	const struct gf_csc_step *t = step_of(s, slot);

	return t->bad ? gf_select_bad_at(&s->env.pools[slot], gf_csc_bad(t))
		      : (struct gf_select_bad){.found = false};
}

static int sums(struct gf_selector *s, size_t slot, struct gf_select_sums *out,
		struct gf_error *err)
{
	const struct gf_csc_step *t = step_of(s, slot);
	/* of a dense step the places are those in the pool */
	const float *packed = t->dense ? t->data : t->packed;
	int rc = 0;

	if (t->csc->device)
		rc = gf_csc_device_sums(t->csc->device, slot, &packed, err);
	out->pieces = t->csc->pieces;
	out->npieces = gf_csc_pieces(t, packed, t->csc->pieces);
	return rc;
}

static void adopt(struct gf_selector *s, size_t slot)
{
	gf_csc_adopt(step_of(s, slot));
}

/* A plan's message has come with the pack of its last tensor. */
static void times(const struct gf_selector *s, size_t slot,
		  const struct gf_message_times *sent, const double *ready_s,
		  struct gf_message_times *times)
{
	const struct gf_plan *plan = s->env.plan;
	const struct gf_csc *c = s->priv;
	const struct gf_csc_step *t = &c->steps[slot];
	size_t i, k, pack = 0;

	for (i = 0; i < plan->nmessages; i++) {
		const struct gf_message *m = &plan->messages[i];

		if (t->dense) {
			times[i] = sent[i];
			continue;
		}
		while (pack + 1 < t->nwork && t->work[pack].last < m->last)
			pack++;
		times[i] = sent[pack];
		times[i].ready_s = 0;
		for (k = m->first; k <= m->last; k++)
			times[i].ready_s = fmax(times[i].ready_s, ready_s[k]);
		times[i].start_s = fmax(times[i].start_s, times[i].ready_s);
		times[i].end_s = fmax(times[i].end_s, times[i].start_s);
	}
}

static void state(struct gf_selector *s, struct gf_state *list)
{
	gf_csc_state(s->priv, list);
}

static void keep(struct gf_selector *s, size_t slot, size_t age, float *values)
{
	gf_csc_keep(step_of(s, slot), age, values);
}

static void restore(struct gf_selector *s, size_t slot, size_t age,
		    const float *values)
{
	gf_csc_restore(step_of(s, slot), age, values);
}

/* --- gradients on a GPU --------------------------------------------------- */

static int ready(struct gf_selector *s, size_t slot, size_t tensor,
		 struct gf_gpu_stream *q, struct gf_error *err)
{
	return gf_csc_device_take(step_of(s, slot)->csc->device, tensor, q,
				  err);
}

static int commit(struct gf_selector *s, size_t slot, struct gf_gpu_stream *q,
		  struct gf_error *err)
{
	return gf_csc_device_commit(step_of(s, slot)->csc->device, q, err);
}

static int fetch(struct gf_selector *s, struct gf_error *err)
{
	return gf_csc_device_fetch(step_of(s, 0)->csc->device, err);
}

static int send(struct gf_selector *s, struct gf_error *err)
{
	return gf_csc_device_send(step_of(s, 0)->csc->device, err);
}

const struct gf_select_ops gf_select_csc = {
	.pieces = true,
	.hooks = {.prepare = prepare,
		  .finish = finish,
		  .end = end,
		  .meanwhile = meanwhile,
		  .serial = true},
	.check = gf_select_check_whole,
	.open = open_csc,
	.close = close_csc,
	.begin = begin,
	.inspect = inspect,
	.sums = sums,
	.adopt = adopt,
	.times = times,
	.state = state,
	.keep = keep,
	.restore = restore,
	.ready = ready,
	.commit = commit,
	.fetch = fetch,
	.send = send,
};
