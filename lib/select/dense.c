/* SPDX-License-Identifier: BSD-3-Clause */
#include "select/selections.h"

/*
 * Every gradient goes out, as the plan's messages say, and comes back as the
 * sum over ranks; scaled ones as the mean, since a sum of many could overflow
 * what goes on the wire. Its state is in the pools alone. A split message's
 * all-gather follows the step's other messages.
 */

static int prepare(void *ctx, size_t slot, size_t message,
		   struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_selector *s = ctx;
	const struct gf_work *w = &s->plan_work[slot][message];

	(void)q;
	(void)err;
	if (w->half != GF_COLL_ALL_GATHER)
		gf_select_scale(s, slot, w);
	return 0;
}

static int finish(void *ctx, size_t slot, size_t message,
		  struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_selector *s = ctx;
	const struct gf_work *w = &s->plan_work[slot][message];

	(void)q;
	(void)err;
	if (w->half != GF_COLL_REDUCE_SCATTER)
		gf_select_unscale(s, slot, w);
	return 0;
}

static int open_dense(struct gf_selector *s, struct gf_error *err)
{
	(void)err;
	if (!s->env.scaled) /* nothing to do on the way */
		s->hooks = (struct gf_engine_hooks){.ctx = s};
	return 0;
}

/* A sum with a bad term is bad: all ranks see the same. */
static struct gf_select_bad inspect(struct gf_selector *s, size_t slot)
{
	const struct gf_pool *pool = &s->env.pools[slot];

	return gf_select_find_bad(pool, pool->data, 0, pool->count_elems);
}

const struct gf_select_ops gf_select_dense = {
	.by_message = true,
	.hooks = {.prepare = prepare, .finish = finish},
	.open = open_dense,
	.inspect = inspect,
};
