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
#include "base/timeout.h"
#include "documents/plan_brief.h"
#include "trainer/choose_ways.h"
#include "trainer/scale.h"
#include "transport/join.h"
#include "base/launcher.h"

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
		.halves = x->halves,
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

/* Versions differ in this struct's size: what is new follows the last member. */
_Static_assert(offsetof(struct gradflow_exchange_options, stream) + sizeof(void *) ==
		       sizeof(struct gradflow_exchange_options),
	       "no padding at the end");

API int gradflow_exchange_options_init(struct gradflow_exchange_options *options, size_t size)
{
	static const char call[] = "gradflow_exchange_options_init";
	struct gf_error *err = gf_embed_error();

	if (!options)
		return gf_error_set(err, -EINVAL, "%s: want options, got NULL", call);
	if (size != sizeof(*options))
		return gf_error_set(err, -EINVAL,
				    "%s: want the %zu bytes of gradflow.h %s, got %zu: build the "
				    "program with this library's header",
				    call, sizeof(*options), GRADFLOW_VERSION_TEXT, size);
	*options = (struct gradflow_exchange_options){
		.size = size, .join_s = GF_TIMEOUT_S, .former = -1};
	return 0;
}

static int check_seconds(const char *name, double seconds, struct gf_error *err)
{
	return seconds >= 0 && !isinf(seconds)
		       ? 0
		       : gf_error_set(err, -EINVAL, "%s: want 0 or more, got %g", name, seconds);
}

static int check_meeting(const struct gradflow_exchange_options *o, struct gf_error *err)
{
	static const char *const names[] = {"LAUNCHED", "MPI", "PLACE", "ALLGATHER"};
	const bool by_place = o->meet == GRADFLOW_MEET_PLACE;
	const bool by_gather = o->meet == GRADFLOW_MEET_ALLGATHER;

	if ((unsigned)o->meet >= GF_ARRAY_LENGTH(names))
		return gf_error_set(err, -EINVAL, "meet: want a GRADFLOW_MEET_, got %d",
				    (int)o->meet);
	if (by_place != (o->place && o->place[0]))
		return gf_error_set(err, -EINVAL,
				    "place: want it with GRADFLOW_MEET_PLACE alone, got %s with "
				    "GRADFLOW_MEET_%s",
				    by_place ? "none" : "one", names[o->meet]);
	if (by_gather != !!o->allgather)
		return gf_error_set(err, -EINVAL,
				    "allgather: want it with GRADFLOW_MEET_ALLGATHER alone, got "
				    "%s with GRADFLOW_MEET_%s",
				    by_gather ? "none" : "one", names[o->meet]);
	if (o->meet == GRADFLOW_MEET_LAUNCHED && !gf_launcher_find(getenv))
		return gf_error_set(err, -EINVAL,
				    "meet: want a launcher (mpirun, srun) that has started this "
				    "process, found none: ask for GRADFLOW_MEET_PLACE, _ALLGATHER "
				    "or _MPI");
	return 0;
}

/* What each rank can tell alone, before it knows the others. */
static int check_start(const struct gradflow_exchange_options *o, struct gf_error *err)
{
	int rc;

	if (!o || o->size != sizeof(*o))
		return gf_error_set(err, -EINVAL,
				    "options: want what gradflow_exchange_options_init fills in, "
				    "%zu bytes, got %zu",
				    sizeof(*o), o ? o->size : 0);
	rc = check_seconds("join_s", o->join_s, err);
	return rc ? rc : check_meeting(o, err);
}

static int check_text(const char *name, const char *what, const char *text, struct gf_error *err)
{
	return !text || text[0]
		       ? 0
		       : gf_error_set(err, -EINVAL, "%s: want %s, or NULL for none, got \"\"", name,
				      what);
}

static int check_options(const struct gradflow_exchange_options *o, struct gf_error *err)
{
	int rc = check_seconds("timeout_s", o->timeout_s, err);

	if (!rc && !(o->momentum >= 0 && o->momentum < 1))
		rc = gf_error_set(err, -EINVAL, "momentum: want 0 or more, below 1, got %g",
				  o->momentum);
	rc = rc ? rc : check_text("plan", "a file's name", o->plan, err);
	rc = rc ? rc : check_text("plan_text", "a gf-plan document", o->plan_text, err);
	rc = rc ? rc : check_text("ways", "what gradflow_exchange_ways gave", o->ways, err);
	if (!rc && o->former < -1)
		rc = gf_error_set(err, -EINVAL, "former: want a rank, or -1 for a new one, got %d",
				  o->former);
	if (!rc && !!o->plan + !!o->plan_text + !!o->messages > 1)
		rc = gf_error_set(err, -EINVAL,
				  "want one of plan, plan_text and messages at most, got several");
	if (!rc && (o->messages || o->nmessages) && !(o->messages && o->nmessages))
		rc = gf_error_set(err, -EINVAL, "want messages and nmessages, got one of them");
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
	int rc = tensors && ntensors
			 ? 0
			 : gf_error_set(err, -EINVAL, "want one tensor or more, got none");

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
	GF_FREED char *numbers =
		gf_xasprintf("epoch_steps %zu, timeout_s %g, momentum %g, on_device %d, flat %d, "
			     "halves %d",
			     o->epoch_steps, o->timeout_s, o->momentum, o->on_device != 0,
			     o->flat != 0, o->halves != 0);
	GF_FREED char *messages = list_messages(o);
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
	return rc;
}

static int same_dtypes(struct gradflow_exchange *x, struct gf_error *err)
{
	GF_FREED char *text = gf_xcalloc(x->ntensors + 1, 1);
	size_t i;

	for (i = 0; i < x->ntensors; i++)
		text[i] = (char)('0' + x->dtypes[i]);
	return gf_comm_same_text(x->comm, "dtypes", text, err);
}

static int show_hosts(struct gradflow_exchange *x, struct gf_error *err)
{
	struct gf_comm *c = x->comm;
	struct gf_embed_host own = {""};

	x->hosts = gf_xcalloc((size_t)c->ranks, sizeof(*x->hosts));
	(void)gethostname(own.name, sizeof(own.name) - 1);
	return gf_comm_allgather(c, &own, sizeof(own), x->hosts, err);
}

static int open_all(struct gradflow_exchange *x, const struct gradflow_tensor *tensors,
		    const struct gradflow_exchange_options *o, struct gf_error *err)
{
	int rc = check_options(o, err);

	x->epoch_steps = o->epoch_steps;
	x->on_device = o->on_device;
	x->halves = o->halves;
	x->timeout_s = o->timeout_s;
	x->former = (size_t)o->former + 1;
	x->momentum = o->momentum;
	rc = rc ? rc : check_tensors(tensors, x->ntensors, err);
	if (!rc && o->plan_text)
		rc = gf_embed_plan_text(&x->plan, o->plan_text, err);
	/* one rank's mistake is every rank's failure, told alike */
	rc = gf_comm_agree(x->comm, rc, err);
	rc = rc ? rc : same_options(x->comm, o, err);
	rc = rc ? rc : show_hosts(x, err);
	rc = rc ? rc : gf_embed_bind(x, tensors, o, err);
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
	struct gf_join join = {.allgather = gather};
	struct gradflow_exchange_options o;
	struct gf_comm_how how;
	struct gf_comm *comm;
	/* ranks of an unknown kind cannot be told: each finds out alone */
	int rc = check_start(options, err);

	if (rc)
		return rc;
	o = *options;
	join.ctx = &o;
	join.rank = o.rank;
	join.ranks = o.ranks;
	how = (struct gf_comm_how){
		.transport = o.transport,
		.join = o.allgather ? &join : NULL,
		.meet = o.place,
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
