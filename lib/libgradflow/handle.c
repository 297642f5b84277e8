/* SPDX-License-Identifier: BSD-3-Clause */
/* An exchange is opened and closed. */
#include "libgradflow/handle.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "cuda/lanes/nccl.h"
#include "documents/plan_brief.h"
#include "trainer/choose_ways.h"
#include "trainer/scale.h"
#include "transport/join.h"

#define API __attribute__((visibility("default")))

int gf_embed_start(struct gradflow_exchange *x, struct gf_error *err)
{
	const struct gf_exchange_env env = {
		.comm = x->comm,
		.plan = &x->plan,
		.shapes = x->shapes,
		.epoch_steps = x->epoch_steps,
		.momentum = x->momentum,
		.scaled = gf_loss_scale_wanted(&x->plan) &&
			  gf_selection_has(&x->plan.selection, GF_SELECT_SCALES),
		.timeout_s = x->timeout_s,
		.threads = 1, /* the caller's, at least */
		.dtypes = x->dtypes,
		.on_back = gf_embed_done,
		.on_back_ctx = x,
		.place = {.gpu = x->device.gpu,
			  .nccl = x->device.nccl,
			  .stream = x->stream,
			  .grads = x->pool,
			  .stride = x->offset[x->ntensors]},
	};
	int rc;

	free(x->codecs);
	x->codecs = gf_plan_codecs_text(&x->plan);
	free(x->ways);
	x->ways = gf_train_ways(&x->plan);
	rc = gf_exchange_open(&x->exchange, &env, err);
	if (rc)
		return rc;
	gf_exchange_state(x->exchange, &x->state);
	return gf_state_check_names(&x->state, err);
}

void gf_embed_stop(struct gradflow_exchange *x)
{
	gf_exchange_close(x->exchange);
	x->exchange = NULL;
	gf_state_release(&x->state);
}

/* --- what the caller gives ------------------------------------------------ */

/* Structs of later versions of gradflow.h: both of them only ever grow. No version's is so large: a
 * size that nobody has set. */
#define MOST_BYTES 4096

/* Copies what this version knows; the rest must be zero. */
static int take(const void *from, size_t given, void *to, size_t known, struct gf_error *err)
{
	const unsigned char *bytes = from;
	size_t i;

	for (i = known; i < given; i++)
		if (bytes[i])
			return gf_error_set(err, -EINVAL,
					    "want zeros after the %zu bytes that this version "
					    "knows, got %d in byte %zu of %zu",
					    known, bytes[i], i, given);
	memcpy(to, from, known);
	return 0;
}

static int check_size(size_t size, size_t least, struct gf_error *err)
{
	if (size >= least && size <= MOST_BYTES && size % sizeof(size_t) == 0)
		return 0;
	return gf_error_set(err, -EINVAL,
			    "want their size, %zu to %d bytes in words of %zu, got %zu", least,
			    MOST_BYTES, sizeof(size_t), size);
}

static int check_seconds(const char *name, double seconds, struct gf_error *err)
{
	return seconds >= 0 && !isinf(seconds)
		       ? 0
		       : gf_error_set(err, -EINVAL, "%s: want 0 or more, got %g", name, seconds);
}

/* What the caller gives, of this version or a later one, as this one has it; its strings are
 * borrowed. */
static int take_options(const struct gradflow_exchange_options *from,
			struct gradflow_exchange_options *to, struct gf_error *err)
{
	int rc = check_size(from ? from->size : 0, sizeof(*to), err);

	rc = rc ? rc : take(from, from->size, to, sizeof(*to), err);
	if (rc)
		gf_error_prefix(err, "options");
	return rc ? rc : check_seconds("join_s", to->join_s, err);
}

static int check_options(const struct gradflow_exchange_options *o, struct gf_error *err)
{
	int rc = check_seconds("timeout_s", o->timeout_s, err);

	if (!rc && !(o->momentum >= 0 && o->momentum < 1))
		rc = gf_error_set(err, -EINVAL, "momentum: want 0 or more, below 1, got %g",
				  o->momentum);
	if (!rc && !!o->plan + !!o->plan_text + !!o->messages > 1)
		rc = gf_error_set(err, -EINVAL,
				  "want one of plan, plan_text and messages at most, got several");
	if (!rc && (o->messages || o->nmessages) && !(o->messages && o->nmessages))
		rc = gf_error_set(err, -EINVAL, "want messages and nmessages, got one of them");
	return rc;
}

/* The same of tensors, which are the caller's to free. */
static int take_tensors(const struct gradflow_tensor *from, size_t ntensors, size_t size,
			struct gradflow_tensor **to, struct gf_error *err)
{
	const size_t step = size ? size : sizeof(**to);
	int rc = check_size(step, sizeof(**to), err);
	struct gradflow_tensor *t;
	size_t i;

	if (rc) {
		gf_error_prefix(err, "tensor_size");
		return rc;
	}
	if (!from || !ntensors)
		return gf_error_set(err, -EINVAL, "want one tensor or more, got none");
	t = ntensors <= PTRDIFF_MAX / MOST_BYTES ? calloc(ntensors, sizeof(*t)) : NULL;
	if (!t) /* a caller who has counted wrong */
		return gf_error_set(err, -ENOMEM, "no memory for %zu tensors", ntensors);
	for (i = 0; i < ntensors && !rc; i++) {
		rc = take((const char *)from + i * step, step, &t[i], sizeof(*t), err);
		if (rc)
			gf_error_prefix(err, "tensor %zu", i);
	}
	if (rc)
		free(t);
	else
		*to = t;
	return rc;
}

/* Of at most *left elements, which it takes its own from. */
static int check_one(const struct gradflow_tensor *t, size_t index, size_t *left,
		     struct gf_error *err)
{
	size_t most = *left, count = 1, i;

	if (!t->name || !t->name[0])
		return gf_error_set(err, -EINVAL, "tensor %zu: want a name, got none", index);
	if (t->dimensions < 1 || t->dimensions > GRADFLOW_DIMENSIONS)
		return gf_error_set(err, -EINVAL,
				    "tensor %zu (%s): want 1 to %d dimensions, got %zu", index,
				    t->name, GRADFLOW_DIMENSIONS, t->dimensions);
	for (i = 0; i < t->dimensions; i++) {
		if (!t->shape[i] || t->shape[i] > most)
			return gf_error_set(err, -EINVAL,
					    "tensor %zu (%s): dimension %zu: want 1 or more, and "
					    "memory for them, got %zu",
					    index, t->name, i, t->shape[i]);
		most /= t->shape[i];
		count *= t->shape[i];
	}
	*left -= count;
	return 0;
}

/* On this rank alone: -EINVAL names the first that is none. */
static int check_tensors(const struct gradflow_tensor *tensors, size_t ntensors,
			 struct gf_error *err)
{
	size_t left = SIZE_MAX / 16, i, k;
	int rc = 0;

	for (i = 0; i < ntensors && !rc; i++)
		rc = check_one(&tensors[i], i, &left, err);
	for (i = 0; i < ntensors && !rc; i++)
		for (k = 0; k < i && !rc; k++)
			if (!strcmp(tensors[i].name, tensors[k].name))
				rc = gf_error_set(
					err, -EINVAL,
					"tensor %zu: want a name of its own, got tensor %zu's, %s",
					i, k, tensors[i].name);
	return rc;
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

static int same_options(struct gf_comm *comm, const struct gradflow_exchange_options *o,
			struct gf_error *err)
{
	char *numbers = gf_xasprintf(
		"epoch_steps %zu, timeout_s %g, momentum %g, on_device %d, flat %d", o->epoch_steps,
		o->timeout_s, o->momentum, o->on_device != 0, o->flat != 0);
	char *messages = list_messages(o);
	const struct {
		const char *what, *text; /* NULL: none */
	} said[] = {
		{"version", GF_VERSION}, {"call", "gradflow_exchange_open"},
		{"plan", o->plan},       {"plan_text", o->plan_text},
		{"options", numbers},    {"messages", messages},
		{"ways", o->ways},
	};
	size_t i;
	int rc = 0;

	for (i = 0; i < GF_ARRAY_LENGTH(said) && !rc; i++)
		rc = gf_comm_same_text(comm, said[i].what, said[i].text ? said[i].text : "none",
				       err);
	free(numbers);
	free(messages);
	return rc;
}

static int same_dtypes(struct gradflow_exchange *x, struct gf_error *err)
{
	char *text = gf_xcalloc(x->ntensors + 1, 1);
	size_t i;
	int rc;

	for (i = 0; i < x->ntensors; i++)
		text[i] = (char)('0' + x->dtypes[i]);
	rc = gf_comm_same_text(x->comm, "dtypes", text, err);
	free(text);
	return rc;
}

static int show_hosts(struct gradflow_exchange *x, struct gf_error *err)
{
	struct gf_comm *c = x->comm;
	struct gf_embed_host own = {""};

	x->hosts = gf_xcalloc((size_t)c->ranks, sizeof(*x->hosts));
	(void)gethostname(own.name, sizeof(own.name) - 1);
	return gf_comm_allgather(c, &own, sizeof(own), x->hosts, err);
}

static int open_all(struct gradflow_exchange *x, const struct gradflow_tensor *given,
		    const struct gradflow_exchange_options *o, struct gf_error *err)
{
	struct gradflow_tensor *tensors = NULL;
	int rc = check_options(o, err);

	x->epoch_steps = o->epoch_steps;
	x->on_device = o->on_device;
	x->timeout_s = o->timeout_s;
	x->former = o->former;
	x->momentum = o->momentum;
	rc = rc ? rc : take_tensors(given, x->ntensors, o->tensor_size, &tensors, err);
	rc = rc ? rc : check_tensors(tensors, x->ntensors, err);
	if (!rc && o->plan_text)
		rc = gf_embed_plan_text(&x->plan, o->plan_text, err);
	/* one rank's mistake is every rank's failure, told alike */
	rc = gf_comm_agree(x->comm, rc, err);
	rc = rc ? rc : same_options(x->comm, o, err);
	rc = rc ? rc : show_hosts(x, err);
	rc = rc ? rc : gf_embed_bind(x, tensors, o, err);
	free(tensors);
	rc = rc ? rc : same_dtypes(x, err);
	return rc ? rc : gf_embed_start(x, err);
}

/* Accepts one that was never started. */
static void free_all(struct gradflow_exchange *x)
{
	size_t i;

	if (x->exchange)
		gf_embed_stop(x);
	gf_watch_release(&x->watch);
	gf_comm_close(x->comm);
	gf_plan_release(&x->plan);
	free(x->shapes);
	free(x->order);
	free(x->offset);
	free(x->codecs);
	free(x->asked);
	free(x->ways);
	for (i = 0; i < x->nfolders; i++)
		gf_folder_release(&x->folders[i]);
	free(x->folders);
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

/* A transport that cannot give messages up may yet write to memory, which then stays, and a GPU may
 * wait for ever for what others would send. */
static void close_all(struct gradflow_exchange *x)
{
	struct gf_comm *comm = x->comm;

	if (comm->broken && (x->on_device || !gf_comm_sever(comm))) {
		gf_comm_leave(comm, &x->left);
		gf_comm_close(comm);
	} else {
		free_all(x);
	}
}

int gf_embed_exchange_open(struct gf_comm *comm, const struct gradflow_tensor *tensors,
			   size_t ntensors, const struct gradflow_exchange_options *options,
			   const struct gf_embed_device *device, struct gradflow_exchange **out,
			   struct gf_error *err)
{
	struct gradflow_exchange *x = gf_xcalloc(1, sizeof(*x));
	int rc;

	*out = NULL;
	gf_embed_init(x, comm, ntensors, options->join_s);
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
static int gather(void *ctx, const void *send, size_t size_bytes, void *recv, struct gf_error *err)
{
	const struct gradflow_exchange_options *o = ctx;
	int rc = o->allgather(o->allgather_ctx, send, size_bytes, recv);

	return rc ? gf_error_set(err, rc < 0 ? rc : -EIO,
				 "the caller's allgather of %zu bytes failed (%d)", size_bytes, rc)
		  : 0;
}

static int join(const struct gradflow_tensor *tensors, size_t ntensors,
		const struct gradflow_exchange_options *options, struct gradflow_exchange **x,
		struct gf_error *err)
{
	struct gradflow_exchange_options o;
	struct gf_join join = {.allgather = gather, .ctx = &o};
	struct gf_comm_how how;
	struct gf_comm *comm;
	/* ranks of an unknown kind cannot be told: each finds out alone */
	int rc = take_options(options, &o, err);

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
		.variable = getenv,
	};
	rc = gf_comm_open(&how, &comm, err);
	return rc ? rc : gf_embed_exchange_open(comm, tensors, ntensors, &o, NULL, x, err);
}

API int gradflow_exchange_open(const struct gradflow_tensor *tensors, size_t ntensors,
			       const struct gradflow_exchange_options *options,
			       struct gradflow_exchange **x)
{
	struct gf_error *err = gf_embed_error();
	struct gf_heap_guard guard GF_HEAP_GUARD;
	locale_t before;
	int rc;

	if (!x)
		return gf_error_set(
			err, -EINVAL,
			"gradflow_exchange_open: want a place for the exchange, got NULL");
	*x = NULL;
	before = gf_locale_enter();
	if (GF_HEAP_FAILS(guard)) { /* what is open stays so */
		gf_locale_leave(before);
		*x = NULL;
		return gf_error_set(err, -ENOMEM, "gradflow_exchange_open: %s", guard.line);
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
	if (!gf_embed_is_here(x))
		return;
	if (GF_HEAP_FAILS(guard))
		return;
	if (gf_embed_is_lost(x)) {
		gf_exchange_abandon(x->exchange);
		return;
	}
	if (x->comm->broken)
		gf_exchange_abandon(x->exchange);
	else if (x->step)
		(void)gf_embed_flush(x, &ignored);
	close_all(x);
}
