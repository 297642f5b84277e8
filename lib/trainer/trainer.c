/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/trainer.h"

#include <stdbool.h>
#include <string.h>

#include "base/heap.h"
#include "transport/pages.h"
#include "documents/plan_brief.h"
#include "trainer/choose_ways.h"
#include "trainer/options.h"
#include "checkpoints/run/snapshot.h"

/* The name of the scaling in use, from gf_scaling_names. A plan in f16 without a scale has a scale
 * of 1, and sums that are means. */
static const char *scaling_name(const struct gf_loss_scale *s)
{
	return gf_scaling_names[s->dynamic ? GF_SCALING_DYNAMIC
				: s->used  ? GF_SCALING_STATIC
					   : GF_SCALING_NONE];
}

/* The most gradients of one piece of a captured pass, about: 4 MiB. */
#define CUT_ELEMS ((size_t)1 << 20)

static const struct gf_snapshot_words words = {
	.samples = "training samples",
	.other_run = "--resume goes on from the last of them, another folder starts anew",
	.other_ranks = "--resume=any goes on with others",
};

static void set_identity(struct gf_trainer *t)
{
	const struct gf_train_config *k = t->config;
	const struct gf_training *training = &k->training;
	const struct gf_plan *plan = k->plan;

	t->id = (struct gf_run_identity){
		.words = &words,
		.model = k->model->name,
		.method = gf_selection_name(&plan->selection),
		.optimizer = training->optimizer,
		.batch = training->batch,
		.accumulate = training->accumulate,
		.staleness = (size_t)plan->staleness,
		.servers = (size_t)plan->servers,
		.pipeline_warmup = plan->pipeline_warmup_steps,
		.selection = &plan->selection,
		.codecs = t->codecs,
		.period = t->period,
		.loss_scale = scaling_name(&t->scale),
		.samples = k->data->count[GF_PART_TRAIN],
		.seed = training->seed,
		.training = t->training,
		.ways = t->ways,
	};
}

/* The cuts of captured passes: after each message's last gradient, so that the message can start
 * then, and often enough for copies to the host to flow. */
static bool *cuts_of(const struct gf_plan *plan, size_t nparams)
{
	const struct gf_model_profile *model = plan->model;
	bool *cut = gf_xcalloc(nparams + 1, sizeof(*cut));
	size_t made = 0, i;

	for (i = 0; i < plan->nmessages; i++)
		cut[plan->messages[i].last] = true;
	for (i = 0; i < model->ntensors; i++) {
		made += model->tensors[i].count_elems;
		cut[i] = cut[i] || made >= CUT_ELEMS;
		if (cut[i])
			made = 0;
	}
	return cut;
}

static int open_compute(struct gf_trainer *t, struct gf_error *err)
{
	const struct gf_train_config *k = t->config;
	struct gf_train_net_config net = {
		.model = k->model,
		.backend = k->backend,
		.data = k->data,
		.batch = k->training.batch,
		.accumulate = k->training.accumulate,
		.test_samples = k->test_samples,
		.ranks = k->plan->ranks,
		.rank = k->comm->rank,
		.seed = k->training.seed,
		.gpu = k->place.gpu,
		.stream = k->place.stream,
		.timeout_s = k->timeout_s,
		.stays = k->place.nccl != NULL,
		.pools = k->place.nccl ? (size_t)k->plan->staleness : 1,
		.threads = k->threads,
		.loaders = k->loaders,
		.precision = k->precision,
		.in_place = gf_shard_has(&k->plan->shard, GF_SHARD_PARAMETERS),
		.half = k->half,
	};
	const bool sums = k->training.accumulate > 1 && !k->place.gpu;
	size_t count = gf_model_param_count(k->model), nrunning;
	void *params;
	GF_FREED bool *cut = NULL;
	int rc = gf_augment_parse(k->training.augment, &net.augment, err);

	rc = rc ?: gf_augment_check(&net.augment, k->data, err);
	if (rc)
		return rc;

	if (gf_pages_alloc(count * sizeof(*t->params), &params, NULL))
		params = NULL;
	t->params = params;
	if (t->params && sums)
		t->stepper.sum = calloc(count + 1, sizeof(*t->stepper.sum));
	if (!t->params || (sums && !t->stepper.sum))
		return gf_error_set(err, -ENOMEM, "no memory for %zu parameters", count);
	net.params = t->params;
	net.cut = cut = k->place.graphs ? cuts_of(k->plan, k->model->nparams) : NULL;
	rc = gf_compute_net(&net, &t->compute, err);
	if (rc)
		return rc;
	gf_compute_running(&t->compute, &nrunning);
	t->running = gf_xcalloc(nrunning + 1, sizeof(*t->running));
	return 0;
}

/* Of the method: into s; with a period as every rank's own. */
static void add_method_state(struct gf_groups *g, struct gf_state *s)
{
	if (!g->outer) {
		gf_method_state(g->method, s);
		return;
	}
	gf_method_state(g->method, &g->common);
	for (size_t i = 0; i < g->common.nitems; i++)
		gf_state_add_own(s, &g->common.items[i]);
}

static int open_method(struct gf_trainer *t, const size_t *order, struct gf_error *err)
{
	const struct gf_train_config *k = t->config;
	GF_FREED struct gf_shape *shapes = gf_xcalloc(k->model->nparams, sizeof(*shapes));
	struct gf_method_env env = {
		.comm = gf_groups_comm(k),
		.plan = gf_groups_plan(&t->groups, k),
		.params = t->params,
		.shapes = shapes,
		.epoch_steps = t->epoch_steps,
		.scale = t->scale,
		.skip_bad = k->skip_bad,
		.asks = !k->place.gpu,
		.accumulate = k->training.accumulate,
		.watch = gf_compute_watch(&t->compute),
		.place = k->place,
		.optim = &t->optim,
		.timeout_s = k->timeout_s,
		.threads = k->place.gpu ? 1 : k->threads,
	};
	const struct gf_train_arrays there = gf_compute_arrays(&t->compute);
	struct gf_place *at = &env.place;
	int rc;

	at->params = there.params;
	at->grads = there.grads;
	at->stride = there.stride;
	for (size_t i = 0; i < k->model->nparams; i++)
		shapes[i] = k->model->params[order[i]].shape;
	rc = gf_method_open(&t->method, &env, err);
	rc = rc ?: gf_method_check_model(t->method, k->model, order, err);
	t->stepper.method = t->groups.method = t->method;
	t->team = gf_groups_team(&t->groups, k);
	rc = gf_groups_agree(&t->groups, k, rc, err);
	if (!rc)
		add_method_state(&t->groups, &t->state);
	if (!rc)
		gf_method_shard_state(t->method, &t->state);
	return rc;
}

static void set_stepper(struct gf_trainer *t)
{
	const struct gf_model_profile *model = t->config->plan->model;

	t->counts = gf_xcalloc(model->ntensors + 1, sizeof(*t->counts));
	for (size_t i = 0; i < model->ntensors; i++)
		t->counts[i] = model->tensors[i].count_elems;
	t->stepper = (struct gf_stepper){
		.compute = &t->compute,
		.timeline = &t->result->timeline,
		.groups = &t->groups,
		.accumulate = t->config->training.accumulate,
		.counts = t->counts,
		.statistics = t->config->statistics ? gf_statistics_new(model) : NULL,
	};
}

/* Parameters under their own names, in generation order. */
static void list_params(struct gf_trainer *t, struct gf_state *s, const size_t *order,
			const char *prefix, float *at)
{
	const struct gf_model *m = t->config->model;

	for (size_t i = 0; at && i < m->nparams; i++) {
		const struct gf_param *p = &m->params[order[i]];

		gf_state_add(s, GF_STATE_SHARED, gf_xasprintf("%s%s", prefix, p->name), &p->shape,
			     at);
		at += gf_shape_elems(&p->shape);
	}
}

/* The outer parameters, under the names of parameters, and what leads on from them; a group's own
 * beside them. Before the method's state. */
static int open_groups(struct gf_trainer *t, const size_t *order, struct gf_error *err)
{
	int rc = gf_groups_open(&t->groups, t->config, t->params, &t->compute, err);

	if (rc || !t->groups.outer) {
		list_params(t, &t->state, order, "", t->params);
		return rc;
	}
	t->team.exchange = gf_outer_exchange(t->groups.outer);
	list_params(t, &t->state, order, "", gf_outer_params(t->groups.outer));
	gf_outer_state(t->groups.outer, &t->state);
	list_params(t, &t->groups.common, order, "group.", t->params);
	return 0;
}

/* Batch norm: the mean over ranks under the names that other tools use, and this rank's own, from
 * which training goes on. */
static void list_running(struct gf_trainer *t)
{
	const struct gf_model *m = t->config->model;
	float *at = t->running;
	struct gf_shape flat = {1, {0}};
	float *own = gf_compute_running(&t->compute, &flat.dims[0]);

	for (size_t i = 0; i < m->nlayers; i++) {
		const struct gf_layer *l = &m->layers[i];
		struct gf_shape s = {1, {l->in.dims[0]}};

		if (l->type != GF_LAYER_BATCHNORM)
			continue;
		gf_state_add(&t->state, GF_STATE_SHARED, gf_xasprintf("%s.running_mean", l->name),
			     &s, at);
		gf_state_add(&t->state, GF_STATE_SHARED, gf_xasprintf("%s.running_var", l->name),
			     &s, at + s.dims[0]);
		at += 2 * s.dims[0];
	}
	if (flat.dims[0])
		gf_state_add(&t->state, GF_STATE_OWN, gf_xstrdup("train.running"), &flat, own)
			->rule = GF_STATE_MEAN;
}

static void tell_done(const struct gf_train_config *k, size_t done, size_t total)
{
	GF_FREED char *text = NULL;

	if (k->comm->rank || !k->watch.note || done < total)
		return;
	text = gf_xasprintf(
		"%s: nothing is left to train: it was made after step %zu, and the run has %zu",
		k->checkpoint, done, total);
	k->watch.note(k->watch.ctx, text);
}

/* The step to go on from, which other ranks counted in other batches. */
static int go_on(struct gf_trainer *t, size_t *done, struct gf_error *err)
{
	const struct gf_train_config *k = t->config;
	struct gf_snapshot_source from = {.reshard = k->resume == GF_RESUME_ANY};
	size_t global = gf_train_global_batch(k);
	int rc = gf_snapshot_read(&t->team, k->folder, &from, &t->id, &t->state, err);

	if (!rc)
		*done = !from.resharded ? from.step
					: gf_reshard_steps(from.step, t->id.samples,
							   global / (size_t)k->plan->ranks *
								   (size_t)from.computed,
							   global);
	rc = rc ?: gf_method_restore(t->method, *done, err);
	rc = gf_team_agree(&t->team, rc, err);
	if (rc)
		return rc;
	t->resharded = from.resharded;
	tell_done(k, *done, t->total_steps);
	return 0;
}

int gf_train_take_folder(struct gf_train_config *k, struct gf_error *err)
{
	const struct gf_folder_wish wish = {
		.dir = k->checkpoint,
		.job = k->job,
		.resume = k->resume != GF_RESUME_NO,
		.other_run = words.other_run,
		.note = k->watch.note,
		.ctx = k->watch.ctx,
	};
	struct gf_team team = {.comm = k->comm};
	int rc;

	if (!k->checkpoint)
		return 0;
	k->folder = gf_xcalloc(1, sizeof(*k->folder));
	rc = gf_folder_claim(&team, &wish, k->folder, err);
	if (!rc && k->resume)
		rc = gf_folder_find(&team, &wish, k->folder, err);
	return rc;
}

void gf_train_leave_folder(struct gf_train_config *k)
{
	if (!k->folder)
		return;
	gf_folder_release(k->folder);
	free(k->folder);
	k->folder = NULL;
}

/* The epoch's sums go into checkpoints. */
static void add_tally(struct gf_tally *t, struct gf_state *s)
{
	gf_state_add_words(s, GF_STATE_SHARED, "train.epoch_loss", "F64", &t->epoch_loss, 1)->rule =
		GF_STATE_RESTART;
	gf_state_add_words(s, GF_STATE_SHARED, "train.epoch_correct", "U64", &t->epoch_correct, 1)
		->rule = GF_STATE_RESTART;
	gf_state_add_words(s, GF_STATE_SHARED, "train.epoch_steps", "U64", &t->epoch_steps, 1)
		->rule = GF_STATE_RESTART;
}

int gf_trainer_open(struct gf_trainer *t, const struct gf_train_config *config,
		    struct gf_train_result *result, struct gf_error *err)
{
	GF_FREED size_t *order = gf_model_generation_order(config->model);
	size_t bytes = gf_model_param_count(config->model) * sizeof(float);
	const bool sharded = gf_shard_is_used(&config->plan->shard);
	size_t done = 0;
	int rc;

	memset(t, 0, sizeof(*t));
	t->config = config;
	t->result = result;
	t->team.comm = config->comm;
	t->training = gf_train_document(&config->training);
	t->codecs = gf_plan_codecs_text(config->plan);
	t->ways = gf_train_ways(config->plan);
	t->period = gf_period_text(&config->plan->period);
	t->team.workers = config->plan->ranks;
	/* servers come after the ranks that compute, and tell what they have sent */
	t->tally.ranks = config->plan->ranks;
	t->tally.servers = config->plan->servers;
	t->tally.batch = config->training.batch * config->training.accumulate *
			 gf_dataset_labels(config->data);
	t->tally.all =
		gf_xcalloc((size_t)(t->tally.ranks + t->tally.servers), sizeof(*t->tally.all));
	t->optim = gf_train_optim(&config->training);
	set_stepper(t);
	rc = gf_exchange_check_plan(gf_groups_plan(&t->groups, config), false, err);
	if (!rc && (config->place.nccl || (config->place.gpu && sharded)))
		rc = gf_method_check_gpu(config->plan, &config->training, err);
	if (!rc && config->place.gpu && !config->place.nccl && sharded)
		rc = gf_error_set(err, -ENOTSUP,
				  "shards on GPUs: want NCCL between them, or --device cpu");
	if (!rc && config->statistics && (config->place.gpu || sharded))
		rc = gf_error_set(
			err, -ENOTSUP,
			"--statistics: want gradients that ranks have whole, on processors, "
			"got %s: %s",
			config->place.gpu ? "a GPU" : "shards",
			config->place.gpu
				? "--device cpu"
				: "a plan of the same model without --shard knows them, too");
	if (!rc)
		rc = gf_loss_scale_init(&t->scale, &config->training, config->plan, config->half,
					err);
	rc = rc ?: gf_trainer_set_lengths(t, err);
	rc = rc ?: open_compute(t, err);
	rc = gf_team_agree(&t->team, rc, err);
	if (rc)
		goto out;
	set_identity(t);
	rc = open_groups(t, order, err);
	list_running(t);
	add_tally(&t->tally, &t->state);
	rc = rc ?: open_method(t, order, err);
	rc = rc ?: gf_state_check_names(&t->state, err);
	/* after other memory: shards let go of others' parts once they are there */
	if (!rc)
		gf_net_init_params(config->model, config->training.seed, t->params);
	/* mathematical functions differ between hosts in the last bit */
	rc = rc ?: gf_team_bcast(&t->team, t->params, bytes, err);
	if (!rc && t->groups.outer)
		gf_outer_begin(t->groups.outer);
	if (!rc) {
		rc = config->resume ? go_on(t, &done, err) : 0;
		result->first_step = done + 1;
		result->last_step = done;
	}
	if (!rc)
		gf_method_took(t->method);
	rc = rc ?: gf_team_agree(&t->team, gf_compute_send(&t->compute, err), err);
out:
	return rc;
}

void gf_trainer_close(struct gf_trainer *t)
{
	gf_groups_lost(t->config);
	gf_method_close(t->method);
	gf_groups_close(&t->groups);
	/* The transport may yet write: the caller is about to end the process. Before that it
	 * closes the data. */
	if (t->config->comm->broken && t->config->comm->ranks > 1) {
		if (t->compute.ops && t->compute.ops->abandon)
			t->compute.ops->abandon(&t->compute);
		return;
	}
	if (t->compute.ops)
		t->compute.ops->close(&t->compute);
	gf_state_release(&t->state);
	free(t->tally.all);
	free(t->running);
	gf_pages_free(t->params);
	free(t->stepper.sum);
	gf_statistics_free(t->stepper.statistics);
	free(t->counts);
	free(t->drops);
	free(t->training);
	free(t->codecs);
	free(t->ways);
	free(t->period);
}
