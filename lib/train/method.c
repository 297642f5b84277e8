/* SPDX-License-Identifier: BSD-3-Clause */
/* The base of a method: an exchange and an update rule. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "train/method_parts.h"

int gf_method_check(const struct gf_plan *plan, struct gf_error *err)
{
	return gf_select_check(plan, err);
}

int gf_method_check_gpu(const struct gf_plan *plan,
			const struct gf_training *training, bool by_host,
			struct gf_error *err)
{
	const struct gf_optim_config optim = {
		.name = training->optimizer,
	};
	int rc = gf_select_check_gpu(plan, by_host, err);

	if (rc)
		return rc;
	return gf_selection_has(&plan->selection, GF_SELECT_PIECES)
		       ? gf_device_update_check_pieces(&optim, err)
		       : gf_device_update_check(&optim, err);
}

const char *gf_method_name(const struct gf_plan *plan)
{
	return gf_selection_name(&plan->selection);
}

/* --- opening and closing -------------------------------------------------- */

static int open_update(struct gf_method *m, struct gf_error *err)
{
	const struct gf_method_env *k = &m->env;
	struct gf_optim_config optim = {0};
	int rc;

	if (k->optim)
		optim = *k->optim;
	if (gf_selection_has(&k->plan->selection, GF_SELECT_MOMENTUM))
		optim.momentum = 0;
	m->updater = (struct gf_update){
		.params = k->params,
		.offsets = m->exchange.pools[0].offsets,
		.plan = k->plan,
		.shapes = k->shapes,
		.watch = k->watch,
	};
	rc = gf_update_open(&m->updater, k->optim ? &optim : NULL, err);
	if (!rc && m->exchange.select.env.gpu)
		rc = gf_update_on(&m->updater, k->gpu, k->stream,
				  k->device_params, err);
	return rc;
}

static int open_ahead(struct gf_method *m, struct gf_error *err)
{
	struct gf_method_ahead *a;

	if (!m->env.nccl)
		return 0;
	a = m->ahead = gf_xcalloc(1, sizeof(*a));
	a->marks = (struct gf_device_marks){.gpu = m->env.gpu,
					    .stream = m->env.stream};
	return gf_device_marks_open(&a->marks, err);
}

int gf_method_open(struct gf_method *m, const struct gf_method_env *env,
		   struct gf_error *err)
{
	const struct gf_exchange_env exchange = {
		.comm = env->comm,
		.plan = env->plan,
		.shapes = env->shapes,
		.epoch_steps = env->epoch_steps,
		.momentum = env->optim ? env->optim->momentum : 0,
		.scaled = env->scale.used,
		.timeout_s = env->timeout_s,
		.threads = env->threads,
		.gpu = env->gpu,
		.nccl = env->nccl,
		.graphs = env->graphs,
		.selects_there = env->selects_there,
		.stream = env->stream,
		.device_grads = env->device_grads,
		.device_stride = env->device_stride,
	};
	struct gf_team team;
	int rc;

	memset(m, 0, sizeof(*m));
	m->env = *env;
	m->scale = env->scale;
	rc = gf_exchange_open(&m->exchange, &exchange, err);
	if (rc)
		return rc;
	team = gf_method_team(m);
	rc = open_update(m, err);
	rc = rc ? rc : open_ahead(m, err);
	rc = gf_team_agree(&team, rc, err);
	if (!rc)
		gf_method_late_open(m);
	return rc;
}

static void close_ahead(struct gf_method_ahead *a)
{
	if (!a)
		return;
	gf_device_marks_close(&a->marks);
	free(a);
}

void gf_method_close(struct gf_method *m)
{
	if (m->env.comm && m->env.comm->broken) {
		gf_engine_abandon(m->exchange.engine);
		return;
	}
	gf_exchange_close(&m->exchange);
	gf_update_close(&m->updater);
	close_ahead(m->ahead);
	gf_method_late_close(m);
	memset(m, 0, sizeof(*m));
}

void gf_method_state(struct gf_method *m, struct gf_state *s)
{
	gf_update_state(&m->updater, s);
	gf_state_add_words(s, GF_STATE_SHARED, "train.skipped", "U64",
			   &m->skipped, 1);
	if (m->scale.dynamic) {
		gf_state_add_words(s, GF_STATE_SHARED, "loss_scale.now", "F64",
				   &m->scale.now, 1);
		gf_state_add_words(s, GF_STATE_SHARED, "loss_scale.good", "U64",
				   &m->scale.good, 1);
		if (m->scale.half)
			gf_state_add_words(s, GF_STATE_SHARED,
					   "loss_scale.next", "F64",
					   &m->scale.next, 1);
	}
	gf_exchange_state(&m->exchange, s);
}

struct gf_team gf_method_team(const struct gf_method *m)
{
	return (struct gf_team){.comm = m->env.comm,
				.engine = m->exchange.engine,
				.workers = m->env.plan->ranks};
}

int gf_method_finish(struct gf_method *m, struct gf_error *err)
{
	int rc = gf_method_take_rest(m, err);

	if (m->ahead)
		gf_method_learn(m);
	return rc ? rc : gf_exchange_settle(&m->exchange, err);
}

int gf_method_settle(struct gf_method *m, struct gf_error *err)
{
	int rc = gf_method_finish(m, err);

	/* what the last update left on a GPU */
	return rc ? rc : gf_update_fetch(&m->updater, err);
}

/* The parameters are the net's to send. */
int gf_method_restore(struct gf_method *m, struct gf_error *err)
{
	int rc = gf_update_send(&m->updater, err);

	return rc ? rc : gf_exchange_restore(&m->exchange, err);
}
