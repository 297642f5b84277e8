/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/methods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "rt/pool.h"
#include "train/team.h"

/*
 * Synchronous data-parallel SGD: every gradient of a step is summed over the
 * ranks as the plan's messages say, and applied, divided by the number of
 * ranks, before the next step begins (staleness K = 1).
 */
struct dense {
	struct gf_method_env env;
	struct gf_pool pool;
	float *velocity; /* as the pool; NULL in a replay */
};

static bool serves(const struct gf_plan *plan)
{
	return plan->selection.method == GF_SELECT_DENSE &&
	       plan->staleness == 1;
}

static int open_parts(struct dense *d, struct gf_method *m,
		      struct gf_error *err)
{
	const struct gf_plan *plan = d->env.plan;
	size_t n = plan->model->ntensors, i;
	size_t *counts = gf_xcalloc(n, sizeof(*counts));
	struct gf_engine_config config = {
		.comm = d->env.comm,
		.plan = plan,
		.pool = &d->pool,
		.timeout_s = d->env.timeout_s,
	};
	struct gf_team team = {d->env.comm, NULL};
	int rc;

	for (i = 0; i < n; i++)
		counts[i] = plan->model->tensors[i].count_elems;
	rc = gf_pool_init(&d->pool, d->env.comm, counts, n, err);
	free(counts);
	if (!rc && d->env.params) {
		d->velocity = calloc(d->pool.count_elems, sizeof(float));
		if (!d->velocity)
			rc = gf_error_set(err, -ENOMEM,
					  "no memory for the momentum of %zu "
					  "parameters",
					  d->pool.count_elems);
	}
	rc = gf_team_agree(&team, rc, err);
	if (rc)
		return rc;
	return gf_engine_new(&config, &m->engine, err);
}

static int open_dense(const struct gf_method_env *env, struct gf_method *m,
		      struct gf_error *err)
{
	struct dense *d = gf_xcalloc(1, sizeof(*d));

	d->env = *env;
	m->priv = d;
	return open_parts(d, m, err);
}

static float *begin(struct gf_method *m, size_t step)
{
	struct dense *d = m->priv;

	(void)step;
	gf_engine_begin(m->engine);
	return d->pool.data;
}

static void ready(struct gf_method *m, size_t tensor)
{
	gf_engine_ready(m->engine, tensor);
}

static void backward_end(struct gf_method *m)
{
	gf_engine_backward_end(m->engine);
}

static int exchange(struct gf_method *m, size_t step, struct gf_error *err)
{
	(void)step;
	return gf_engine_wait(m->engine, err);
}

static void update(struct gf_method *m, size_t step, const struct gf_sgd *sgd)
{
	struct dense *d = m->priv;
	float mean = 1.0f / (float)d->env.plan->ranks;

	(void)step;
	gf_sgd_update(sgd, mean, d->pool.data, d->env.params, d->velocity,
		      d->pool.count_elems);
}

static const struct gf_message_times *times(const struct gf_method *m)
{
	return gf_engine_times(m->engine);
}

static void state(struct gf_method *m, struct gf_state *s)
{
	struct dense *d = m->priv;
	const struct gf_model_profile *model = d->env.plan->model;
	size_t i;

	for (i = 0; i < model->ntensors; i++)
		gf_state_add(s, GF_STATE_SHARED,
			     gf_xasprintf("optim.%s.momentum",
					  model->tensors[i].name),
			     &d->env.shapes[i],
			     d->velocity + d->pool.offsets[i]);
}

static void close_dense(struct gf_method *m)
{
	struct dense *d = m->priv;

	if (!d)
		return;
	gf_engine_free(m->engine);
	gf_pool_release(&d->pool);
	free(d->velocity);
	free(d);
	memset(m, 0, sizeof(*m));
}

const struct gf_method_ops gf_method_dense = {
	.name = "dense",
	.description = "all gradients, applied in the step that made them",
	.serves = serves,
	.open = open_dense,
	.begin = begin,
	.ready = ready,
	.backward_end = backward_end,
	.exchange = exchange,
	.update = update,
	.times = times,
	.state = state,
	.close = close_dense,
};
