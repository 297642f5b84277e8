/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of calls, which thread of which process is in one, why the last call of a thread
 * failed; and an exchange's steps. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/timeout.h"
#include "libgradflow/handle.h"

#define API __attribute__((visibility("default")))

/* --- which calls are allowed ---------------------------------------------- */

static _Thread_local struct gf_error reason;
static _Thread_local bool in_callback;

struct gf_error *gf_embed_error(void)
{
	return &reason;
}

API const char *gradflow_error(void)
{
	return reason.text;
}

API const char *gradflow_version(void)
{
	return GF_VERSION;
}

API int gradflow_version_number(void)
{
	return GRADFLOW_VERSION;
}

/* Counted up in a child: threads are not forked. */
static _Atomic unsigned long generation = 1;
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void count_child(void)
{
	atomic_fetch_add(&generation, 1);
}

static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, count_child);
}

void gf_embed_init(struct gradflow_exchange *x, struct gf_comm *comm, size_t ntensors,
		   double wait_s)
{
	pthread_once(&watched, watch_forks);
	x->comm = comm;
	x->ntensors = ntensors;
	x->generation = atomic_load(&generation);
	gf_watch_init(&x->watch, comm, wait_s > 0 ? wait_s : GF_TIMEOUT_S);
	x->watch.self.phase = GF_PHASE_CALL;
}

bool gf_embed_is_here(const struct gradflow_exchange *x)
{
	return x && x->generation == atomic_load(&generation);
}

int gf_embed_keep(struct gradflow_exchange *x, int rc, const struct gf_error *err)
{
	if (rc && !x->failed) {
		x->failed = rc < 0 ? rc : -EDOM;
		x->why = *err;
	}
	return x->failed;
}

/* The failure that has ended the exchange, and its reason. */
static int failed(const struct gradflow_exchange *x, struct gf_error *err)
{
	if (x->failed)
		*err = x->why;
	return x->failed;
}

int gf_embed_reach(struct gradflow_exchange *x, const char *call, struct gf_error *err)
{
	const char *other = NULL;

	if (in_callback)
		return gf_error_set(
			err, -EBUSY,
			"%s: called by a callback of gradflow_exchange_on_done, which may call "
			"gradflow_exchange_test alone",
			call);
	if (!x)
		return gf_error_set(err, -EINVAL, "%s: want an open handle, got NULL", call);
	if (!gf_embed_is_here(x))
		return gf_error_set(err, -EINVAL,
				    "%s: a forked child has nothing open: open after the fork",
				    call);
	if (!atomic_compare_exchange_strong(&x->calling, &other, call))
		return gf_error_set(err, -EBUSY, "%s: another thread is in %s: one at a time", call,
				    other);
	x->locale = gf_locale_enter();
	return 0;
}

int gf_embed_enter(struct gradflow_exchange *x, const char *call, struct gf_error *err)
{
	int rc = gf_embed_reach(x, call, err);

	if (!rc && failed(x, err))
		rc = gf_embed_leave(x, x->failed);
	return rc;
}

int gf_embed_leave(struct gradflow_exchange *x, int rc)
{
	if (rc == -ENOMEM)
		(void)gf_embed_keep(x, rc, &reason);
	gf_locale_leave(x->locale);
	atomic_store(&x->calling, NULL);
	return rc;
}

int gf_embed_no_memory(struct gradflow_exchange *x, const struct gf_heap_guard *guard)
{
	gf_error_set(&reason, -ENOMEM, "%s: %s", atomic_load(&x->calling), guard->line);
	x->failed = 0; /* what was before is of less account */
	if (x->exchange)
		(void)gf_exchange_failed(x->exchange, -ENOMEM, &reason);
	return gf_embed_leave(x, -ENOMEM);
}

static int of_steps(const struct gradflow_exchange *x, const char *call, struct gf_error *err)
{
	return x->halves ? gf_error_set(err, -EINVAL,
					"%s: want an exchange of steps, got one that was opened "
					"with halves",
					call)
			 : 0;
}

int gf_embed_between(struct gradflow_exchange *x, const char *call, struct gf_error *err)
{
	int rc = gf_embed_enter(x, call, err);

	if (rc)
		return rc;
	rc = of_steps(x, call, err);
	if (rc)
		return gf_embed_leave(x, rc);
	if (!x->step)
		return 0;
	return gf_embed_leave(x, gf_error_set(err, -EINVAL,
					      "%s: want it between steps, got it within step %zu: "
					      "call gradflow_exchange_wait for GRADFLOW_ALL first",
					      call, (size_t)x->steps + 1));
}

/* The host does not know what a GPU has done. */
static int on_host(const struct gradflow_exchange *x, const char *call, struct gf_error *err)
{
	return x->on_device
		       ? gf_error_set(err, -ENOTSUP,
				      "%s: on a GPU want gradflow_exchange_wait for GRADFLOW_ALL, "
				      "which lets the stream wait",
				      call)
		       : 0;
}

static const char *name_of(const struct gradflow_exchange *x, size_t at)
{
	return x->plan.model->tensors[at].name;
}

static int check_tensor(const struct gradflow_exchange *x, const char *call, size_t tensor,
			struct gf_error *err)
{
	return tensor < x->ntensors
		       ? 0
		       : gf_error_set(err, -EINVAL, "%s: want a tensor below %zu, got %zu", call,
				      x->ntensors, tensor);
}

/* --- steps ---------------------------------------------------------------- */

/* On a GPU what the step before has decided holds from now on. */
static int begin(struct gradflow_exchange *x, struct gf_error *err)
{
	bool bad; /* all of it has come back as NaN */
	int rc = of_steps(x, atomic_load(&x->calling), err);

	if (rc)
		return rc;
	rc = gf_exchange_learn(x->exchange, true, &bad, err);

	if (rc < 0)
		return gf_embed_keep(x, rc, err);
	x->flushed = false;
	x->step = gf_exchange_begin(x->exchange, (size_t)x->steps + 1, 1, 0);
	return 0;
}

int gf_embed_flush(struct gradflow_exchange *x, struct gf_error *err)
{
	int rc = x->step ? 0 : begin(x, err);

	if (rc)
		return rc;
	if (!x->flushed)
		gf_exchange_backward_end(x->step);
	x->flushed = true;
	return gf_embed_keep(x, gf_exchange_failed(x->exchange, 0, err), err);
}

static int check_memory(const struct gradflow_exchange *x, const char *call,
			const struct gradflow_gradient *g, struct gf_error *err)
{
	const size_t at = x->order[g->tensor];
	const struct gf_tensor *t = &x->plan.model->tensors[at];
	const enum gf_dtype *dtype = gf_embed_dtype(g->dtype);
	const size_t bytes = gf_dtype_bytes(x->dtypes[at]);

	if (!dtype || *dtype != x->dtypes[at] || g->count != t->count_elems)
		return gf_error_set(err, -EINVAL,
				    "%s: tensor %zu (%s): want %zu elements of %s, as it was "
				    "opened, got %zu of %s",
				    call, g->tensor, t->name, t->count_elems,
				    gf_dtype_names[x->dtypes[at]], g->count,
				    dtype ? gf_dtype_names[*dtype] : "no known type");
	if (!g->data || (uintptr_t)g->data % bytes)
		return gf_error_set(
			err, -EINVAL,
			"%s: tensor %zu (%s): want memory at a multiple of %zu bytes, got %p", call,
			g->tensor, t->name, bytes, g->data);
	return 0;
}

static int check_post(const struct gradflow_exchange *x, const struct gradflow_gradient *g,
		      struct gf_error *err)
{
	const char *call = atomic_load(&x->calling);
	const size_t step = (size_t)x->steps + 1, tensor = g->tensor;
	size_t at;
	int rc = check_tensor(x, call, tensor, err);

	rc = rc ? rc : check_memory(x, call, g, err);
	if (rc)
		return rc;
	at = x->order[tensor];
	if (x->step && x->flushed)
		return gf_error_set(
			err, -EINVAL,
			"%s: tensor %zu (%s): step %zu is complete: call gradflow_exchange_wait "
			"for GRADFLOW_ALL first",
			call, tensor, name_of(x, at), step);
	if (x->posted[at])
		return gf_error_set(err, -EINVAL,
				    "%s: tensor %zu (%s): want it once in step %zu, got it again",
				    call, tensor, name_of(x, at), step);
	return 0;
}

/* Marks all of them, or none. */
static int mark(struct gradflow_exchange *x, const struct gradflow_gradient *g, size_t n,
		struct gf_error *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < n; i++) {
		rc = check_post(x, &g[i], err);
		if (rc)
			break;
		x->batch[i] = x->order[g[i].tensor];
		x->posted[x->batch[i]] = true;
	}
	while (rc && i-- > 0)
		x->posted[x->batch[i]] = false;
	return rc;
}

static int post(struct gradflow_exchange *x, const struct gradflow_gradient *g, size_t n,
		struct gf_error *err)
{
	size_t i;
	int rc = mark(x, g, n, err);

	rc = rc ? rc : gf_embed_keep(x, gf_exchange_failed(x->exchange, 0, err), err);
	if (!rc && n && !x->step)
		rc = begin(x, err);
	if (rc || !n)
		return rc;
	for (i = 0; i < n; i++)
		gf_exchange_post(x->step, x->batch[i], g[i].data);
	gf_exchange_ready(x->step, x->batch, n);
	x->nposted += n;
	while (x->front < x->ntensors && x->posted[x->front])
		x->front++;
	return x->nposted == x->ntensors ? gf_embed_flush(x, err) : 0;
}

API int gradflow_exchange_post(struct gradflow_exchange *x,
			       const struct gradflow_gradient *gradients, size_t n)
{
	static const char call[] = "gradflow_exchange_post";
	struct gf_error *err = gf_embed_error();
	int rc = gf_embed_enter(x, call, err);

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	if (n && !gradients)
		rc = gf_error_set(err, -EINVAL, "%s: want %zu gradients, got NULL", call, n);
	return gf_embed_leave(x, rc ? rc : post(x, gradients, n, err));
}

API int gradflow_exchange_flush(struct gradflow_exchange *x)
{
	struct gf_error *err = gf_embed_error();
	int rc = gf_embed_enter(x, "gradflow_exchange_flush", err);

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	return gf_embed_leave(x, gf_embed_flush(x, err));
}

API int gradflow_exchange_test(struct gradflow_exchange *x, size_t tensor)
{
	struct gf_error *err = gf_embed_error();
	const struct gf_exchange *e;
	size_t i, first = 0, last;
	int rc;

	if (!gf_embed_is_here(x))
		return gf_error_set(
			err, -EINVAL,
			"gradflow_exchange_test: want an exchange that this process has opened");
	e = x->exchange;
	rc = on_host(x, "gradflow_exchange_test", err);
	rc = rc ?: of_steps(x, "gradflow_exchange_test", err);
	if (!rc && (!e || gf_embed_is_lost(x))) /* or half a load */
		rc = failed(x, err);
	if (!rc && tensor != GRADFLOW_ALL)
		rc = check_tensor(x, "gradflow_exchange_test", tensor, err);
	if (rc)
		return rc;
	last = x->ntensors - 1;
	if (tensor != GRADFLOW_ALL)
		first = last = x->order[tensor];
	for (i = first; i <= last && gf_exchange_is_back(e, i); i++)
		;
	if (i > last)
		return 1;
	/* a callback may be one of a thread that has the engine's lock */
	return in_callback ? 0 : gf_exchange_failed(x->exchange, 0, err);
}

/* The last tensor of the plan that a tensor's mean waits for. */
static size_t needs(const struct gradflow_exchange *x, size_t tensor)
{
	const struct gf_message *m;

	if (tensor == GRADFLOW_ALL || !gf_selection_has(&x->plan.selection, GF_SELECT_LOSSLESS))
		return x->ntensors - 1;
	/* messages go in their order, and a half follows all of them */
	m = &x->plan.messages[gradflow_exchange_message(x, tensor)];
	return m->release == GF_RELEASE_READY && m->half == GF_HALF_ALL ? m->last : x->ntensors - 1;
}

/* Would it end? */
static int check_wait(const struct gradflow_exchange *x, size_t tensor, struct gf_error *err)
{
	int rc =
		tensor == GRADFLOW_ALL ? 0 : check_tensor(x, "gradflow_exchange_wait", tensor, err);

	if (!rc && tensor != GRADFLOW_ALL)
		rc = on_host(x, "gradflow_exchange_wait", err);
	if (rc || x->flushed || x->front > needs(x, tensor))
		return rc;
	return gf_error_set(
		err, -EINVAL,
		"gradflow_exchange_wait, step %zu: tensor %zu (%s) has not been posted: post "
		"it, or call gradflow_exchange_flush",
		(size_t)x->steps + 1, x->caller[x->front], name_of(x, x->front));
}

static int wait_all(struct gradflow_exchange *x, struct gf_error *err)
{
	struct gf_exchange_step *step;
	int rc = gf_exchange_next(x->exchange, true, &step, err);

	rc = rc ? rc : gf_exchange_take(step, false, err);

	if (rc)
		return rc;
	x->step = NULL;
	x->nposted = x->front = 0;
	memset(x->posted, 0, x->ntensors * sizeof(*x->posted));
	x->steps++;
	return 0;
}

static int wait(struct gradflow_exchange *x, size_t tensor, struct gf_error *err)
{
	int rc = of_steps(x, "gradflow_exchange_wait", err);

	if (rc)
		return rc;
	if (!x->step)
		return tensor == GRADFLOW_ALL
			       ? 0
			       : check_tensor(x, "gradflow_exchange_wait", tensor, err);
	rc = check_wait(x, tensor, err);
	if (rc)
		return rc;
	rc = tensor == GRADFLOW_ALL
		     ? wait_all(x, err)
		     : gf_exchange_wait(x->step, gradflow_exchange_message(x, tensor), true, err);
	return gf_embed_keep(x, rc, err);
}

API int gradflow_exchange_wait(struct gradflow_exchange *x, size_t tensor)
{
	struct gf_error *err = gf_embed_error();
	int rc = gf_embed_enter(x, "gradflow_exchange_wait", err);

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	return gf_embed_leave(x, wait(x, tensor, err));
}

/* --- callbacks ------------------------------------------------------------ */

void gf_embed_done(void *exchange, size_t tensor, int status)
{
	const struct gradflow_exchange *x = exchange;

	if (!x->on_done)
		return;
	in_callback = true;
	x->on_done(x->on_done_ctx, x->caller[tensor], status);
	in_callback = false;
}

API int gradflow_exchange_on_done(struct gradflow_exchange *x,
				  void (*fn)(void *ctx, size_t tensor, int status), void *ctx)
{
	struct gf_error *err = gf_embed_error();
	int rc = gf_embed_between(x, "gradflow_exchange_on_done", err);

	if (rc)
		return rc;
	if (fn)
		rc = on_host(x, "gradflow_exchange_on_done", err);
	if (!rc) {
		x->on_done = fn;
		x->on_done_ctx = ctx;
	}
	return gf_embed_leave(x, rc);
}
