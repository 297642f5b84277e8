/* SPDX-License-Identifier: BSD-3-Clause */
#include "gradflow.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "comm/pages.h"
#include "doc/stream.h"
#include "embed/job.h"
#include "train/method.h"
#include "train/scale.h"
#include "train/train.h"

#define API __attribute__((visibility("default")))

struct gradflow {
	struct gf_job job;
	struct gf_training training;
	struct gf_optim_config optim;
	struct gf_loss_scale scale; /* as it begins */
	float *params;
	struct gf_method method;
	char *said; /* the training, for checkpoints */
	uint64_t sent_bytes;
	bool begun;
};

static _Thread_local struct gf_error last;

struct gf_error *gf_embed_error(void)
{
	return &last;
}

API const char *gradflow_error(void)
{
	return last.text;
}

API const char *gradflow_version(void)
{
	return GF_VERSION;
}

/* --- open ---------------------------------------------------------------- */

/* What the ranks would else find out in the middle of a step. */
static int same_options(struct gradflow *g, const struct gradflow_options *o)
{
	char *training = gf_training_write(&g->training);
	char *numbers = gf_xasprintf("epoch_steps %zu, timeout_s %g",
				     o->epoch_steps, o->timeout_s);
	const struct gf_said said[] = {
		{"call", "gradflow_open"}, {"training", training},
		{"plan", o->plan},         {"options", numbers},
		{"ways", o->ways},
	};
	int rc = gf_job_same(g->job.comm, said, GF_ARRAY_LENGTH(said), &last);

	free(training);
	free(numbers);
	return rc;
}

static int read_training(struct gradflow *g, const char *text)
{
	struct gf_documents d = {0};
	int rc = 0;

	gf_training_init(&g->training);
	if (text)
		rc = gf_documents_add_text(&d, text, strlen(text), "training",
					   &last);
	if (!rc && text && !d.training)
		rc = gf_error_set(&last, -EINVAL,
				  "training: want a gf-training document, "
				  "found none");
	if (!rc && text)
		gf_training_copy(&g->training, d.training);
	gf_documents_release(&d);
	/* what gf-train takes suits its own models */
	if (!rc)
		rc = gf_train_complete_plain(&g->training, &last);
	return rc;
}

static struct gradflow *trainer_of(const struct gf_job *job)
{
	return (struct gradflow *)job;
}

static void list_state(struct gradflow *g)
{
	const struct gf_job *j = &g->job;
	size_t i;

	for (i = 0; i < j->ntensors; i++)
		gf_state_add(&g->job.state, GF_STATE_SHARED,
			     gf_xstrdup(j->plan.model->tensors[i].name),
			     &j->shapes[i], g->params + j->offset[i]);
	gf_method_state(&g->method, &g->job.state);
}

static int start(struct gf_job *job, struct gf_error *err)
{
	struct gradflow *g = trainer_of(job);
	struct gf_method_env env = {
		.comm = job->comm,
		.plan = &job->plan,
		.params = g->params,
		.shapes = job->shapes,
		.epoch_steps = job->epoch_steps,
		.optim = &g->optim,
		.scale = g->scale,
		.timeout_s = job->timeout_s,
		.threads = 1, /* the caller's, at least */
	};
	int rc = gf_method_open(&g->method, &env, err);

	job->exchange = &g->method.exchange;
	if (!rc)
		list_state(g);
	return rc;
}

static void stop(struct gf_job *job)
{
	gf_method_close(&trainer_of(job)->method);
	gf_state_release(&job->state);
}

static int settle(struct gf_job *job, struct gf_error *err)
{
	return gf_method_settle(&trainer_of(job)->method, err);
}

static int restore(struct gf_job *job, struct gf_error *err)
{
	return gf_method_restore(&trainer_of(job)->method, err);
}

static void identify(const struct gf_job *job, struct gf_run_identity *id)
{
	const struct gradflow *g = trainer_of(job);

	id->optimizer = g->training.optimizer;
	id->loss_scale = gf_loss_scale_name(&g->method.scale);
	id->training = g->said;
}

static const struct gf_job_ops trainer = {
	.words = {.samples = "epoch_steps",
		  .other_run = "gradflow_load goes on from the last of them, "
			       "another folder starts anew"},
	.start = start,
	.stop = stop,
	.settle = settle,
	.restore = restore,
	.identify = identify,
};

static int start_job(struct gradflow *g)
{
	const size_t count = g->job.offset[g->job.ntensors];
	void *params;
	int rc = gf_method_check(&g->job.plan, &last);

	g->optim = gf_train_optim(&g->training);
	if (!rc)
		rc = gf_loss_scale_init(&g->scale, &g->training, &g->job.plan,
					false, &last);
	if (!rc && gf_pages_alloc(count * sizeof(float), &params, NULL))
		rc = gf_error_set(&last, -ENOMEM,
				  "no memory for %zu parameters", count);
	else if (!rc)
		g->params = params;
	rc = gf_comm_agree(g->job.comm, rc, &last);
	if (rc)
		return rc;
	g->said = gf_training_write(&g->training);
	return gf_job_start(&g->job, &last);
}

static int open_all(struct gradflow *g, const struct gradflow_tensor *given,
		    const struct gradflow_options *options)
{
	struct gradflow_tensor *tensors = NULL;
	struct gradflow_options o = {0};
	struct gf_job_plan plan;
	int rc = gf_embed_take_options(options, &o, &last);

	g->job.epoch_steps = o.epoch_steps;
	g->job.timeout_s = o.timeout_s;
	rc = rc ? rc
		: gf_embed_take_tensors(given, g->job.ntensors, o.tensor_size,
					&tensors, &last);
	rc = rc ? rc : gf_embed_check(tensors, g->job.ntensors, &last);
	rc = rc ? rc : read_training(g, o.training);
	/* one rank's mistake is every rank's failure, told alike */
	rc = gf_comm_agree(g->job.comm, rc, &last);
	rc = rc ? rc : same_options(g, &o);
	if (!rc) {
		plan = (struct gf_job_plan){.file = o.plan, .ways = o.ways};
		rc = gf_job_bind(&g->job, tensors, &plan, &last);
	}
	free(tensors);
	return rc ? rc : start_job(g);
}

API int gradflow_open(const struct gradflow_tensor *tensors, size_t ntensors,
		      const struct gradflow_options *options,
		      struct gradflow **out)
{
	struct gradflow *g;
	struct gf_comm *comm;
	int rc;

	if (!out)
		return gf_error_set(&last, -EINVAL,
				    "gradflow_open: want a place for the "
				    "handle, got NULL");
	*out = NULL;
	rc = gf_comm_open(NULL, &comm, &last);
	if (rc)
		return rc;
	g = gf_xcalloc(1, sizeof(*g));
	gf_training_init(&g->training);
	gf_job_init(&g->job, &trainer, comm, ntensors);
	rc = open_all(g, tensors, options);
	if (rc) {
		gradflow_close(g);
		return rc;
	}
	*out = g;
	return 0;
}

API void gradflow_close(struct gradflow *g)
{
	if (!gf_job_is_here(g ? &g->job : NULL))
		return;
	/* Ranks are lost, and the engine's thread may yet write. */
	if (g->job.comm->broken)
		return;
	/* what has left is waited for: the other ranks have part in it */
	if (g->begun)
		gf_method_backward_end(&g->method);
	gf_job_close(&g->job);
	gf_training_release(&g->training);
	gf_pages_free(g->params);
	free(g->said);
	free(g);
}

/* --- what is there ------------------------------------------------------- */

API int gradflow_rank(const struct gradflow *g)
{
	return g ? g->job.comm->rank : -EINVAL;
}

API int gradflow_ranks(const struct gradflow *g)
{
	return g ? g->job.comm->ranks : -EINVAL;
}

API int gradflow_local_rank(const struct gradflow *g)
{
	return g ? g->job.comm->local_rank : -EINVAL;
}

API const char *gradflow_ways(const struct gradflow *g)
{
	return g ? g->job.ways : NULL;
}

API size_t gradflow_place(const struct gradflow *g, size_t tensor)
{
	return g && tensor < g->job.ntensors
		       ? g->job.offset[g->job.order[tensor]]
		       : SIZE_MAX;
}

API float *gradflow_parameters(struct gradflow *g)
{
	return g ? g->params : NULL;
}

API size_t gradflow_count(const struct gradflow *g)
{
	return g ? g->job.offset[g->job.ntensors] : 0;
}

API uint64_t gradflow_steps(const struct gradflow *g)
{
	return g ? g->job.steps : 0;
}

API uint64_t gradflow_sent_bytes(struct gradflow *g)
{
	if (!g)
		return 0;
	if (!g->job.failed)
		g->sent_bytes += gf_method_sent_bytes(&g->method);
	return g->sent_bytes;
}

/* --- steps --------------------------------------------------------------- */

/* Begins a call, in a step or between steps; `leave` ends it. */
static int enter(struct gradflow *g, const char *call, bool within)
{
	int rc = gf_job_reach(g ? &g->job : NULL, call, &last);

	if (rc)
		return rc;
	if (gf_job_failed(&g->job, &last))
		rc = g->job.failed;
	else if (within && !g->begun)
		rc = gf_error_set(&last, -EINVAL,
				  "%s, step %zu: want gradflow_begin first",
				  call, (size_t)g->job.steps + 1);
	else if (!within && g->begun)
		rc = gf_error_set(&last, -EINVAL,
				  "%s: want it between steps, got it within "
				  "step %zu",
				  call, (size_t)g->job.steps + 1);
	return rc ? gf_job_leave(&g->job, rc) : 0;
}

static int leave(struct gradflow *g, int rc)
{
	return gf_job_leave(&g->job, rc);
}

API int gradflow_start(struct gradflow *g)
{
	struct gf_team team;
	int rc = enter(g, "gradflow_start", false);

	if (rc)
		return rc;
	team = gf_method_team(&g->method);
	rc = gf_team_bcast(&team, g->params, gradflow_count(g) * sizeof(float),
			   &last);
	return leave(g, gf_job_keep(&g->job, rc, &last));
}

API float *gradflow_begin(struct gradflow *g)
{
	float *grads;

	if (enter(g, "gradflow_begin", false))
		return NULL;
	g->begun = true;
	grads = gf_method_begin(&g->method, (size_t)g->job.steps + 1);
	(void)leave(g, 0);
	return grads;
}

API int gradflow_ready(struct gradflow *g, size_t tensor)
{
	int rc = enter(g, "gradflow_ready", true);

	if (rc)
		return rc;
	if (tensor < g->job.ntensors)
		gf_method_ready(&g->method, g->job.order[tensor]);
	else
		rc = gf_error_set(&last, -EINVAL,
				  "gradflow_ready: want a tensor below %zu, "
				  "got %zu",
				  g->job.ntensors, tensor);
	return leave(g, rc);
}

static int step(struct gradflow *g, double rate)
{
	const size_t number = (size_t)g->job.steps + 1;
	int rc;

	if (!isfinite(rate))
		return gf_error_set(&last, -EINVAL,
				    "gradflow_step, step %zu: rate: want a "
				    "finite number, got %g",
				    number, rate);
	g->begun = false;
	gf_method_backward_end(&g->method);
	rc = gf_method_exchange(&g->method, number, &last);
	rc = gf_job_keep(&g->job, rc, &last);
	if (rc)
		return rc;
	gf_method_update(&g->method, number, rate);
	g->job.steps++;
	return 0;
}

API int gradflow_step(struct gradflow *g, double rate)
{
	int rc = enter(g, "gradflow_step", true);

	return rc ? rc : leave(g, step(g, rate));
}

API int gradflow_save(struct gradflow *g, const char *folder)
{
	int rc = enter(g, "gradflow_save", false);

	return rc ? rc : leave(g, gf_job_save(&g->job, folder, &last));
}

API int gradflow_load(struct gradflow *g, const char *folder)
{
	int rc = enter(g, "gradflow_load", false);

	return rc ? rc : leave(g, gf_job_load(&g->job, folder, NULL, &last));
}
