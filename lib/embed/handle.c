/* SPDX-License-Identifier: BSD-3-Clause */
/* An exchange is opened and closed. */
#include "embed/handle.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "comm/join.h"
#include "lane/nccl.h"
#include "train/choose_ways.h"
#include "train/scale.h"

#define API __attribute__((visibility("default")))

/* --- what a job needs ----------------------------------------------------- */

static struct gradflow_exchange *exchange_of(const struct gf_job *job)
{
	return (struct gradflow_exchange *)job;
}

int gf_embed_start(struct gf_job *job, struct gf_error *err)
{
	struct gradflow_exchange *x = exchange_of(job);
	const struct gf_exchange_env env = {
		.comm = job->comm,
		.plan = &job->plan,
		.shapes = job->shapes,
		.epoch_steps = job->epoch_steps,
		.momentum = x->momentum,
		.scaled = gf_loss_scale_wanted(&job->plan) &&
			  gf_selection_has(&job->plan.selection,
					   GF_SELECT_SCALES),
		.timeout_s = job->timeout_s,
		.threads = 1, /* the caller's, at least */
		.dtypes = x->dtypes,
		.place = {.gpu = x->device.gpu,
			  .nccl = x->device.nccl,
			  .stream = x->stream,
			  .grads = x->pool,
			  .stride = job->offset[job->ntensors]},
	};
	int rc = gf_exchange_open(&job->exchange, &env, err);

	if (rc)
		return rc;
	gf_exchange_state(job->exchange, &job->state);
	gf_exchange_on_back(job->exchange, gf_embed_done, x);
	return 0;
}

void gf_embed_stop(struct gf_job *job)
{
	gf_exchange_close(job->exchange);
	job->exchange = NULL;
	gf_state_release(&job->state);
}

int gf_embed_settle(struct gf_job *job, struct gf_error *err)
{
	bool bad; /* all of it has come back as NaN */
	int rc = gf_exchange_learn(job->exchange, &bad, err);

	return rc < 0 ? rc : gf_exchange_settle(job->exchange, err);
}

int gf_embed_restore(struct gf_job *job, struct gf_error *err)
{
	return gf_exchange_restore(job->exchange, err);
}

/* --- open ----------------------------------------------------------------- */

/* "2 2 1": so many tensors in each. */
static char *list_messages(const struct gradflow_exchange_options *o)
{
	struct gf_text t = {0};
	size_t i;

	gf_text_addf(&t, "%s", o->nmessages ? "" : "none");
	for (i = 0; i < o->nmessages; i++)
		gf_text_addf(&t, "%s%zu", i ? " " : "", o->messages[i]);
	return gf_text_take(&t);
}

static int same_options(struct gf_comm *comm,
			const struct gradflow_exchange_options *o,
			struct gf_error *err)
{
	char *numbers = gf_xasprintf(
		"epoch_steps %zu, timeout_s %g, momentum %g, on_device %d, "
		"flat %d",
		o->epoch_steps, o->timeout_s, o->momentum, o->on_device != 0,
		o->flat != 0);
	char *messages = list_messages(o);
	const struct gf_said said[] = {
		{"call", "gradflow_exchange_open"},
		{"plan", o->plan},
		{"plan_text", o->plan_text},
		{"options", numbers},
		{"messages", messages},
		{"ways", o->ways},
	};
	int rc = gf_job_same(comm, said, GF_ARRAY_LENGTH(said), err);

	free(numbers);
	free(messages);
	return rc;
}

/* The GPU, and the memory that messages are packed into. */
static int open_device(struct gradflow_exchange *x,
		       const struct gradflow_exchange_options *o,
		       struct gf_error *err)
{
	const size_t count = x->job.offset[x->job.ntensors];
	struct gf_embed_device *d = &x->device;
	int rc = 0;

	x->stream = o->stream;
	if (!d->gpu) {
		rc = gf_gpu_open(o->device, &d->gpu, err);
		x->owns_gpu = !rc;
		rc = rc ? rc : gf_nccl_load(&d->nccl, err);
	}
	if (!rc && !x->stream)
		rc = gf_error_set(err, -EINVAL,
				  "stream: want the one that makes gradients, "
				  "got NULL");
	return rc ? rc
		  : d->gpu->ops->alloc(d->gpu, count * sizeof(float), &x->pool,
				       err);
}

struct settle {
	struct gradflow_exchange *x;
	const struct gradflow_exchange_options *options;
};

/* A plan that fits: it becomes the caller's, and is one that can be done. */
static int adapt(struct gf_job *job, void *ctx, struct gf_error *err)
{
	const struct settle *s = ctx;
	struct gf_plan *plan = &job->plan;
	int rc = s->options->messages ? gf_embed_plan_cut(plan, s->options, err)
				      : 0;

	rc = rc ? rc : gf_embed_take_dtypes(s->x, s->options->dtypes, err);
	if (!rc && plan->staleness > 1)
		rc = gf_error_set(err, -ENOTSUP,
				  "staleness %d: an exchange gives back the "
				  "means of the step itself: want 1, and for "
				  "stale gradients wait for a step when the "
				  "next one has been computed",
				  plan->staleness);
	if (!rc && s->options->flat &&
	    gf_selection_has(&plan->selection, GF_SELECT_SHAPES))
		rc = gf_error_set(
			err, -ENOTSUP,
			"selection %s: it works on the shapes of "
			"tensors, and these are flat pieces of others: "
			"want another selection",
			gf_selection_name(&plan->selection));
	if (rc)
		return rc;
	gf_exchange_set_codecs(plan, s->x->dtypes);
	if (s->x->job.on_device) /* without a plan as NCCL has it */
		gf_train_use_library(plan,
				     s->options->plan || s->options->plan_text);
	rc = gf_embed_plan_check(plan, s->x->job.on_device, err);
	return rc || !s->x->job.on_device ? rc
					  : open_device(s->x, s->options, err);
}

static int same_dtypes(struct gradflow_exchange *x, struct gf_error *err)
{
	char *text = gf_xcalloc(x->job.ntensors + 1, 1);
	size_t i;
	int rc;

	for (i = 0; i < x->job.ntensors; i++)
		text[i] = (char)('0' + x->dtypes[i]);
	rc = gf_comm_same_text(x->job.comm, "dtypes", text, err);
	free(text);
	return rc;
}

static int show_hosts(struct gradflow_exchange *x, struct gf_error *err)
{
	struct gf_comm *c = x->job.comm;
	struct gf_embed_host own = {""};

	x->hosts = gf_xcalloc((size_t)c->ranks, sizeof(*x->hosts));
	(void)gethostname(own.name, sizeof(own.name) - 1);
	return gf_comm_allgather(c, &own, sizeof(own), x->hosts, err);
}

static int open_all(struct gradflow_exchange *x,
		    const struct gradflow_tensor *given,
		    const struct gradflow_exchange_options *o,
		    struct gf_error *err)
{
	struct settle s = {x, o};
	struct gf_job_plan plan = {.settle = adapt, .ctx = &s};
	struct gf_job *job = &x->job;
	struct gradflow_tensor *tensors = NULL;
	int rc = gf_embed_check_exchange(o, err);

	job->epoch_steps = o->epoch_steps;
	job->on_device = o->on_device;
	job->timeout_s = o->timeout_s;
	job->former = o->former;
	x->momentum = o->momentum;
	rc = rc ? rc
		: gf_embed_take_tensors(given, job->ntensors, o->tensor_size,
					&tensors, err);
	rc = rc ? rc : gf_embed_check(tensors, job->ntensors, err);
	if (!rc && o->plan_text)
		rc = gf_embed_plan_text(&job->plan, o->plan_text, err);
	/* one rank's mistake is every rank's failure, told alike */
	rc = gf_comm_agree(job->comm, rc, err);
	rc = rc ? rc : same_options(job->comm, o, err);
	rc = rc ? rc : show_hosts(x, err);
	plan.file = o->plan;
	plan.given = o->plan_text != NULL;
	plan.ways = o->ways;
	rc = rc ? rc : gf_job_bind(job, tensors, &plan, err);
	free(tensors);
	rc = rc ? rc : same_dtypes(x, err);
	return rc ? rc : gf_job_start(job, err);
}

static void free_all(struct gradflow_exchange *x)
{
	gf_job_close(&x->job);
	if (x->pool)
		x->device.gpu->ops->free(x->device.gpu, x->pool);
	if (x->owns_gpu)
		gf_gpu_close(x->device.gpu);
	free(x->dtypes);
	free(x->caller);
	free(x->posted);
	free(x->batch);
	free(x->hosts);
	free(x);
}

/* A transport that cannot give messages up may yet write to memory, and a GPU
 * may wait for ever for what others would send. */
static void close_all(struct gradflow_exchange *x)
{
	struct gf_comm *comm = x->job.comm;

	if (comm->broken && (x->job.on_device || !gf_comm_sever(comm)))
		gf_job_stay(&x->job);
	else
		free_all(x);
}

int gf_embed_exchange_open(struct gf_comm *comm,
			   const struct gradflow_tensor *tensors,
			   size_t ntensors,
			   const struct gradflow_exchange_options *options,
			   const struct gf_embed_device *device,
			   struct gradflow_exchange **out, struct gf_error *err)
{
	struct gradflow_exchange *x = gf_xcalloc(1, sizeof(*x));
	int rc;

	*out = NULL;
	gf_job_init(&x->job, comm, ntensors, options->join_s);
	if (device)
		x->device = *device;
	rc = open_all(x, tensors, options, err);
	if (rc)
		close_all(x);
	else
		*out = x;
	return rc;
}

/* A caller's allgather knows no struct gf_error. */
static int gather(void *ctx, const void *send, size_t size_bytes, void *recv,
		  struct gf_error *err)
{
	const struct gradflow_exchange_options *o = ctx;
	int rc = o->allgather(o->allgather_ctx, send, size_bytes, recv);

	return rc ? gf_error_set(err, rc < 0 ? rc : -EIO,
				 "the caller's allgather of %zu bytes failed "
				 "(%d)",
				 size_bytes, rc)
		  : 0;
}

static int join(const struct gradflow_tensor *tensors, size_t ntensors,
		const struct gradflow_exchange_options *options,
		struct gradflow_exchange **x, struct gf_error *err)
{
	struct gradflow_exchange_options o;
	struct gf_join join = {.allgather = gather, .ctx = &o};
	struct gf_comm_how how;
	struct gf_comm *comm;
	/* ranks of an unknown kind cannot be told: each finds out alone */
	int rc = gf_embed_take_exchange(options, &o, err);

	if (rc)
		return rc;
	join.rank = o.rank;
	join.ranks = o.ranks;
	how = (struct gf_comm_how){
		.transport = o.transport,
		.join = o.allgather ? &join : NULL,
		.meet = o.meet,
		.rank = o.rank,
		.ranks = o.ranks,
		.timeout_s = o.join_s,
	};
	rc = gf_comm_open(&how, &comm, err);
	return rc ? rc
		  : gf_embed_exchange_open(comm, tensors, ntensors, &o, NULL, x,
					   err);
}

API int gradflow_exchange_open(const struct gradflow_tensor *tensors,
			       size_t ntensors,
			       const struct gradflow_exchange_options *options,
			       struct gradflow_exchange **x)
{
	struct gf_error *err = gf_embed_error();
	struct gf_heap_guard guard GF_HEAP_GUARD;
	locale_t before;
	int rc;

	if (!x)
		return gf_error_set(err, -EINVAL,
				    "gradflow_exchange_open: want a place for "
				    "the exchange, got NULL");
	*x = NULL;
	before = gf_locale_enter();
	if (GF_HEAP_FAILS(guard)) { /* what is open stays so */
		gf_locale_leave(before);
		*x = NULL;
		return gf_error_set(err, -ENOMEM, "gradflow_exchange_open: %s",
				    guard.line);
	}
	rc = join(tensors, ntensors, options, x, err);
	gf_locale_leave(before);
	return rc;
}

API void gradflow_exchange_close(struct gradflow_exchange *x)
{
	struct gf_heap_guard guard GF_HEAP_GUARD;
	struct gf_error ignored;

	/* a child's exchange has no thread, and its memory is a copy */
	if (!gf_job_is_here(x ? &x->job : NULL))
		return;
	if (GF_HEAP_FAILS(guard))
		return;
	if (gf_job_is_lost(&x->job)) {
		gf_exchange_abandon(x->job.exchange);
		return;
	}
	if (x->job.comm->broken)
		gf_exchange_abandon(x->job.exchange);
	else if (x->begun)
		(void)gf_embed_flush(x, &ignored);
	close_all(x);
}
