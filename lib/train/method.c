/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/method.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "train/method_parts.h"
#include "train/team.h"

int gf_method_check(const struct gf_plan *plan, struct gf_error *err)
{
	const struct gf_exchange_ops *ops = gf_exchange_find(plan);

	if (!ops)
		return gf_error_set(
			err, -ENOTSUP,
			"the plan wants selection \"%s\", which no training "
			"method here does",
			gf_select_names[plan->selection.method]);
	return ops->check ? ops->check(plan, err) : 0;
}

const char *gf_method_name(const struct gf_plan *plan)
{
	return gf_select_names[plan->selection.method];
}

static size_t depth(const struct gf_method *m)
{
	return m->exchange.env.depth;
}

static size_t slot_of(const struct gf_method *m, size_t index)
{
	return (index + m->shift) % depth(m);
}

static size_t pool_elems(const struct gf_method *m)
{
	return m->exchange.pools[0].count_elems;
}

static int open_flight(struct gf_method *m, struct gf_error *err)
{
	size_t n = (depth(m) - 1) * pool_elems(m);

	if (!m->env.params || !n)
		return 0;
	m->flight_bad = gf_xcalloc(depth(m), sizeof(*m->flight_bad));
	m->flight_scale = gf_xcalloc(depth(m), sizeof(*m->flight_scale));
	m->flight = calloc(n, sizeof(*m->flight));
	if (!m->flight)
		return gf_error_set(err, -ENOMEM,
				    "no memory for %zu gradients in flight of "
				    "%zu parameters",
				    depth(m) - 1, pool_elems(m));
	return 0;
}

static int host_open(struct gf_method *m, struct gf_error *err)
{
	const struct gf_method_env *env = &m->env;
	struct gf_exchange_env exchange = {
		.comm = env->comm,
		.plan = env->plan,
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
		rc = open_flight(m, err);
	gf_method_late_open(m);
	return gf_team_agree(&team, rc, err);
}

static float *host_begin(struct gf_method *m, size_t step)
{
	m->exchange.scale[slot_of(m, m->begun)] = m->scale.now;
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

	return m->exchange.ops->take(&m->exchange, s, tensor, err);
}

static void host_backward_end(struct gf_method *m)
{
	gf_engine_backward_end(m->engine);
}

int gf_method_refuse(const struct gf_method *m, size_t step,
		     struct gf_exchange_bad bad, struct gf_error *err)
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
		assert(slot == slot_of(m, m->arrived));
		m->arrived++;
		gf_exchange_times(&m->exchange, m->times);
	}
	return rc;
}

/* What is wrong with step `index`, which has come. */
static struct gf_exchange_bad bad_of(const struct gf_method *m, size_t index)
{
	struct gf_exchange *x = (struct gf_exchange *)&m->exchange;

	if (index < m->restored)
		return (struct gf_exchange_bad){.found = m->flight_bad[index] !=
							 0};
	return x->ops->inspect(x, slot_of(m, index));
}

/* A bad one is skipped if a smaller loss scale will do, or if asked for. */
static int inspect(struct gf_method *m, size_t step, struct gf_error *err)
{
	struct gf_exchange_bad bad = bad_of(m, m->applied);
	double scale = m->exchange.scale[slot_of(m, m->applied)];
	bool overflow = gf_loss_scale_note(&m->scale, scale, bad.found);

	if (bad.found && !overflow && !m->env.skip_bad)
		return gf_method_refuse(
			m, step - (m->begun - m->applied - 1), bad, err);
	m->skip = bad.found;
	m->skipped += bad.found;
	return 0;
}

static int host_exchange(struct gf_method *m, size_t step, struct gf_error *err)
{
	size_t stale =
		step <= m->env.plan->pipeline_warmup_steps ? 1 : depth(m);
	size_t i;
	int rc;

	if (m->late.used)
		return gf_method_late_exchange(m, err);
	m->skip = false;
	m->due = m->begun - m->applied >= stale;
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
	size_t slot = slot_of(m, m->applied);

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
		m->exchange.ops->apply(&m->exchange, slot, &m->updater, lr);
	else if (m->exchange.ops->drop)
		m->exchange.ops->drop(&m->exchange, slot);
}

static uint64_t host_sent_bytes(struct gf_method *m)
{
	uint64_t before = m->told_bytes;

	m->told_bytes = gf_engine_totals(m->engine).sent_bytes;
	return m->told_bytes - before;
}

static const struct gf_message_times *host_times(const struct gf_method *m)
{
	return m->times;
}

/* --- state ---------------------------------------------------------------- */

/* The same on all ranks: what is kept are sums. */
static void flight_state(struct gf_method *m, struct gf_state *s)
{
	const struct gf_model_profile *model = m->env.plan->model;
	/* scaled gradients come as means, whatever the number of ranks */
	enum gf_state_rule rule =
		m->env.scale.used ? GF_STATE_KEEP : GF_STATE_SUM;
	size_t age, i;

	gf_state_add_words(s, GF_STATE_SHARED, "pipeline.count", "U64",
			   &m->nflight, 1);
	gf_state_add_words(s, GF_STATE_SHARED, "pipeline.bad", "U64",
			   m->flight_bad, depth(m) - 1);
	gf_state_add_words(s, GF_STATE_SHARED, "pipeline.scale", "F64",
			   m->flight_scale, depth(m) - 1);
	for (age = 0; age + 1 < depth(m); age++)
		for (i = 0; i < model->ntensors; i++)
			gf_state_add(s, GF_STATE_SHARED,
				     gf_xasprintf("pipeline.%zu.%s", age,
						  model->tensors[i].name),
				     &m->env.shapes[i],
				     m->flight + age * pool_elems(m) +
					     m->updater.offsets[i])
				->rule = rule;
}

static void host_state(struct gf_method *m, struct gf_state *s)
{
	if (m->flight)
		flight_state(m, s);
	if (m->exchange.ops->state)
		m->exchange.ops->state(&m->exchange, s);
}

/* One of those that have come and wait, or nothing. */
static void keep(struct gf_method *m, size_t age)
{
	size_t n = pool_elems(m), index = m->applied + age;
	float *to = m->flight + age * n;

	if (age >= m->nflight) {
		memset(to, 0, n * sizeof(*to));
		m->flight_bad[age] = 0;
		m->flight_scale[age] = 0;
		return;
	}
	if (m->exchange.ops->keep)
		m->exchange.ops->keep(&m->exchange, slot_of(m, index), age, to);
	else
		memcpy(to, m->exchange.pools[slot_of(m, index)].data,
		       n * sizeof(*to));
	m->flight_bad[age] = bad_of(m, index).found;
	m->flight_scale[age] = m->exchange.scale[slot_of(m, index)];
}

/* What the last update left on a GPU. */
static int fetch(struct gf_method *m, struct gf_error *err)
{
	int rc;

	if (!m->env.selects_there)
		return 0;
	if (m->exchange.rc) {
		*err = m->exchange.reason;
		return m->exchange.rc;
	}
	rc = gf_update_fetch(&m->updater, err);
	return rc ? rc : m->exchange.ops->fetch(&m->exchange, err);
}

static int host_settle(struct gf_method *m, struct gf_error *err)
{
	size_t age;
	int rc = gf_method_take_rest(m, err);

	rc = rc ? rc : gf_method_await(m, m->begun, err);
	rc = rc ? rc : fetch(m, err);
	if (rc || !m->flight)
		return rc;
	m->nflight = m->begun - m->applied;
	assert(m->nflight < depth(m));
	for (age = 0; age + 1 < depth(m); age++)
		keep(m, age);
	return 0;
}

/* The next step that is begun will be in slot 0: those in flight end there. */
static int host_restore(struct gf_method *m, struct gf_error *err)
{
	size_t n = pool_elems(m), age;
	int rc;

	if (m->env.selects_there) {
		rc = gf_update_send(&m->updater, err);
		return rc ? rc : m->exchange.ops->send(&m->exchange, err);
	}
	if (!m->flight)
		return 0;
	if (m->nflight >= depth(m))
		return gf_error_set(err, -EINVAL,
				    "the checkpoint: want at most %zu "
				    "gradients in flight, got %" PRIu64,
				    depth(m) - 1, m->nflight);
	m->begun = m->arrived = m->restored = m->nflight;
	m->applied = 0;
	m->shift = depth(m) - m->nflight;
	for (age = 0; age < m->nflight; age++) {
		memcpy(m->exchange.pools[slot_of(m, age)].data,
		       m->flight + age * n, n * sizeof(*m->flight));
		if (m->exchange.ops->restore)
			m->exchange.ops->restore(&m->exchange, slot_of(m, age),
						 age);
		m->exchange.scale[slot_of(m, age)] = m->flight_scale[age];
	}
	return 0;
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
	free(m->flight);
	free(m->flight_bad);
	free(m->flight_scale);
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
	.settle = host_settle,
	.restore = host_restore,
	.close = host_close,
};

/* --- any -------------------------------------------------------------------
 */

int gf_method_open(struct gf_method *m, const struct gf_method_env *env,
		   struct gf_error *err)
{
	memset(m, 0, sizeof(*m));
	m->ops = env->nccl ? &gf_method_device : &gf_method_host;
	m->env = *env;
	m->scale = env->scale;
	m->times = gf_xcalloc(env->plan->nmessages + 1, sizeof(*m->times));
	return m->ops->open(m, err);
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
	}
	if (m->ops->state)
		m->ops->state(m, s);
}

struct gf_team gf_method_team(const struct gf_method *m)
{
	return (struct gf_team){.comm = m->env.comm,
				.engine = m->engine,
				.device = m->device,
				.workers = m->env.plan->ranks};
}

void gf_method_close(struct gf_method *m)
{
	if (!m->ops)
		return;
	m->ops->close(m);
	free(m->times);
	memset(m, 0, sizeof(*m));
}
