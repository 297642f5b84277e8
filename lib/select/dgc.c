/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dgc: Deep Gradient Compression (Lin, Han, Mao, Wang and Dally 2018). Each
 * rank sends the k largest of the values that it has gathered, as topk does. It
 * keeps the momentum on its own side of the wire, so that gradients which wait
 * are not applied as if they were new.
 *
 * doc/select_dgc.h has the equations and an example. The norm that is clipped
 * is that of all gradients: with a clip_norm every message waits for the end of
 * backward.
 *
 * Until the step has ended and is found finite, u and v are as before it. The
 * pool has the values that v is to become, and `next` those of u.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "doc/select_dgc.h"
#include "gf_kernels.h"
#include "select/selections.h"
#include "select/topk_host.h"

struct dgc {
	const struct gf_dgc_params *params; /* borrowed */
	float *velocity, *next;             /* u, laid out as the pool */
	float clipping;                     /* of this step's gradients */
};

/* --- on the thread that moves messages ------------------------------------ */

/* The factor for gradients: 1, or less to clip them. */
static float clipping(const struct gf_selector *s, const struct dgc *p,
		      const struct gf_pool *pool)
{
	const double most = p->params->clip_norm / sqrt(s->env.plan->ranks);
	double norm;

	if (most == 0)
		return 1;
	norm = sqrt(
		gf_kernels()->sum_squares_f32(pool->data, pool->count_elems));
	return norm > most ? (float)(most / norm) : 1;
}

static struct dgc *dgc_of(const struct gf_selector *s)
{
	return ((struct gf_topk_select *)s->priv)->more;
}

static int prepare(void *ctx, size_t slot, size_t message,
		   struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	struct dgc *p = dgc_of(s);
	const struct gf_pool *pool = &s->env.pools[slot];
	struct gf_sparse_message *m = &gf_topk_slot(s, slot)->messages[message];
	const size_t bytes = m->count_elems * sizeof(*m->data);
	float *next = p->next + (m->data - pool->data);
	const double momentum = isnan(p->params->momentum)
					? s->env.momentum
					: p->params->momentum;

	(void)q;
	(void)err;
	if (message == 0) /* no other gradient has been touched yet */
		p->clipping = clipping(s, p, pool);
	/* u becomes g + m u in `next`, then in the pool */
	memcpy(next, p->velocity + (m->data - pool->data), bytes);
	gf_kernels()->axpby_f32(p->clipping, m->data, (float)momentum, next,
				m->count_elems);
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

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q,
	       struct gf_error *err)
{
	struct gf_selector *s = ctx;
	struct dgc *p = dgc_of(s);
	const struct gf_pool *pool = &s->env.pools[slot];
	const struct gf_topk_slot *t = gf_topk_slot(s, slot);
	size_t i;
	int rc = gf_topk_conclude(s, slot, err);

	(void)q;
	if (rc || s->slots[slot].bad.found)
		return rc;
	for (i = 0; i < s->env.plan->nmessages && p->params->masking; i++)
		mask(&t->messages[i],
		     p->next + (t->messages[i].data - pool->data));
	memcpy(p->velocity, p->next, pool->count_elems * sizeof(*p->next));
	gf_topk_commit(s, slot);
	return 0;
}

/* --- on the compute thread ------------------------------------------------ */

static int open_dgc(struct gf_selector *s, struct gf_error *err)
{
	const struct gf_dgc_params *params =
		gf_dgc_params(&s->env.plan->selection);
	const struct gf_topk_kind kind = {
		.density = params->density,
		.warmup_densities = params->warmup_densities,
		.nwarmup = params->nwarmup,
	};
	const size_t count = s->env.pools[0].count_elems;
	struct dgc *p;

	gf_topk_open(s, &kind);
	((struct gf_topk_select *)s->priv)->more = p =
		gf_xcalloc(1, sizeof(*p));
	p->params = params;
	p->velocity = calloc(count + 1, sizeof(*p->velocity));
	p->next = calloc(count + 1, sizeof(*p->next));
	if (!p->velocity || !p->next)
		return gf_error_set(
			err, -ENOMEM,
			"no memory for the momentum of %zu gradients", count);
	return gf_topk_open_messages(s, err);
}

static void close_dgc(struct gf_selector *s)
{
	struct dgc *p = s->priv ? dgc_of(s) : NULL;

	if (p) {
		free(p->velocity);
		free(p->next);
		free(p);
	}
	gf_topk_close(s);
}

static void begin(struct gf_selector *s, size_t slot, size_t step,
		  const struct gf_work **list, size_t *n)
{
	struct gf_work *work = s->slots[slot].list;
	size_t i;

	gf_topk_begin(s, slot, step, list, n);
	for (i = 0; i < *n && dgc_of(s)->params->clip_norm > 0; i++)
		work[i].at_end = true;
}

static void state(struct gf_selector *s, struct gf_state *list)
{
	const struct gf_shape shape = {1, {s->env.pools[0].count_elems}};

	gf_state_add(list, GF_STATE_OWN, gf_xstrdup("dgc.velocity"), &shape,
		     dgc_of(s)->velocity)
		->rule = GF_STATE_SUM;
}

const struct gf_select_ops gf_select_dgc = {
	.hooks = {.prepare = prepare, .end = end, .serial = true},
	.slot_bytes = sizeof(struct gf_topk_slot),
	.residual = "dgc.residual",
	.check = gf_select_check_whole,
	.open = open_dgc,
	.close = close_dgc,
	.begin = begin,
	.state = state,
};
