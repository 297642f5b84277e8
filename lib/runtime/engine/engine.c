/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/engine/engine.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/heap.h"
#include "collectives/runnable.h"

static int check(const struct gf_engine_config *config, struct gf_error *err)
{
	const struct gf_plan *plan = config->plan;
	const struct gf_pool *pool = config->pool;
	size_t i, count;
	int rc = gf_plan_runnable(plan, err);

	rc = rc ? rc : gf_plan_check(plan, err);
	rc = rc ? rc : gf_plan_check_ranks(plan, config->comm->ranks, err);
	if (rc)
		return rc;
	if (plan->model->ntensors != pool->ntensors)
		return gf_error_set(err, -EINVAL,
				    "the plan has %zu tensors, the gradient pool has %zu",
				    plan->model->ntensors, pool->ntensors);
	for (i = 0; i < pool->ntensors; i++) {
		count = pool->offsets[i + 1] - pool->offsets[i];
		if (pool->lent ? plan->model->tensors[i].count_elems > count
			       : plan->model->tensors[i].count_elems != count)
			return gf_error_set(
				err, -EINVAL,
				"tensor %zu: the plan has %zu elements, the gradient pool has %zu",
				i, plan->model->tensors[i].count_elems, count);
	}
	return 0;
}

bool gf_engine_sends_sets(const struct gf_plan *plan)
{
	return gf_selection_has(&plan->selection, GF_SELECT_SETS);
}

static void init(struct gf_engine *e, const struct gf_engine_config *config)
{
	e->comm = config->comm;
	e->plan = config->plan;
	e->pool = config->pool;
	e->hooks = config->hooks;
	e->awaited_at_once = config->awaited_at_once;
	e->depth = config->depth ? config->depth : 1;
	e->lanes = config->lanes ? config->lanes : e->plan ? e->plan->lanes : 1;
	e->lanes = e->lanes > 0 ? e->lanes : 1;
	e->lent = config->watch != NULL;
	gf_comm_thread_init(&e->thread, e->comm, config->timeout_s, config->watch);
}

/* A rank's own part of making an engine. */
static int make(struct gf_engine *e, const struct gf_engine_config *config, struct gf_error *err)
{
	int rc = e->plan ? check(config, err) : 0;

	if (rc || !e->plan)
		return rc ? rc : e->ops->make(e, config, err);
	e->nplan_work = gf_work_count(e->plan);
	e->plan_work = gf_xcalloc(e->nplan_work + 1, sizeof(*e->plan_work));
	gf_work_of_plan(e->plan, e->pool, e->plan_work);
	return e->ops->make(e, config, err);
}

/* Two ranks that run different things would wait for each other for ever, or add up data that do
 * not belong together. */
static int same_everywhere(const struct gf_engine *e, struct gf_error *err)
{
	const struct gf_pool *pool = e->pool;
	char digest[GF_DIGEST_TEXT], *text;
	int rc = gf_comm_same_text(e->comm, "version", GF_VERSION, err);

	if (rc)
		return rc;
	gf_digest_text(pool->offsets, (pool->ntensors + 1) * sizeof(*pool->offsets), digest);
	text = gf_xasprintf("%zu tensors of %zu elements in all, %s", pool->ntensors,
			    pool->count_elems, digest);
	rc = gf_comm_same_text(e->comm, "gradients", text, err);
	free(text);
	if (rc)
		return rc;
	text = gf_plan_write(e->plan);
	gf_digest_text(text, strlen(text), digest);
	free(text);
	return gf_comm_same_text(e->comm, "plan", digest, err);
}

int gf_engine_new(const struct gf_engine_config *config, struct gf_engine **engine,
		  struct gf_error *err)
{
	const struct gf_engine_ops *ops =
		config->place.nccl ? &gf_engine_streams : &gf_engine_thread;
	struct gf_engine *e = gf_xcalloc(1, ops->size_bytes);
	int rc;

	e->ops = ops;
	init(e, config);
	rc = gf_comm_agree(e->comm, make(e, config, err), err);
	if (!rc && e->plan)
		rc = same_everywhere(e, err);
	if (!rc && ops->meet)
		rc = ops->meet(e, config, err);
	rc = rc ? rc : gf_comm_agree(e->comm, ops->start(e, err), err);
	if (rc) {
		gf_engine_free(e);
		return rc;
	}
	gf_comm_thread_go(&e->thread);
	*engine = e;
	return 0;
}

void gf_engine_free(struct gf_engine *e)
{
	if (!e)
		return;
	e->ops->close(e);
	gf_comm_thread_release(&e->thread);
	free(e->plan_work);
	free(e);
}

void gf_engine_abandon(struct gf_engine *e)
{
	if (e)
		gf_comm_thread_stop(&e->thread);
}

void gf_engine_fail(struct gf_engine *e, int rc, const struct gf_error *why)
{
	pthread_mutex_lock(&e->thread.lock);
	gf_comm_thread_keep(&e->thread, rc, why);
	pthread_mutex_unlock(&e->thread.lock);
}

void gf_engine_count_from(struct gf_engine *e, size_t steps)
{
	pthread_mutex_lock(&e->thread.lock);
	e->before = steps - e->nbegun;
	pthread_mutex_unlock(&e->thread.lock);
}

void gf_engine_ready_all(struct gf_engine *e, const size_t *tensors, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		assert(tensors[i] < e->pool->ntensors);
	e->ops->ready(e, tensors, n);
}

int gf_engine_check(struct gf_engine *e, struct gf_error *err)
{
	int rc;

	pthread_mutex_lock(&e->thread.lock);
	rc = gf_comm_thread_kept(&e->thread, err);
	pthread_mutex_unlock(&e->thread.lock);
	return rc;
}

struct gf_totals gf_engine_totals(const struct gf_engine *e)
{
	const int ranks = e->plan ? e->plan->ranks : 0;
	struct gf_totals totals = {
		.sent_bytes = e->sent_bytes,
		.waited_bytes = e->waited_bytes,
		.hooks_s = e->hooks_s,
		.coding_s = e->coding_s,
		.handling_s = e->handling_s,
	};

	if (e->comm->rank < ranks) /* a server has no gradients */
		totals.dense_bytes =
			gf_engine_ring_elems(ranks, e->pool->count_elems) * sizeof(float);
	return totals;
}

size_t gf_engine_ring_elems(int ranks, size_t count_elems)
{
	return 2 * (size_t)(ranks - 1) * count_elems / (size_t)ranks;
}

int gf_engine_call(struct gf_engine *e,
		   int (*fn)(struct gf_comm *comm, void *ctx, struct gf_error *err), void *ctx,
		   struct gf_error *err)
{
	int rc;

	pthread_mutex_lock(&e->thread.lock);
	rc = gf_comm_thread_kept(&e->thread, err);
	if (!rc && e->ops->thread)
		rc = e->ops->thread->may_call(e, err);
	if (rc || !e->thread.alive) {
		pthread_mutex_unlock(&e->thread.lock);
		return rc ? rc : fn(e->comm, ctx, err);
	}
	rc = gf_comm_thread_call_locked(&e->thread, fn, ctx, err);
	pthread_mutex_unlock(&e->thread.lock);
	return rc;
}

static int barrier(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	(void)ctx;
	return gf_comm_barrier(comm, err);
}

int gf_engine_barrier(struct gf_engine *e, struct gf_error *err)
{
	return gf_engine_call(e, barrier, NULL, err);
}

struct verdict {
	int rc;
	struct gf_error reason;
};

static int agree(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	struct verdict *v = ctx;
	int rc = gf_comm_agree(comm, v->rc, &v->reason);

	if (rc && err)
		*err = v->reason;
	return rc;
}

int gf_engine_agree(struct gf_engine *e, int rc, struct gf_error *err)
{
	struct verdict v = {.rc = rc};

	if (rc && err)
		v.reason = *err;
	return gf_engine_call(e, agree, &v, err);
}
