/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan of an exchange, as its caller has it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "doc/stream.h"
#include "doc/wants.h"
#include "embed/handle.h"

/* A rate / (1 - momentum) wants a momentum below 1. */
#define MOST_MOMENTUM 0.999

#define API __attribute__((visibility("default")))

int gf_embed_plan_text(struct gf_plan *plan, const char *text,
		       struct gf_error *err)
{
	struct gf_documents d = {0};
	int rc =
		gf_documents_add_text(&d, text, strlen(text), "plan_text", err);

	if (!rc && !d.plan)
		rc = gf_error_set(err, -EINVAL,
				  "plan_text: want a gf-plan document, found "
				  "none");
	if (!rc)
		gf_plan_copy(plan, d.plan);
	gf_documents_release(&d);
	return rc;
}

int gf_embed_plan_check(const struct gf_plan *plan, bool on_device,
			struct gf_error *err)
{
	size_t i;

	for (i = 0; i < plan->nmessages; i++)
		if (plan->messages[i].half != GF_HALF_ALL)
			return gf_error_set(err, -ENOTSUP,
					    "message %zu: want half \"all\", "
					    "got \"split\", whose all-gather "
					    "ends in a forward pass, which is "
					    "the caller's",
					    i);
	return on_device ? gf_exchange_check_gpu(plan, err)
			 : gf_exchange_check_plan(plan, err);
}

API int gradflow_exchange_check(const char *plan_text, int on_device)
{
	struct gf_error *err = gf_embed_error();
	const locale_t before = gf_locale_enter();
	struct gf_plan plan = {0};
	struct gf_heap_guard guard GF_HEAP_GUARD;
	int rc;

	if (GF_HEAP_FAILS(guard)) {
		gf_locale_leave(before);
		return gf_error_set(err, -ENOMEM, "%s", guard.line);
	}
	rc = plan_text ? gf_embed_plan_text(&plan, plan_text, err) : 0;
	/* how long an epoch is, is said later */
	if (!rc && plan_text) {
		gf_plan_settle(&plan, 1, 0);
		rc = gf_embed_plan_check(&plan, on_device, err);
	}
	gf_plan_release(&plan);
	gf_locale_leave(before);
	return rc;
}

static void put_wants(const struct gf_plan *plan, double momentum,
		      bool nesterov, struct gf_text *out)
{
	struct gf_text why = {0};
	struct gf_wants w = gf_plan_wants(
		plan, nesterov, fmin(fmax(momentum, 0), MOST_MOMENTUM), &why);

	if (momentum > w.momentum)
		gf_text_addf(out, "momentum %g, not %g, ", w.momentum,
			     momentum);
	if (w.share < 1)
		gf_text_addf(out, "%.2g of a rate that suits dense gradients, ",
			     w.share);
	if (w.clipped < w.share)
		gf_text_addf(out,
			     "%.2g of a rate that suits dense gradients if "
			     "they are clipped, ",
			     w.clipped);
	if (out->length)
		gf_text_addf(out, "because %s", why.data);
	gf_text_release(&why);
}

API const char *gradflow_exchange_wants(const char *plan_text, double momentum,
					int nesterov)
{
	struct gf_error *err = gf_embed_error();
	const locale_t before = gf_locale_enter();
	struct gf_heap_guard guard GF_HEAP_GUARD;
	struct gf_plan plan = {0};
	struct gf_text out = {0};

	if (GF_HEAP_FAILS(guard)) {
		gf_locale_leave(before);
		return "";
	}
	if (plan_text && !gf_embed_plan_text(&plan, plan_text, err))
		put_wants(&plan, momentum, nesterov != 0, &out);
	gf_error_set(err, 0, "%s", out.length ? out.data : "");
	gf_text_release(&out);
	gf_plan_release(&plan);
	gf_locale_leave(before);
	return err->text;
}

int gf_embed_plan_cut(struct gf_plan *plan,
		      const struct gradflow_exchange_options *o,
		      struct gf_error *err)
{
	const struct gf_message like = plan->messages[0];
	const size_t n = plan->model->ntensors;
	struct gf_message *messages;
	size_t i, at = 0;

	for (i = 0; i < o->nmessages; i++) {
		if (!o->messages[i] || o->messages[i] > n - at)
			return gf_error_set(err, -EINVAL,
					    "message %zu: want 1 to %zu "
					    "tensors, got %zu",
					    i, n - at, o->messages[i]);
		at += o->messages[i];
	}
	if (at < n)
		return gf_error_set(err, -EINVAL,
				    "messages: want %zu tensors in all, got "
				    "%zu",
				    n, at);
	messages = gf_xcalloc(o->nmessages, sizeof(*messages));
	for (i = 0, at = 0; i < o->nmessages; i++) {
		messages[i] = like;
		messages[i].algorithm = gf_xstrdup(like.algorithm);
		messages[i].codec = gf_xstrdup(like.codec);
		messages[i].first = at;
		at += o->messages[i];
		messages[i].last = at - 1;
	}
	for (i = 0; i < plan->nmessages; i++) {
		free(plan->messages[i].algorithm);
		free(plan->messages[i].codec);
	}
	free(plan->messages);
	plan->messages = messages;
	plan->nmessages = o->nmessages;
	gf_plan_set_types(plan);
	return 0;
}

const enum gf_dtype *gf_embed_dtype(unsigned given)
{
	static const enum gf_dtype known[] = {[GRADFLOW_F32] = GF_F32,
					      [GRADFLOW_F16] = GF_F16,
					      [GRADFLOW_BF16] = GF_BF16,
					      [GRADFLOW_F64] = GF_F64};

	return given < GF_ARRAY_LENGTH(known) ? &known[given] : NULL;
}

int gf_embed_take_dtypes(struct gradflow_exchange *x,
			 const enum gradflow_dtype *given, struct gf_error *err)
{
	const struct gf_job *job = &x->job;
	size_t i;

	x->dtypes = gf_xcalloc(job->ntensors, sizeof(*x->dtypes));
	x->caller = gf_xcalloc(job->ntensors, sizeof(*x->caller));
	x->posted = gf_xcalloc(job->ntensors, sizeof(*x->posted));
	x->batch = gf_xcalloc(job->ntensors, sizeof(*x->batch));
	for (i = 0; i < job->ntensors; i++) {
		const unsigned number = given ? (unsigned)given[i] : 0;
		const enum gf_dtype *dtype = gf_embed_dtype(number);

		if (!dtype)
			return gf_error_set(err, -EINVAL,
					    "dtypes: tensor %zu: want "
					    "GRADFLOW_F32, _F16, _BF16 or "
					    "_F64, got %d",
					    i, (int)number);
		x->dtypes[job->order[i]] = *dtype;
		x->caller[job->order[i]] = i;
	}
	return 0;
}
