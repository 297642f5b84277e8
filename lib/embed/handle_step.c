/* SPDX-License-Identifier: BSD-3-Clause */
/* An exchange's steps, and the order of calls. */
#include <errno.h>
#include <string.h>

#include "embed/handle.h"

#define API __attribute__((visibility("default")))

/* --- which calls are allowed ---------------------------------------------- */

static _Thread_local bool in_callback;

int gf_embed_reach(struct gradflow_exchange *x, const char *call,
		   struct gf_error *err)
{
	if (in_callback)
		return gf_error_set(err, -EBUSY,
				    "%s: called by a callback of "
				    "gradflow_on_done, which may call "
				    "gradflow_test alone",
				    call);
	return gf_job_reach(x ? &x->job : NULL, call, err);
}

int gf_embed_enter(struct gradflow_exchange *x, const char *call,
		   struct gf_error *err)
{
	int rc = gf_embed_reach(x, call, err);

	if (!rc && gf_job_failed(&x->job, err))
		rc = gf_embed_leave(x, x->job.failed);
	return rc;
}

int gf_embed_leave(struct gradflow_exchange *x, int rc)
{
	return gf_job_leave(&x->job, rc);
}

int gf_embed_between(const struct gradflow_exchange *x, const char *call,
		     struct gf_error *err)
{
	return x->begun ? gf_error_set(err, -EINVAL,
				       "%s: want it between steps, got it "
				       "within step %zu: call gradflow_wait "
				       "for GRADFLOW_ALL first",
				       call, (size_t)x->job.steps + 1)
			: 0;
}

/* The host does not know what a GPU has done. */
static int on_host(const struct gradflow_exchange *x, const char *call,
		   struct gf_error *err)
{
	return x->job.on_device
		       ? gf_error_set(
				 err, -ENOTSUP,
				 "%s: on a GPU want gradflow_wait for "
				 "GRADFLOW_ALL, which lets the stream wait",
				 call)
		       : 0;
}

static const char *name_of(const struct gradflow_exchange *x, size_t at)
{
	return x->job.plan.model->tensors[at].name;
}

static int check_tensor(const struct gradflow_exchange *x, const char *call,
			size_t tensor, struct gf_error *err)
{
	return tensor < x->job.ntensors
		       ? 0
		       : gf_error_set(err, -EINVAL,
				      "%s: want a tensor below %zu, got %zu",
				      call, x->job.ntensors, tensor);
}

/* --- steps ---------------------------------------------------------------- */

/* On a GPU what the step before has decided holds from now on. */
static int begin(struct gradflow_exchange *x, struct gf_error *err)
{
	struct gf_exchange *e = x->job.exchange;
	bool bad; /* all of it has come back as NaN */
	int rc = gf_exchange_learn(e, &bad, err);

	if (rc < 0)
		return gf_job_keep(&x->job, rc, err);
	x->begun = true;
	x->flushed = false;
	(void)gf_exchange_begin(e, (size_t)x->job.steps + 1, 1);
	gf_exchange_list(e, 1);
	return 0;
}

int gf_embed_flush(struct gradflow_exchange *x, struct gf_error *err)
{
	int rc = x->begun ? 0 : begin(x, err);

	if (rc)
		return rc;
	if (!x->flushed)
		gf_exchange_backward_end(x->job.exchange);
	x->flushed = true;
	return gf_job_keep(&x->job, gf_exchange_check(x->job.exchange, err),
			   err);
}

static int check_memory(const struct gradflow_exchange *x, const char *call,
			const struct gradflow_gradient *g, struct gf_error *err)
{
	const size_t at = x->job.order[g->tensor];
	const struct gf_tensor *t = &x->job.plan.model->tensors[at];
	const enum gf_dtype *dtype = gf_embed_dtype(g->dtype);
	const size_t bytes = gf_dtype_bytes(x->dtypes[at]);

	if (!dtype || *dtype != x->dtypes[at] || g->count != t->count_elems)
		return gf_error_set(
			err, -EINVAL,
			"%s: tensor %zu (%s): want %zu elements of %s, as it "
			"was opened, got %zu of %s",
			call, g->tensor, t->name, t->count_elems,
			gf_dtype_names[x->dtypes[at]], g->count,
			dtype ? gf_dtype_names[*dtype] : "no known type");
	if (!g->data || (uintptr_t)g->data % bytes)
		return gf_error_set(err, -EINVAL,
				    "%s: tensor %zu (%s): want "
				    "memory at a multiple of %zu bytes, got %p",
				    call, g->tensor, t->name, bytes, g->data);
	return 0;
}

static int check_post(const struct gradflow_exchange *x,
		      const struct gradflow_gradient *g, struct gf_error *err)
{
	const char *call = atomic_load(&x->job.calling);
	const size_t step = (size_t)x->job.steps + 1, tensor = g->tensor;
	size_t at;
	int rc = check_tensor(x, call, tensor, err);

	rc = rc ? rc : check_memory(x, call, g, err);
	if (rc)
		return rc;
	at = x->job.order[tensor];
	if (x->begun && x->flushed)
		return gf_error_set(err, -EINVAL,
				    "%s: tensor %zu (%s): step %zu "
				    "is complete: call gradflow_wait for "
				    "GRADFLOW_ALL first",
				    call, tensor, name_of(x, at), step);
	if (x->posted[at])
		return gf_error_set(err, -EINVAL,
				    "%s: tensor %zu (%s): want it "
				    "once in step %zu, got it again",
				    call, tensor, name_of(x, at), step);
	return 0;
}

/* Marks all of them, or none. */
static int mark(struct gradflow_exchange *x, const struct gradflow_gradient *g,
		size_t n, struct gf_error *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < n; i++) {
		rc = check_post(x, &g[i], err);
		if (rc)
			break;
		x->batch[i] = x->job.order[g[i].tensor];
		x->posted[x->batch[i]] = true;
	}
	while (rc && i-- > 0)
		x->posted[x->batch[i]] = false;
	return rc;
}

static int post(struct gradflow_exchange *x, const struct gradflow_gradient *g,
		size_t n, struct gf_error *err)
{
	struct gf_exchange *e = x->job.exchange;
	size_t i;
	int rc = mark(x, g, n, err);

	rc = rc ? rc : gf_job_keep(&x->job, gf_exchange_check(e, err), err);
	if (!rc && n && !x->begun)
		rc = begin(x, err);
	if (rc || !n)
		return rc;
	for (i = 0; i < n; i++)
		gf_exchange_post(e, x->batch[i], g[i].data);
	gf_exchange_ready(e, x->batch, n);
	x->nposted += n;
	while (x->front < x->job.ntensors && x->posted[x->front])
		x->front++;
	return x->nposted == x->job.ntensors ? gf_embed_flush(x, err) : 0;
}

API int gradflow_post_gradients(struct gradflow_exchange *x,
				const struct gradflow_gradient *gradients,
				size_t n)
{
	static const char call[] = "gradflow_post_gradients";
	struct gf_error *err = gf_embed_error();
	int rc = gf_embed_enter(x, call, err);

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	if (n && !gradients)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want %zu gradients, got NULL", call, n);
	return gf_embed_leave(x, rc ? rc : post(x, gradients, n, err));
}

API int gradflow_flush(struct gradflow_exchange *x)
{
	struct gf_error *err = gf_embed_error();
	int rc = gf_embed_enter(x, "gradflow_flush", err);

	if (rc)
		return rc;
	GF_EMBED_GUARD(x);
	return gf_embed_leave(x, gf_embed_flush(x, err));
}

API int gradflow_test(struct gradflow_exchange *x, size_t tensor)
{
	struct gf_error *err = gf_embed_error();
	const struct gf_exchange *e;
	size_t i, first = 0, last;
	int rc;

	if (!gf_job_is_here(x ? &x->job : NULL))
		return gf_error_set(err, -EINVAL,
				    "gradflow_test: want an exchange that this "
				    "process has opened");
	e = x->job.exchange;
	rc = on_host(x, "gradflow_test", err);
	if (!rc && (!e || gf_job_is_lost(&x->job))) /* or half a load */
		rc = gf_job_failed(&x->job, err);
	if (!rc && tensor != GRADFLOW_ALL)
		rc = check_tensor(x, "gradflow_test", tensor, err);
	if (rc)
		return rc;
	last = x->job.ntensors - 1;
	if (tensor != GRADFLOW_ALL)
		first = last = x->job.order[tensor];
	for (i = first; i <= last && gf_exchange_is_back(e, i); i++)
		;
	if (i > last)
		return 1;
	/* a callback may be one of a thread that has the engine's lock */
	return in_callback ? 0 : gf_exchange_check(x->job.exchange, err);
}

/* The last tensor of the plan that a tensor's mean waits for. */
static size_t needs(const struct gradflow_exchange *x, size_t tensor)
{
	return tensor == GRADFLOW_ALL ? x->job.ntensors - 1
				      : gf_exchange_needs(x->job.exchange,
							  x->job.order[tensor]);
}

/* Would it end? */
static int check_wait(const struct gradflow_exchange *x, size_t tensor,
		      struct gf_error *err)
{
	int rc = tensor == GRADFLOW_ALL
			 ? 0
			 : check_tensor(x, "gradflow_wait", tensor, err);

	if (!rc && tensor != GRADFLOW_ALL)
		rc = on_host(x, "gradflow_wait", err);
	if (rc || x->flushed || x->front > needs(x, tensor))
		return rc;
	return gf_error_set(err, -EINVAL,
			    "gradflow_wait, step %zu: tensor %zu (%s) has not "
			    "been posted: post it, or call gradflow_flush",
			    (size_t)x->job.steps + 1, x->caller[x->front],
			    name_of(x, x->front));
}

static int wait_all(struct gradflow_exchange *x, struct gf_error *err)
{
	int rc = gf_exchange_take_all(x->job.exchange, err);

	if (rc)
		return rc;
	x->begun = false;
	x->nposted = x->front = 0;
	memset(x->posted, 0, x->job.ntensors * sizeof(*x->posted));
	x->job.steps++;
	return 0;
}

static int wait(struct gradflow_exchange *x, size_t tensor,
		struct gf_error *err)
{
	int rc;

	if (!x->begun)
		return tensor == GRADFLOW_ALL
			       ? 0
			       : check_tensor(x, "gradflow_wait", tensor, err);
	rc = check_wait(x, tensor, err);
	if (rc)
		return rc;
	rc = tensor == GRADFLOW_ALL
		     ? wait_all(x, err)
		     : gf_exchange_wait_tensor(x->job.exchange,
					       x->job.order[tensor], err);
	return gf_job_keep(&x->job, rc, err);
}

API int gradflow_wait(struct gradflow_exchange *x, size_t tensor)
{
	struct gf_error *err = gf_embed_error();
	int rc = gf_embed_enter(x, "gradflow_wait", err);

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

API int gradflow_on_done(struct gradflow_exchange *x,
			 void (*fn)(void *ctx, size_t tensor, int status),
			 void *ctx)
{
	struct gf_error *err = gf_embed_error();
	int rc = gf_embed_enter(x, "gradflow_on_done", err);

	if (rc)
		return rc;
	rc = gf_embed_between(x, "gradflow_on_done", err);
	if (!rc && fn)
		rc = on_host(x, "gradflow_on_done", err);
	if (!rc) {
		x->on_done = fn;
		x->on_done_ctx = ctx;
	}
	return gf_embed_leave(x, rc);
}
