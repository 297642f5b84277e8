/* SPDX-License-Identifier: BSD-3-Clause */
/* What all selections share: pools, the engine, and its steps. */
#include "train/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "rt/finite.h"
#include "train/device_update.h"
#include "train/team.h"

static int open_pools(struct gf_exchange *x, struct gf_error *err)
{
	const struct gf_model_profile *model = x->env.plan->model;
	size_t n = model->ntensors, i;
	size_t *counts = gf_xcalloc(n, sizeof(*counts));
	int rc = 0;

	x->pools = gf_xcalloc(x->env.depth, sizeof(*x->pools));
	for (i = 0; i < n; i++)
		counts[i] = model->tensors[i].count_elems;
	x->plan_work = gf_xcalloc(x->env.depth, sizeof(*x->plan_work));
	x->nplan_work = gf_work_count(x->env.plan);
	x->scale = gf_xcalloc(x->env.depth, sizeof(*x->scale));
	for (i = 0; i < x->env.depth && !rc; i++) {
		rc = gf_pool_init(&x->pools[i], x->env.comm, counts, n, err);
		if (!rc && x->env.gpu && !x->env.device_grads)
			rc = gf_pool_pin(&x->pools[i], x->env.gpu, err);
		if (rc)
			break;
		x->plan_work[i] =
			gf_xcalloc(x->nplan_work, sizeof(**x->plan_work));
		gf_work_of_plan(x->env.plan, &x->pools[i], x->plan_work[i]);
	}
	free(counts);
	return rc;
}

int gf_exchange_device_check(const struct gf_plan *plan,
			     const struct gf_training *training,
			     struct gf_error *err)
{
	const struct gf_exchange_ops *ops = gf_exchange_find(plan);
	const struct gf_optim_config optim = {
		.name = training->optimizer,
	};

	if (!ops || !ops->take)
		return gf_error_set(err, -ENOTSUP,
				    "selection \"%s\" is made on the host",
				    gf_select_names[plan->selection.method]);
	return ops->pieces ? gf_device_update_check_pieces(&optim, err)
			   : gf_device_update_check(&optim, err);
}

int gf_exchange_open(struct gf_exchange *x, const struct gf_exchange_env *env,
		     struct gf_error *err)
{
	struct gf_engine_config config = {
		.comm = env->comm,
		.plan = env->plan,
		.timeout_s = env->timeout_s,
		.depth = env->depth,
		.segment_bytes = env->plan->segment_bytes,
	};
	struct gf_team team = {env->comm, NULL};
	int rc;

	memset(x, 0, sizeof(*x));
	x->env = *env;
	x->ops = gf_exchange_find(env->plan);
	rc = x->ops->check ? x->ops->check(env->plan, err) : 0;
	rc = rc ? rc : open_pools(x, err);
	if (!rc && x->ops->open)
		rc = x->ops->open(x, &config.hooks, err);
	rc = gf_team_agree(&team, rc, err);
	if (rc)
		return rc;
	config.pool = &x->pools[0];
	return gf_engine_new(&config, &x->engine, err);
}

void gf_exchange_close(struct gf_exchange *x)
{
	size_t i;

	if (!x->ops)
		return;
	gf_engine_free(x->engine);
	if (x->ops->close)
		x->ops->close(x);
	for (i = 0; x->pools && i < x->env.depth; i++)
		gf_pool_release(&x->pools[i]);
	for (i = 0; x->plan_work && i < x->env.depth; i++)
		free(x->plan_work[i]);
	free(x->plan_work);
	free(x->scale);
	free(x->pools);
	memset(x, 0, sizeof(*x));
}

float *gf_exchange_begin(struct gf_exchange *x, size_t step)
{
	size_t slot = gf_engine_next_slot(x->engine);

	x->slot = slot;
	x->fresh = true;
	if (x->ops->begin)
		x->ops->begin(x, slot, step);
	else
		gf_engine_begin_work(x->engine, x->plan_work[slot],
				     x->nplan_work);
	return x->pools[slot].data;
}

/* --- gradients on a device ------------------------------------------------ */

int gf_exchange_may_take(struct gf_exchange *x, bool wait, bool *now,
			 struct gf_error *err)
{
	return gf_engine_earlier_ended(x->engine, wait, now, err);
}

/* A bad step changes nothing. */
static int commit_on(struct gf_exchange *x, struct gf_gpu_stream *s,
		     struct gf_error *err)
{
	const size_t slot = x->uncommitted - 1;

	if (!x->uncommitted)
		return 0;
	x->uncommitted = 0;
	if (x->ops->inspect(x, slot).found)
		return 0;
	return x->ops->commit(x, s, slot, err);
}

int gf_exchange_take(struct gf_exchange *x, struct gf_gpu_stream *s,
		     size_t tensor, struct gf_error *err)
{
	int rc;

	if (x->fresh) {
		rc = commit_on(x, s, err);
		if (rc)
			return rc;
		x->fresh = false;
		x->uncommitted = x->slot + 1;
	}
	return x->ops->take(x, s, tensor, err);
}

void gf_exchange_commit(struct gf_exchange *x, size_t slot)
{
	if (!x->rc && x->uncommitted == slot + 1)
		x->rc = commit_on(x, x->env.stream, &x->reason);
}

int gf_exchange_fetch(struct gf_exchange *x, struct gf_error *err)
{
	int rc = commit_on(x, x->env.stream, err);

	return rc ? rc : x->ops->fetch(x, err);
}

/* --- messages ------------------------------------------------------------- */

void gf_exchange_multiply(const struct gf_work *w, double by)
{
	float *data = w->data;
	size_t i;

	for (i = 0; i < w->count_elems; i++)
		data[i] *= (float)by;
}

int gf_exchange_wait(struct gf_exchange *x, size_t *slot, struct gf_error *err)
{
	int rc = gf_engine_wait(x->engine, err);

	if (!rc && x->rc) {
		*err = x->reason;
		rc = x->rc;
	}
	*slot = gf_engine_last_slot(x->engine);
	return rc;
}

int gf_exchange_wait_message(struct gf_exchange *x, size_t message,
			     bool gathered, struct gf_error *err)
{
	size_t i = message, k;

	for (k = x->env.plan->nmessages; gathered && k < x->nplan_work; k++)
		if (x->plan_work[0][k].after == message + 1)
			i = k;
	return gf_engine_wait_message(x->engine, i, err);
}

void gf_exchange_times(const struct gf_exchange *x,
		       struct gf_message_times *times)
{
	const struct gf_message_times *engine = gf_engine_times(x->engine);
	size_t n = x->env.plan->nmessages, i;

	if (x->ops->times) {
		x->ops->times(x, times);
		return;
	}
	memcpy(times, engine, n * sizeof(*times));
	/* a split message ends with its all-gather */
	for (i = n; i < x->nplan_work; i++)
		times[x->plan_work[0][i].after - 1].end_s = engine[i].end_s;
}

int gf_exchange_check_whole(const struct gf_plan *plan, struct gf_error *err)
{
	size_t i;

	for (i = 0; i < plan->nmessages; i++)
		if (plan->messages[i].half != GF_HALF_ALL)
			return gf_error_set(
				err, -ENOTSUP,
				"message %zu: selection %s wants half "
				"\"all\", got \"%s\"",
				i, gf_select_names[plan->selection.method],
				gf_half_names[plan->messages[i].half]);
	return 0;
}

struct gf_exchange_bad gf_exchange_find_bad(const struct gf_pool *pool,
					    const float *values, size_t first,
					    size_t count)
{
	struct gf_exchange_bad bad = {0};
	size_t at = gf_finite_prefix(values, count);

	if (at == count)
		return bad;
	bad.found = true;
	bad.tensor = gf_pool_tensor_at(pool, first + at);
	bad.element = first + at - pool->offsets[bad.tensor];
	return bad;
}
