/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/exchanges.h"

/*
 * Every gradient goes out, as the plan's messages say, and comes back as the
 * sum over ranks. Its state is in the pools alone, which nobody else writes.
 */
static struct gf_exchange_bad inspect(struct gf_exchange *x, size_t slot)
{
	const struct gf_pool *pool = &x->pools[slot];

	/* A sum with a bad term is bad: all ranks see the same. */
	return gf_exchange_find_bad(pool, pool->data, 0, pool->count_elems);
}

static void apply(struct gf_exchange *x, size_t slot, struct gf_update *u,
		  double lr)
{
	gf_update_all(u, lr, x->pools[slot].data,
		      1.0f / (float)x->env.plan->ranks);
}

const struct gf_exchange_ops gf_exchange_dense = {
	.name = "dense",
	.description = "all gradients",
	.inspect = inspect,
	.apply = apply,
};
