/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/method.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "train/team.h"

int gf_method_check(const struct gf_plan *plan, struct gf_error *err)
{
	const struct gf_exchange_ops *ops = gf_exchange_find(plan);

	if (!ops || plan->staleness > 1)
		return gf_error_set(
			err, -ENOTSUP,
			"the plan wants selection \"%s\" with staleness %d, "
			"which no training method here does",
			gf_select_names[plan->selection.method],
			plan->staleness);
	return ops->check ? ops->check(plan, err) : 0;
}

const char *gf_method_name(const struct gf_plan *plan)
{
	return gf_select_names[plan->selection.method];
}

int gf_method_open(struct gf_method *m, const struct gf_method_env *env,
		   struct gf_error *err)
{
	struct gf_exchange_env exchange = {
		.comm = env->comm,
		.plan = env->plan,
		.depth = 1,
		.epoch_steps = env->epoch_steps,
		.momentum = env->optim ? env->optim->momentum : 0,
		.timeout_s = env->timeout_s,
	};
	struct gf_team team = {env->comm, NULL};
	int rc;

	memset(m, 0, sizeof(*m));
	m->env = *env;
	m->opened = true;
	m->times = gf_xcalloc(env->plan->nmessages + 1, sizeof(*m->times));
	rc = gf_exchange_open(&m->exchange, &exchange, err);
	if (rc)
		return rc;
	m->engine = team.engine = m->exchange.engine;
	m->updater = (struct gf_update){
		.params = env->params,
		.offsets = m->exchange.pools[0].offsets,
		.plan = env->plan,
		.shapes = env->shapes,
	};
	rc = gf_update_open(&m->updater, env->optim, m->exchange.ops->in_parts,
			    err);
	return gf_team_agree(&team, rc, err);
}

float *gf_method_begin(struct gf_method *m, size_t step)
{
	return gf_exchange_begin(&m->exchange, step);
}

void gf_method_ready(struct gf_method *m, size_t tensor)
{
	gf_engine_ready(m->engine, tensor);
}

void gf_method_backward_end(struct gf_method *m)
{
	gf_engine_backward_end(m->engine);
}

static int refuse(const struct gf_method *m, size_t step,
		  struct gf_exchange_bad bad, struct gf_error *err)
{
	return gf_error_set(err, 1,
			    "the gradient of %s is infinite or not a number "
			    "in step %zu (element %zu): training has diverged",
			    m->env.plan->model->tensors[bad.tensor].name, step,
			    bad.element);
}

int gf_method_exchange(struct gf_method *m, size_t step, struct gf_error *err)
{
	struct gf_exchange_bad bad;
	int rc = gf_exchange_wait(&m->exchange, &m->slot, err);

	m->skip = false;
	if (rc)
		return rc;
	gf_exchange_times(&m->exchange, m->times);
	if (!m->env.params)
		return 0;
	bad = m->exchange.ops->inspect(&m->exchange, m->slot);
	if (bad.found && !m->env.skip_bad)
		return refuse(m, step, bad, err);
	m->skip = bad.found;
	m->skipped += bad.found;
	return 0;
}

void gf_method_update(struct gf_method *m, size_t step, double lr)
{
	(void)step;
	if (!m->skip)
		m->exchange.ops->apply(&m->exchange, m->slot, &m->updater, lr);
	else if (m->exchange.ops->drop)
		m->exchange.ops->drop(&m->exchange, m->slot);
}

const struct gf_message_times *gf_method_times(const struct gf_method *m)
{
	return m->times;
}

void gf_method_state(struct gf_method *m, struct gf_state *s)
{
	gf_update_state(&m->updater, s);
	if (m->exchange.ops->state)
		m->exchange.ops->state(&m->exchange, s);
}

void gf_method_close(struct gf_method *m)
{
	if (!m->opened)
		return;
	gf_exchange_close(&m->exchange);
	gf_update_close(&m->updater);
	free(m->times);
	memset(m, 0, sizeof(*m));
}
