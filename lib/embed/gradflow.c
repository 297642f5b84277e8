/* SPDX-License-Identifier: BSD-3-Clause */
#include "gradflow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "comm/pages.h"
#include "doc/stream.h"
#include "embed/trainer.h"

#define API __attribute__((visibility("default")))

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

	job->exchange = g->method.exchange;
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

static int open_trainer(const struct gradflow_tensor *tensors, size_t ntensors,
			const struct gradflow_options *options,
			struct gradflow **out)
{
	struct gradflow *g;
	struct gf_comm *comm;
	int rc;

	rc = gf_comm_open(NULL, &comm, &last);
	if (rc)
		return rc;
	g = gf_xcalloc(1, sizeof(*g));
	gf_training_init(&g->training);
	gf_job_init(&g->job, &trainer, comm, ntensors, 0);
	rc = open_all(g, tensors, options);
	if (rc) {
		gradflow_close(g);
		return rc;
	}
	*out = g;
	return 0;
}

API int gradflow_open(const struct gradflow_tensor *tensors, size_t ntensors,
		      const struct gradflow_options *options,
		      struct gradflow **out)
{
	locale_t before;
	int rc;

	if (!out)
		return gf_error_set(&last, -EINVAL,
				    "gradflow_open: want a place for the "
				    "handle, got NULL");
	*out = NULL;
	before = gf_locale_enter();
	rc = open_trainer(tensors, ntensors, options, out);
	gf_locale_leave(before);
	return rc;
}

API void gradflow_close(struct gradflow *g)
{
	if (!gf_job_is_here(g ? &g->job : NULL))
		return;
	/* Ranks are lost, and the transport may yet write. */
	if (g->job.comm->broken) {
		gf_method_close(&g->method);
		gf_job_stay(&g->job);
		return;
	}
	/* what has left is waited for: the other ranks have part in it */
	if (g->begun)
		gf_method_backward_end(&g->method);
	gf_job_close(&g->job);
	gf_training_release(&g->training);
	gf_pages_free(g->params);
	free(g->said);
	free(g);
}
