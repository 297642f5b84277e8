/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools, a selection and an engine. */
#include "exchange/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

/* --- opening and closing -------------------------------------------------- */

static int open_pools(struct gf_exchange *x, struct gf_error *err)
{
	const struct gf_exchange_env *k = &x->env;
	const struct gf_model_profile *model = k->plan->model;
	size_t n = model->ntensors, i;
	size_t *counts = gf_xcalloc(n, sizeof(*counts));
	int rc = 0;

	x->pools = gf_xcalloc(gf_exchange_depth(x), sizeof(*x->pools));
	for (i = 0; i < n; i++)
		counts[i] = model->tensors[i].count_elems;
	gf_memory_lay_out(k->plan, k->dtypes, counts);
	for (i = 0; i < gf_exchange_depth(x) && !rc; i++) {
		if (k->nccl)
			gf_pool_on(&x->pools[i],
				   k->device_grads + i * k->device_stride,
				   counts, n);
		else
			rc = gf_pool_init(&x->pools[i], k->comm, counts, n,
					  err);
		x->pools[i].lent = k->dtypes != NULL;
		if (!rc && k->gpu && !k->nccl && !k->selects_there)
			rc = gf_pool_pin(&x->pools[i], k->gpu, err);
	}
	free(counts);
	return rc;
}

static int open_select(struct gf_exchange *x, struct gf_error *err)
{
	const struct gf_exchange_env *k = &x->env;

	return gf_select_open(
		&x->select,
		&(struct gf_select_env){
			.plan = k->plan,
			.rank = k->comm->rank,
			.depth = gf_exchange_depth(x),
			.pools = x->pools,
			.shapes = k->shapes,
			.epoch_steps = k->epoch_steps,
			.momentum = k->momentum,
			.scaled = k->scaled,
			.gpu = k->nccl || k->selects_there ? k->gpu : NULL,
			.stream = k->stream,
			.by_host = k->selects_there,
			.device_grads = k->device_grads,
		},
		err);
}

static int open_flags(struct gf_exchange *x, struct gf_error *err)
{
	if (!x->env.nccl)
		return 0;
	x->flags = (struct gf_device_flags){.gpu = x->env.gpu,
					    .count = gf_exchange_depth(x) + 1};
	return gf_device_flags_open(&x->flags, err);
}

static int open_engine(struct gf_exchange *x, struct gf_error *err)
{
	const struct gf_exchange_env *k = &x->env;
	struct gf_engine_config config = {
		.comm = k->comm,
		.plan = k->plan,
		.pool = &x->pools[0],
		.timeout_s = k->timeout_s,
		.segment_bytes = k->plan->segment_bytes,
		.depth = gf_exchange_depth(x),
		.compute_threads = k->threads,
		.hooks = x->memory.select ? x->memory.hooks : x->select.hooks,
	};
	int rc;

	if (k->nccl) {
		config.nccl = k->nccl;
		config.gpu = k->gpu;
		config.compute = k->stream;
		config.graphs = k->graphs;
	}
	rc = gf_engine_new(&config, &x->engine, err);
	x->memory.engine = x->engine;
	return rc;
}

/* The engine is told what will be sent. For it a rank may be short of memory or
 * of files, alone. */
static int expect(struct gf_exchange *x, struct gf_error *err)
{
	size_t n;
	const struct gf_work *like = gf_select_expect(&x->select, &n);
	int rc = gf_engine_expect(x->engine, like, n, err);

	return gf_engine_agree(x->engine, rc, err);
}

int gf_exchange_open(struct gf_exchange *x, const struct gf_exchange_env *env,
		     struct gf_error *err)
{
	int rc;

	memset(x, 0, sizeof(*x));
	x->env = *env;
	x->times = gf_xcalloc(env->plan->nmessages + 1, sizeof(*x->times));
	rc = open_pools(x, err);
	rc = rc ? rc : open_select(x, err);
	if (!rc && env->dtypes)
		rc = gf_memory_open(&x->memory, &x->select, env->comm,
				    env->dtypes, err);
	rc = rc ? rc : open_flags(x, err);
	rc = rc ? rc : gf_exchange_flight_open(x, err);
	rc = gf_comm_agree(env->comm, rc, err);
	rc = rc ? rc : open_engine(x, err);
	return rc ? rc : expect(x, err);
}

void gf_exchange_close(struct gf_exchange *x)
{
	struct gf_error ignored;
	size_t i;

	if (!x->env.comm)
		return;
	if (!x->env.comm->broken && !x->env.nccl)
		(void)gf_exchange_await(x, x->begun, &ignored);
	gf_engine_free(x->engine);
	if (x->env.nccl)
		(void)x->env.gpu->ops->stream_sync(x->env.gpu, x->env.stream,
						   &ignored);
	gf_memory_close(&x->memory);
	gf_select_close(&x->select);
	gf_device_flags_close(&x->flags);
	for (i = 0; x->pools && i < gf_exchange_depth(x); i++)
		gf_pool_release(&x->pools[i]);
	free(x->pools);
	gf_exchange_flight_close(x);
	free(x->times);
	memset(x, 0, sizeof(*x));
}

/* --- what survives a stop ------------------------------------------------- */

void gf_exchange_state(struct gf_exchange *x, struct gf_state *s)
{
	if (x->flight)
		gf_exchange_flight_state(x, s);
	gf_select_state(&x->select, s);
}

int gf_exchange_settle(struct gf_exchange *x, struct gf_error *err)
{
	int rc;

	if (x->env.nccl) {
		rc = gf_exchange_kept(x, err);
		rc = rc ? rc : gf_engine_settle(x->engine, err);
	} else {
		rc = gf_exchange_await(x, x->begun, err);
		rc = rc ? rc : gf_exchange_kept(x, err);
	}
	rc = rc ? rc : gf_select_fetch(&x->select, err);
	return rc || !x->flight ? rc : gf_exchange_flight_keep(x, err);
}

int gf_exchange_restore(struct gf_exchange *x, struct gf_error *err)
{
	int rc = gf_select_send(&x->select, err);

	if (!rc && x->flight)
		rc = gf_exchange_flight_restore(x, err);
	return rc ? rc : expect(x, err);
}
