/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/exchanges.h"

/*
 * Every gradient goes out, as the plan's messages say, and comes back as the
 * sum over ranks; scaled ones as the mean, since a sum of many could overflow
 * what goes on the wire. Its state is in the pools alone, which nobody else
 * writes. A split message's all-gather goes behind the step's other messages.
 */

/* --- on the thread that moves messages: the scale --------------------------
 */

static void prepare(void *ctx, size_t slot, size_t message)
{
	const struct gf_exchange *x = ctx;
	const struct gf_work *w = &x->plan_work[slot][message];

	if (w->half != GF_COLL_ALL_GATHER)
		gf_exchange_multiply(w, x->scale[slot] / x->env.plan->ranks);
}

static void finish(void *ctx, size_t slot, size_t message)
{
	const struct gf_exchange *x = ctx;
	const struct gf_work *w = &x->plan_work[slot][message];

	if (w->half != GF_COLL_REDUCE_SCATTER)
		gf_exchange_multiply(w, 1 / x->scale[slot]);
}

static int open_dense(struct gf_exchange *x, struct gf_engine_hooks *hooks,
		      struct gf_error *err)
{
	(void)err;
	if (x->env.scaled)
		*hooks = (struct gf_engine_hooks){
			.prepare = prepare, .finish = finish, .ctx = x};
	return 0;
}

/* --- on the compute thread ------------------------------------------------ */

static struct gf_exchange_bad inspect(struct gf_exchange *x, size_t slot)
{
	const struct gf_pool *pool = &x->pools[slot];

	/* A sum with a bad term is bad: all ranks see the same. */
	return gf_exchange_find_bad(pool, pool->data, 0, pool->count_elems);
}

static void apply(struct gf_exchange *x, size_t slot, struct gf_update *u,
		  double lr)
{
	float mean = x->env.scaled ? 1 : 1.0f / (float)x->env.plan->ranks;

	gf_update_all(u, lr, x->pools[slot].data, mean);
}

static struct gf_exchange_bad inspect_message(struct gf_exchange *x,
					      size_t slot, size_t message)
{
	const struct gf_work *w = &x->plan_work[slot][message];
	const struct gf_pool *pool = &x->pools[slot];

	return gf_exchange_find_bad(pool, w->data, pool->offsets[w->first],
				    w->count_elems);
}

static void apply_message(struct gf_exchange *x, size_t slot, size_t message,
			  struct gf_update *u, double lr)
{
	const struct gf_work *w = &x->plan_work[slot][message];
	const struct gf_pool *pool = &x->pools[slot];
	float mean = x->env.scaled ? 1 : 1.0f / (float)x->env.plan->ranks;

	gf_update_some(u, lr, pool->offsets[w->first], w->count_elems,
		       pool->data, mean);
}

const struct gf_exchange_ops gf_exchange_dense = {
	.name = "dense",
	.description = "all gradients",
	.open = open_dense,
	.inspect = inspect,
	.apply = apply,
	.inspect_message = inspect_message,
	.apply_message = apply_message,
};
