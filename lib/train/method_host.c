/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradients come together on the host: the pipeline of whole steps. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "train/method_parts.h"

static int host_open(struct gf_method *m, struct gf_error *err)
{
	const struct gf_method_env *env = &m->env;
	struct gf_exchange_env exchange = {
		.comm = env->comm,
		.plan = env->plan,
		.shapes = env->shapes,
		.depth = (size_t)env->plan->staleness,
		.epoch_steps = env->epoch_steps,
		.momentum = env->optim ? env->optim->momentum : 0,
		.timeout_s = env->timeout_s,
		.gpu = env->gpu,
		.scaled = env->scale.used,
		.device_grads = env->selects_there ? env->device_grads : NULL,
		.stream = env->stream,
	};
	struct gf_team team = {.comm = env->comm};
	int rc;

	rc = gf_exchange_open(&m->exchange, &exchange, err);
	if (rc)
		return rc;
	m->engine = team.engine = m->exchange.engine;
	m->updater = (struct gf_update){
		.params = env->params,
		.offsets = m->exchange.pools[0].offsets,
		.plan = env->plan,
		.shapes = env->shapes,
		.watch = env->watch,
	};
	rc = gf_update_open(&m->updater, env->optim, err);
	if (!rc && env->selects_there)
		rc = gf_update_on(&m->updater, env->gpu, env->stream,
				  env->device_params, err);
	if (!rc)
		rc = gf_method_flight_open(m, err);
	gf_method_late_open(m);
	return gf_team_agree(&team, rc, err);
}

static float *host_begin(struct gf_method *m, size_t step)
{
	m->exchange.select.scale[gf_method_slot(m, m->begun)] =
		gf_loss_scale_now(&m->scale);
	m->begun++;
	return gf_exchange_begin(&m->exchange, step);
}

static void host_ready(struct gf_method *m, size_t tensor)
{
	gf_engine_ready(m->engine, tensor);
}

int gf_method_take(void *method, struct gf_gpu_stream *s, size_t tensor,
		   struct gf_error *err)
{
	struct gf_method *m = method;

	return gf_exchange_take(&m->exchange, s, tensor, err);
}

int gf_method_may_take(void *method, bool wait, bool *now, struct gf_error *err)
{
	struct gf_method *m = method;

	return gf_exchange_may_take(&m->exchange, wait, now, err);
}

static void host_backward_end(struct gf_method *m)
{
	gf_engine_backward_end(m->engine);
}

int gf_method_refuse(const struct gf_method *m, size_t step,
		     struct gf_select_bad bad, struct gf_error *err)
{
	return gf_error_set(err, 1,
			    "the gradient of %s is infinite or not a number "
			    "in step %zu (element %zu): training has diverged",
			    m->env.plan->model->tensors[bad.tensor].name, step,
			    bad.element);
}

int gf_method_await(struct gf_method *m, size_t count, struct gf_error *err)
{
	size_t slot;
	int rc = 0;

	while (!rc && m->arrived < count) {
		rc = gf_exchange_wait(&m->exchange, &slot, err);
		if (rc)
			break;
		assert(slot == gf_method_slot(m, m->arrived));
		m->arrived++;
		gf_exchange_times(&m->exchange, m->times);
	}
	return rc;
}

struct gf_select_bad gf_method_bad(const struct gf_method *m, size_t index)
{
	struct gf_selector *s = (struct gf_selector *)&m->exchange.select;

	if (index < m->restored)
		return (struct gf_select_bad){.found = m->flight_bad[index] !=
						       0};
	return s->ops->inspect(s, gf_method_slot(m, index));
}

/* A bad one is skipped if a smaller loss scale will do, or if asked for. */
static int inspect(struct gf_method *m, size_t step, struct gf_error *err)
{
	struct gf_select_bad bad = gf_method_bad(m, m->applied);
	double scale = m->exchange.select.scale[gf_method_slot(m, m->applied)];
	bool overflow = gf_loss_scale_note(&m->scale, scale, bad.found);

	if (bad.found && !overflow && !m->env.skip_bad)
		return gf_method_refuse(m, step - (m->begun - m->applied - 1),
					bad, err);
	m->skip = bad.found;
	m->skipped += bad.found;
	return 0;
}

static int host_exchange(struct gf_method *m, size_t step, struct gf_error *err)
{
	size_t i;
	int rc;

	if (m->late.used)
		return gf_method_late_exchange(m, err);
	m->skip = false;
	m->due = gf_method_is_due(m, step);
	if (!m->due) {
		for (i = 0; i < m->env.plan->nmessages; i++)
			m->times[i] = (struct gf_message_times){NAN, NAN, NAN};
		return 0;
	}
	m->age = m->begun - m->applied - 1;
	rc = gf_method_await(m, m->applied + 1, err);
	return rc || !m->env.params ? rc : inspect(m, step, err);
}

static void host_update(struct gf_method *m, size_t step, double lr)
{
	size_t slot = gf_method_slot(m, m->applied);

	if (m->late.used) {
		gf_method_late_update(m, step, lr);
		return;
	}
	if (!m->due)
		return;
	m->applied++;
	if (!m->env.params)
		return;
	if (!m->skip)
		gf_exchange_apply(&m->exchange, slot, &m->updater, lr);
}

static uint64_t host_sent_bytes(struct gf_method *m)
{
	uint64_t before = m->told_bytes;

	m->told_bytes = gf_engine_waited_bytes(m->engine);
	return m->told_bytes - before;
}

static const struct gf_message_times *host_times(const struct gf_method *m)
{
	return m->times;
}

static void host_state(struct gf_method *m, struct gf_state *s)
{
	if (m->flight)
		gf_method_flight_state(m, s);
	if (m->exchange.select.ops->state)
		m->exchange.select.ops->state(&m->exchange.select, s);
}

/* What is under way is waited for: a rank that left would take the others'
 * partner away. */
static void host_close(struct gf_method *m)
{
	struct gf_error ignored;

	if (!m->env.comm->broken)
		(void)gf_method_await(m, m->begun, &ignored);
	gf_exchange_close(&m->exchange);
	gf_update_close(&m->updater);
	gf_method_late_close(m);
}

static struct gf_engine_totals host_totals(const struct gf_method *m)
{
	return gf_engine_totals(m->engine);
}

static uint64_t host_dense_bytes(const struct gf_method *m)
{
	return gf_engine_dense_bytes(m->engine);
}

static double host_handling_s(const struct gf_method *m)
{
	return gf_engine_handling_s(m->engine);
}

static void host_count_from(struct gf_method *m, size_t steps)
{
	gf_engine_count_from(m->engine, steps);
}

const struct gf_method_ops gf_method_host = {
	.name = "host",
	.open = host_open,
	.begin = host_begin,
	.ready = host_ready,
	.backward_end = host_backward_end,
	.exchange = host_exchange,
	.update = host_update,
	.sent_bytes = host_sent_bytes,
	.times = host_times,
	.totals = host_totals,
	.dense_bytes = host_dense_bytes,
	.handling_s = host_handling_s,
	.count_from = host_count_from,
	.state = host_state,
	.settle = gf_method_settle_host,
	.restore = gf_method_restore_host,
	.close = host_close,
};
