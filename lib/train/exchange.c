/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
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
	for (i = 0; i < x->env.depth && !rc; i++) {
		rc = gf_pool_init(&x->pools[i], x->env.comm, counts, n, err);
		if (!rc && x->env.gpu && !x->env.device_grads)
			rc = gf_pool_pin(&x->pools[i], x->env.gpu, err);
	}
	free(counts);
	return rc;
}

int gf_exchange_device_check(const struct gf_plan *plan,
			     const struct gf_training *training,
			     struct gf_error *err)
{
	const struct gf_optim_config optim = {
		.name = training->optimizer,
	};
	int rc = gf_select_check_on_gpu(plan, err);

	if (rc)
		return rc;
	return gf_select_find(plan)->pieces
		       ? gf_device_update_check_pieces(&optim, err)
		       : gf_device_update_check(&optim, err);
}

static int open_select(struct gf_exchange *x, struct gf_error *err)
{
	const struct gf_select_env env = {
		.plan = x->env.plan,
		.rank = x->env.comm->rank,
		.depth = x->env.depth,
		.pools = x->pools,
		.shapes = x->env.shapes,
		.epoch_steps = x->env.epoch_steps,
		.momentum = x->env.momentum,
		.scaled = x->env.scaled,
		.gpu = x->env.gpu,
		.device_grads = x->env.device_grads,
		.stream = x->env.stream,
	};

	return gf_select_open(&x->select, &env, err);
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
	rc = gf_select_check(env->plan, err);
	rc = rc ? rc : open_pools(x, err);
	rc = rc ? rc : open_select(x, err);
	rc = gf_team_agree(&team, rc, err);
	if (rc)
		return rc;
	config.pool = &x->pools[0];
	config.hooks = x->select.hooks;
	return gf_engine_new(&config, &x->engine, err);
}

void gf_exchange_close(struct gf_exchange *x)
{
	size_t i;

	gf_engine_free(x->engine);
	gf_select_close(&x->select);
	for (i = 0; x->pools && i < x->env.depth; i++)
		gf_pool_release(&x->pools[i]);
	free(x->pools);
	memset(x, 0, sizeof(*x));
}

float *gf_exchange_begin(struct gf_exchange *x, size_t step)
{
	size_t slot = gf_engine_next_slot(x->engine), n;
	const struct gf_work *list;

	x->slot = slot;
	x->fresh = true;
	gf_select_begin(&x->select, slot, step, &list, &n);
	gf_engine_begin_work(x->engine, list, n);
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
	if (x->select.ops->inspect(&x->select, slot).found)
		return 0;
	return x->select.ops->commit(&x->select, slot, s, err);
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
	return x->select.ops->ready(&x->select, x->slot, tensor, s, err);
}

int gf_exchange_fetch(struct gf_exchange *x, struct gf_error *err)
{
	int rc = commit_on(x, x->env.stream, err);

	return rc ? rc : x->select.ops->fetch(&x->select, err);
}

/* --- messages ------------------------------------------------------------- */

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

	for (k = x->env.plan->nmessages; gathered && k < x->select.nplan_work;
	     k++)
		if (x->select.plan_work[0][k].after == message + 1)
			i = k;
	return gf_engine_wait_message(x->engine, i, err);
}

void gf_exchange_times(const struct gf_exchange *x,
		       struct gf_message_times *times)
{
	gf_select_times(&x->select, gf_engine_last_slot(x->engine),
			gf_engine_times(x->engine),
			gf_engine_ready_times(x->engine), times);
}

/* On a device, the sums are laid where the gradients were: it takes up the step
 * before that. */
static int get_sums(struct gf_exchange *x, size_t slot,
		    struct gf_select_sums *sums, struct gf_error *err)
{
	int rc = 0;

	if (x->uncommitted == slot + 1)
		rc = commit_on(x, x->env.stream, err);
	return rc ? rc : gf_select_sums(&x->select, slot, sums, err);
}

void gf_exchange_apply(struct gf_exchange *x, size_t slot, struct gf_update *u,
		       double lr)
{
	struct gf_select_sums sums;

	if (x->rc)
		return;
	x->rc = get_sums(x, slot, &sums, &x->reason);
	if (x->rc)
		return;
	if (x->select.ops->pieces)
		gf_update_pieces(u, lr, sums.pieces, sums.npieces, sums.share);
	else
		gf_update_all(u, lr, sums.pieces->grad, sums.share);
	gf_select_adopt(&x->select, slot);
}
