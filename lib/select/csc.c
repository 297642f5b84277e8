/* SPDX-License-Identifier: BSD-3-Clause */
#include "select/csc.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
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
 */
/* --- on the thread that moves messages -------------------------------------
 */

static int prepare(void *ctx, size_t slot, size_t message,
		   struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_selector *s = ctx;
	struct gf_csc_step *t = gf_csc_step_of(s, slot);
	const struct gf_work *w = &t->list[message];

	if (gf_csc_is_norms(t, message)) {
		while (gf_csc_accumulate(t, t->csc->layout->ntensors))
			;
		gf_csc_share(t, s->env.rank);
		return 0;
	}
	if (t->dense)
		gf_csc_take_up(t, (size_t)((float *)w->data - t->data),
			       w->count_elems);
	else
		gf_csc_pack(t, message);
	return gf_select_scale(s, slot, w, q, err);
}

static int finish(void *ctx, size_t slot, size_t message,
		  struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_selector *s = ctx;
	struct gf_csc_step *t = gf_csc_step_of(s, slot);
	int rc;

	if (gf_csc_is_norms(t, message))
		return 0;
	rc = gf_select_unscale(s, slot, &t->list[message], q, err);
	if (!t->dense)
		gf_csc_measure(t, message);
	return rc;
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q,
	       struct gf_error *err)
{
	struct gf_csc_step *t = gf_csc_step_of(ctx, slot);

	(void)q;
	(void)err;
	gf_csc_look(t);
	if (!t->bad)
		gf_csc_commit(t);
	return 0;
}

static bool meanwhile(void *ctx, size_t slot, size_t nready)
{
	return gf_csc_accumulate(gf_csc_step_of(ctx, slot), nready);
}

/* --- on the compute thread -------------------------------------------------
 */

static int open_csc(struct gf_selector *s, struct gf_error *err)
{
	struct gf_csc *c = gf_xcalloc(1, sizeof(*c));
	size_t i;
	int rc;

	s->priv = c;
	rc = gf_csc_init(c, &s->env, err);
	for (i = 0; i < s->env.depth && !rc; i++)
		rc = gf_csc_alloc_packed(&c->steps[i], err);
	return rc;
}

static void close_csc(struct gf_selector *s)
{
	if (!s->priv)
		return;
	gf_csc_release(s->priv);
	free(s->priv);
}

struct gf_select_bad gf_csc_inspect(struct gf_selector *s, size_t slot)
{
	const struct gf_csc_step *t = gf_csc_step_of(s, slot);

	return t->bad ? gf_select_bad_at(&s->env.pools[slot], gf_csc_bad(t))
		      : (struct gf_select_bad){.found = false};
}

static int sums(struct gf_selector *s, size_t slot, struct gf_select_sums *out,
		struct gf_error *err)
{
	const struct gf_csc_step *t = gf_csc_step_of(s, slot);

	(void)err;
	out->pieces = t->csc->pieces;
	/* of a dense step the places are those in the pool */
	out->npieces = gf_csc_pieces(t, t->dense ? t->data : t->packed,
				     t->csc->pieces);
	return 0;
}

void gf_csc_adopt(struct gf_selector *s, size_t slot)
{
	const struct gf_csc_step *t = gf_csc_step_of(s, slot);

	memcpy(t->csc->important, t->next, t->csc->nchunks * sizeof(*t->next));
}

/* Another history has come: which chunks have none is not known any more. */
static int send(struct gf_selector *s, struct gf_error *err)
{
	struct gf_csc *c = s->priv;

	(void)err;
	memset(c->empty, 0, c->nchunks * sizeof(*c->empty));
	return 0;
}

const struct gf_select_ops gf_select_csc = {
	.hooks = {.prepare = prepare,
		  .finish = finish,
		  .end = end,
		  .meanwhile = meanwhile,
		  .serial = true},
	.check = gf_select_check_whole,
	.open = open_csc,
	.close = close_csc,
	.begin = gf_csc_begin,
	.inspect = gf_csc_inspect,
	.sums = sums,
	.adopt = gf_csc_adopt,
	.state = gf_csc_state,
	.keep = gf_csc_keep,
	.restore = gf_csc_restore,
	.send = send,
};
