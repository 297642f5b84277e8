/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

/* How often replicas are compared by default where an algorithm does not
 * promise the same bits everywhere. */
#define CHECK_STEPS 100
/* What suits the shipped models and data on a few ranks. */
#define DEFAULT_BATCH      16
#define DEFAULT_RATE       0.1
#define DEFAULT_RATE_BATCH 64

static bool uses_library(const struct gf_plan *plan)
{
	size_t i;

	for (i = 0; i < plan->nmessages; i++)
		if (strcmp(plan->messages[i].algorithm, "library") == 0)
			return true;
	return false;
}

void gf_train_complete(struct gf_train_config *k)
{
	double global;

	if (!k->batch)
		k->batch = k->plan->model->batch_per_rank;
	if (!k->batch)
		k->batch = DEFAULT_BATCH;
	global = (double)k->batch * k->comm->ranks;
	if (k->sgd.lr < 0)
		k->sgd.lr = gf_rate_scaled(DEFAULT_RATE, DEFAULT_RATE_BATCH,
					   global);
	else if (k->lr_batch > 0)
		k->sgd.lr = gf_rate_scaled(k->sgd.lr, k->lr_batch, global);
}

static int set_lengths(struct gf_trainer *t, struct gf_error *err)
{
	const struct gf_train_config *k = t->config;
	size_t samples = k->data->count[GF_PART_TRAIN];
	size_t global = (size_t)k->comm->ranks * k->batch;

	t->epoch_steps = samples / global;
	if (t->epoch_steps == 0)
		return gf_error_set(err, -EINVAL,
				    "want at least %zu training samples (%d "
				    "ranks, batch %zu), the data has %zu",
				    global, k->comm->ranks, k->batch, samples);
	t->total_steps = k->epochs * t->epoch_steps;
	t->rate = (struct gf_rate){
		.peak = k->sgd.lr,
		.shape = (enum gf_rate_shape)k->shape,
		.warmup_steps = (size_t)llround(k->warmup_epochs *
						(double)t->epoch_steps),
		.total_steps = t->total_steps,
	};
	/* the schedule is for all epochs, wherever this run stops */
	if (k->steps && k->steps < t->total_steps)
		t->total_steps = k->steps;
	t->checkpoint_every =
		k->checkpoint_every ? k->checkpoint_every : t->epoch_steps;
	t->check_every = k->check_every;
	if (k->check_every == SIZE_MAX)
		t->check_every = uses_library(k->plan) ? CHECK_STEPS : 0;
	t->id = (struct gf_run_identity){
		.model = k->model->name,
		.method = gf_method_name(k->plan),
		.batch = k->batch,
		.samples = samples,
		.seed = k->seed,
	};
	return 0;
}

static int open_compute(struct gf_trainer *t, struct gf_error *err)
{
	const struct gf_train_config *k = t->config;
	struct gf_net_config net = {
		.model = k->model,
		.backend = k->backend,
		.data = k->data,
		.batch = k->batch,
		.ranks = k->comm->ranks,
		.rank = k->comm->rank,
		.seed = k->seed,
	};
	size_t count = gf_model_param_count(k->model), nrunning;
	int rc;

	t->params = calloc(count + 1, sizeof(*t->params));
	if (!t->params)
		return gf_error_set(err, -ENOMEM,
				    "no memory for %zu parameters", count);
	net.params = t->params;
	rc = gf_compute_net(&net, &t->compute, err);
	if (rc)
		return rc;
	gf_compute_running(&t->compute, &nrunning);
	t->running = gf_xcalloc(nrunning + 1, sizeof(*t->running));
	gf_net_init_params(k->model, k->seed, t->params);
	return 0;
}

static int open_method(struct gf_trainer *t, const size_t *order,
		       struct gf_error *err)
{
	const struct gf_train_config *k = t->config;
	struct gf_shape *shapes =
		gf_xcalloc(k->model->nparams, sizeof(*shapes));
	struct gf_method_env env = {
		.comm = k->comm,
		.plan = k->plan,
		.params = t->params,
		.shapes = shapes,
		.epoch_steps = t->epoch_steps,
		.momentum = k->sgd.momentum,
		.skip_bad = k->skip_bad,
		.timeout_s = k->timeout_s,
	};
	size_t i;
	int rc;

	for (i = 0; i < k->model->nparams; i++)
		shapes[i] = k->model->params[order[i]].shape;
	rc = gf_method_open(&t->method, &env, err);
	t->team.engine = t->method.engine;
	if (!rc)
		gf_method_state(&t->method, &t->state);
	free(shapes);
	return rc;
}

/* Parameters under their own names, in generation order. */
static void list_params(struct gf_trainer *t, const size_t *order)
{
	const struct gf_model *m = t->config->model;
	float *at = t->params;
	size_t i;

	for (i = 0; i < m->nparams; i++) {
		const struct gf_param *p = &m->params[order[i]];

		gf_state_add(&t->state, GF_STATE_SHARED, gf_xstrdup(p->name),
			     &p->shape, at);
		at += gf_shape_elems(&p->shape);
	}
}

/* Batch norm: the mean over ranks under the names that other tools use, and
 * this rank's own, from which training goes on. */
static void list_running(struct gf_trainer *t)
{
	const struct gf_model *m = t->config->model;
	float *at = t->running;
	struct gf_shape flat = {1, {0}};
	float *own = gf_compute_running(&t->compute, &flat.dims[0]);
	size_t i;

	for (i = 0; i < m->nlayers; i++) {
		const struct gf_layer *l = &m->layers[i];
		struct gf_shape s = {1, {l->in.dims[0]}};

		if (l->type != GF_LAYER_BATCHNORM)
			continue;
		gf_state_add(&t->state, GF_STATE_SHARED,
			     gf_xasprintf("%s.running_mean", l->name), &s, at);
		gf_state_add(&t->state, GF_STATE_SHARED,
			     gf_xasprintf("%s.running_var", l->name), &s,
			     at + s.dims[0]);
		at += 2 * s.dims[0];
	}
	if (flat.dims[0])
		gf_state_add(&t->state, GF_STATE_OWN,
			     gf_xstrdup("train.running"), &flat, own);
}

static int resume_or_begin(struct gf_trainer *t, struct gf_error *err)
{
	const struct gf_train_config *k = t->config;
	size_t done = 0;
	int rc = 0;

	if (k->resume)
		rc = gf_snapshot_read(&t->team, k->checkpoint, &done, &t->id,
				      &t->state, err);
	else if (k->checkpoint)
		rc = gf_snapshot_claim(&t->team, k->checkpoint, err);
	t->result->first_step = done + 1;
	t->result->last_step = done;
	return rc;
}

int gf_trainer_open(struct gf_trainer *t, const struct gf_train_config *config,
		    struct gf_train_result *result, struct gf_error *err)
{
	size_t *order = gf_model_generation_order(config->model);
	size_t bytes = gf_model_param_count(config->model) * sizeof(float);
	int rc;

	memset(t, 0, sizeof(*t));
	t->config = config;
	t->result = result;
	t->team.comm = config->comm;
	gf_tally_init(&t->tally, config->comm->ranks,
		      config->batch * config->data->positions);
	rc = gf_method_check(config->plan, err);
	if (!rc)
		rc = set_lengths(t, err);
	if (!rc)
		rc = open_compute(t, err);
	rc = gf_team_agree(&t->team, rc, err);
	if (rc)
		goto out;
	list_params(t, order);
	list_running(t);
	gf_tally_state(&t->tally, &t->state);
	rc = open_method(t, order, err);
	/* mathematical functions differ between hosts in the last bit */
	if (!rc)
		rc = gf_team_bcast(&t->team, t->params, bytes, err);
	if (!rc)
		rc = resume_or_begin(t, err);
out:
	free(order);
	return rc;
}

void gf_trainer_close(struct gf_trainer *t)
{
	/* An engine whose ranks are lost cannot stop in good order, and its
	 * thread may yet write: the caller is about to end the process. */
	if (t->config->comm->broken)
		return;
	gf_method_close(&t->method);
	if (t->compute.ops)
		t->compute.ops->close(&t->compute);
	gf_state_release(&t->state);
	gf_tally_release(&t->tally);
	free(t->running);
	free(t->params);
}
