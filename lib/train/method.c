/* SPDX-License-Identifier: BSD-3-Clause */
/* The base of a method: pools, a selection, an engine, an update rule. */
#include <errno.h>
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
	size_t i;
	int rc;

	if (!by_host && plan->servers)
		return gf_error_set(err, -ENOTSUP,
				    "servers go by the host: one would hold a "
				    "GPU for nothing but sums");
	for (i = 0; i < plan->nmessages && !by_host; i++)
		if (plan->messages[i].half != GF_HALF_ALL)
			return gf_error_set(err, -ENOTSUP,
					    "split messages go by the host: "
					    "forward on GPUs asks for no "
					    "tensor by itself");
	rc = gf_select_check_gpu(plan, by_host, err);
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

static int open_pools(struct gf_method *m, struct gf_error *err)
{
	const struct gf_method_env *k = &m->env;
	const struct gf_model_profile *model = k->plan->model;
	size_t n = model->ntensors, i;
	size_t *counts = gf_xcalloc(n, sizeof(*counts));
	int rc = 0;

	m->pools = gf_xcalloc(gf_method_depth(m), sizeof(*m->pools));
	for (i = 0; i < n; i++)
		counts[i] = model->tensors[i].count_elems;
	for (i = 0; i < gf_method_depth(m) && !rc; i++) {
		if (k->nccl)
			gf_pool_on(&m->pools[i],
				   k->device_grads + i * k->device_stride,
				   counts, n);
		else
			rc = gf_pool_init(&m->pools[i], k->comm, counts, n,
					  err);
		if (!rc && k->gpu && !k->nccl && !k->selects_there)
			rc = gf_pool_pin(&m->pools[i], k->gpu, err);
	}
	free(counts);
	return rc;
}

static int open_select(struct gf_method *m, struct gf_error *err)
{
	const struct gf_method_env *k = &m->env;

	return gf_select_open(
		&m->select,
		&(struct gf_select_env){
			.plan = k->plan,
			.rank = k->comm->rank,
			.depth = gf_method_depth(m),
			.pools = m->pools,
			.shapes = k->shapes,
			.epoch_steps = k->epoch_steps,
			.momentum = k->optim ? k->optim->momentum : 0,
			.scaled = k->scale.used,
			.gpu = k->nccl || k->selects_there ? k->gpu : NULL,
			.stream = k->stream,
			.by_host = k->selects_there,
			.device_grads = k->device_grads,
		},
		err);
}

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
		.offsets = m->pools[0].offsets,
		.plan = k->plan,
		.shapes = k->shapes,
		.watch = k->watch,
	};
	rc = gf_update_open(&m->updater, k->optim ? &optim : NULL, err);
	if (!rc && m->select.env.gpu)
		rc = gf_update_on(&m->updater, k->gpu, k->stream,
				  k->device_params, err);
	return rc;
}

static int open_ahead(struct gf_method *m, struct gf_error *err)
{
	struct gf_method_ahead *a;
	int rc;

	if (!m->env.nccl)
		return 0;
	a = m->ahead = gf_xcalloc(1, sizeof(*a));
	a->marks = (struct gf_device_marks){.gpu = m->env.gpu,
					    .stream = m->env.stream};
	rc = gf_device_marks_open(&a->marks, err);
	a->flags = (struct gf_device_flags){.gpu = m->env.gpu,
					    .count = gf_method_depth(m) + 1};
	return rc ? rc : gf_device_flags_open(&a->flags, err);
}

static int open_engine(struct gf_method *m, struct gf_error *err)
{
	const struct gf_method_env *k = &m->env;
	struct gf_engine_config config = {
		.comm = k->comm,
		.plan = k->plan,
		.pool = &m->pools[0],
		.timeout_s = k->timeout_s,
		.segment_bytes = k->plan->segment_bytes,
		.depth = gf_method_depth(m),
		.compute_threads = k->threads,
		.hooks = m->select.hooks,
	};

	if (m->ahead) {
		config.nccl = k->nccl;
		config.gpu = k->gpu;
		config.compute = k->stream;
		config.memory = k->device_grads;
		config.memory_bytes =
			((gf_method_depth(m) - 1) * k->device_stride +
			 gf_method_elems(m)) *
			sizeof(float);
	}
	return gf_engine_new(&config, &m->engine, err);
}

int gf_method_expect(struct gf_method *m, struct gf_error *err)
{
	size_t n;
	const struct gf_work *like = gf_select_expect(&m->select, &n);

	return gf_engine_expect(m->engine, like, n, err);
}

int gf_method_open(struct gf_method *m, const struct gf_method_env *env,
		   struct gf_error *err)
{
	struct gf_team team = {.comm = env->comm};
	int rc;

	memset(m, 0, sizeof(*m));
	m->env = *env;
	m->scale = env->scale;
	m->times = gf_xcalloc(env->plan->nmessages + 1, sizeof(*m->times));
	rc = open_pools(m, err);
	rc = rc ? rc : open_select(m, err);
	rc = rc ? rc : open_update(m, err);
	rc = rc ? rc : open_ahead(m, err);
	rc = rc ? rc : gf_method_flight_open(m, err);
	rc = gf_team_agree(&team, rc, err);
	rc = rc ? rc : open_engine(m, err);
	if (rc)
		return rc;
	gf_method_late_open(m);
	return gf_method_expect(m, err);
}

static void close_ahead(struct gf_method_ahead *a)
{
	if (!a)
		return;
	gf_device_marks_close(&a->marks);
	gf_device_flags_close(&a->flags);
	free(a);
}

void gf_method_close(struct gf_method *m)
{
	struct gf_error ignored;
	size_t i;

	if (!m->env.comm)
		return;
	if (!m->env.comm->broken && !m->ahead)
		(void)gf_method_await(m, m->begun, &ignored);
	gf_engine_free(m->engine);
	if (m->ahead)
		(void)m->env.gpu->ops->stream_sync(m->env.gpu, m->env.stream,
						   &ignored);
	gf_select_close(&m->select);
	gf_update_close(&m->updater);
	close_ahead(m->ahead);
	for (i = 0; m->pools && i < gf_method_depth(m); i++)
		gf_pool_release(&m->pools[i]);
	free(m->pools);
	gf_method_late_close(m);
	gf_method_flight_close(m);
	free(m->times);
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
	if (m->flight)
		gf_method_flight_state(m, s);
	gf_select_state(&m->select, s);
}

struct gf_team gf_method_team(const struct gf_method *m)
{
	return (struct gf_team){.comm = m->env.comm,
				.engine = m->engine,
				.workers = m->env.plan->ranks};
}
