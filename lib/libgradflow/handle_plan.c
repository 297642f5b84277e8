/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan of an exchange, as its caller has it, bound to the caller's tensors.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "profiler/autotune/ways.h"
#include "collectives/runnable.h"
#include "documents/stream.h"
#include "documents/optimizer_bounds.h"
#include "libgradflow/handle.h"
#include "cuda/lanes/nccl.h"
#include "trainer/options.h"
#include "trainer/choose_ways.h"

/* A rate / (1 - momentum) wants a momentum below 1. */
#define MOST_MOMENTUM 0.999

#define API __attribute__((visibility("default")))

int gf_embed_plan_text(struct gf_plan *plan, const char *text, struct gf_error *err)
{
	GF_RELEASED(gf_documents_release) struct gf_documents d = {0};
	int rc = gf_documents_add_text(&d, text, strlen(text), "plan_text", err);

	if (!rc && !d.plan)
		rc = gf_error_set(err, -EINVAL, "plan_text: want a gf-plan document, found none");
	if (!rc)
		gf_plan_copy(plan, d.plan);
	return rc;
}

static int check(const struct gf_plan *plan, bool on_device, struct gf_error *err)
{
	size_t i;

	for (i = 0; i < plan->nmessages; i++)
		if (plan->messages[i].half != GF_HALF_ALL)
			return gf_error_set(
				err, -ENOTSUP,
				"message %zu: want half \"all\", got \"split\", whose all-gather "
				"ends in a forward pass, which is the caller's",
				i);
	return gf_exchange_check_plan(plan, on_device, err);
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
		rc = check(&plan, on_device, err);
	}
	gf_plan_release(&plan);
	gf_locale_leave(before);
	return rc;
}

static void put_wants(const struct gf_plan *plan, double momentum, bool nesterov,
		      struct gf_text *out)
{
	GF_RELEASED(gf_text_release) struct gf_text why = {0};
	struct gf_wants w =
		gf_plan_wants(plan, nesterov, fmin(fmax(momentum, 0), MOST_MOMENTUM), &why);

	if (momentum > w.momentum)
		gf_text_addf(out, "momentum %g, not %g, ", w.momentum, momentum);
	if (w.share < 1)
		gf_text_addf(out, "%.2g of a rate that suits dense gradients, ", w.share);
	if (w.clipped < w.share)
		gf_text_addf(out, "%.2g of a rate that suits dense gradients if they are clipped, ",
			     w.clipped);
	if (out->length)
		gf_text_addf(out, "because %s", why.data);
}

API const char *gradflow_exchange_wants(const char *plan_text, double momentum, int nesterov)
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

/* --- and its tensors ------------------------------------------------------ */

const enum gf_dtype *gf_embed_dtype(unsigned given)
{
	static const enum gf_dtype known[] = {[GRADFLOW_F32] = GF_F32,
					      [GRADFLOW_F16] = GF_F16,
					      [GRADFLOW_BF16] = GF_BF16,
					      [GRADFLOW_F64] = GF_F64};

	return given < GF_ARRAY_LENGTH(known) ? &known[given] : NULL;
}

/* The tensors' types and numbers by the plan's order. given: NULL: all f32. */
static int take_dtypes(struct gradflow_exchange *x, const enum gradflow_dtype *given,
		       struct gf_error *err)
{
	size_t i;

	x->dtypes = gf_xcalloc(x->ntensors, sizeof(*x->dtypes));
	x->caller = gf_xcalloc(x->ntensors, sizeof(*x->caller));
	x->posted = gf_xcalloc(x->ntensors, sizeof(*x->posted));
	x->batch = gf_xcalloc(x->ntensors, sizeof(*x->batch));
	for (i = 0; i < x->ntensors; i++) {
		const unsigned number = given ? (unsigned)given[i] : 0;
		const enum gf_dtype *dtype = gf_embed_dtype(number);

		if (!dtype)
			return gf_error_set(err, -EINVAL,
					    "dtypes: tensor %zu: want GRADFLOW_F32, _F16, _BF16 or "
					    "_F64, got %d",
					    i, (int)number);
		x->dtypes[x->order[i]] = *dtype;
		x->caller[x->order[i]] = i;
	}
	return 0;
}

static size_t count_of(const struct gradflow_tensor *t)
{
	size_t count = 1, i;

	for (i = 0; i < t->dimensions; i++)
		count *= t->shape[i];
	return count;
}

/* Where the caller's tensor `name` is, or ntensors. */
static size_t find(const struct gradflow_tensor *tensors, size_t ntensors, const char *name,
		   size_t near)
{
	size_t i;

	for (i = 0; i < ntensors; i++) {
		size_t at = (near + i) % ntensors;

		if (!strcmp(tensors[at].name, name))
			return at;
	}
	return ntensors;
}

/* Numbers the tensors as a whole plan does, where it knows all of them; what it does not know
 * gf_plan_fit names. */
static void set_order(struct gradflow_exchange *x, const struct gradflow_tensor *tensors)
{
	const struct gf_model_profile *m = x->plan.model;
	size_t *order = gf_xcalloc(x->ntensors, sizeof(*order)), i, at = 0;

	for (i = 0; i < x->ntensors; i++)
		x->order[i] = i;
	if (m && m->ntensors == x->ntensors) {
		for (i = 0; i < x->ntensors; i++) {
			at = find(tensors, x->ntensors, m->tensors[i].name, at);
			if (at == x->ntensors)
				break;
			order[at++] = i;
		}
		if (i == x->ntensors)
			memcpy(x->order, order, i * sizeof(*order));
	}
	free(order);
}

/* The tensors in that order, as a profile that knows no times. */
static struct gf_model_profile *list_tensors(const struct gradflow_exchange *x,
					     const struct gradflow_tensor *tensors)
{
	struct gf_model_profile *out = gf_model_profile_untimed(
		x->plan.model ? x->plan.model->name : "embedded", x->ntensors);
	size_t i;

	for (i = 0; i < x->ntensors; i++) {
		struct gf_tensor *t = &out->tensors[x->order[i]];

		t->name = gf_xstrdup(tensors[i].name);
		t->count_elems = count_of(&tensors[i]);
		gf_tensor_set_shape(t, tensors[i].shape, tensors[i].dimensions);
	}
	return out;
}

/* Dimensions beyond what documents have are one. */
static void set_shape(struct gf_shape *s, const struct gradflow_tensor *t)
{
	size_t i;

	for (i = 0; i < t->dimensions; i++) {
		if (i < GF_MODEL_MAX_RANK)
			s->dims[s->rank++] = t->shape[i];
		else
			s->dims[GF_MODEL_MAX_RANK - 1] *= t->shape[i];
	}
}

static void place(struct gradflow_exchange *x, const struct gradflow_tensor *tensors)
{
	size_t i;

	x->shapes = gf_xcalloc(x->ntensors, sizeof(*x->shapes));
	x->offset = gf_xcalloc(x->ntensors + 1, sizeof(*x->offset));
	for (i = 0; i < x->ntensors; i++) {
		set_shape(&x->shapes[x->order[i]], &tensors[i]);
		x->offset[x->order[i] + 1] = count_of(&tensors[i]);
	}
	for (i = 0; i < x->ntensors; i++)
		x->offset[i + 1] += x->offset[i];
}

static int same_tensors(struct gradflow_exchange *x, const struct gf_model_profile *m,
			struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text text = {0};
	size_t i;

	for (i = 0; i < m->ntensors; i++)
		gf_text_addf(&text, "%s%s %zu", i ? ", " : "", m->tensors[i].name,
			     m->tensors[i].count_elems);
	return gf_comm_same_text(x->comm, "tensors", text.data, err);
}

/* --- both ----------------------------------------------------------------- */

/* The caller's own messages, in the way of the plan's first. */
static int cut(struct gf_plan *plan, const struct gradflow_exchange_options *o,
	       struct gf_error *err)
{
	const struct gf_message like = plan->messages[0];
	const size_t n = plan->model->ntensors;
	struct gf_message *messages;
	size_t i, at = 0;

	for (i = 0; i < o->nmessages; i++) {
		if (!o->messages[i] || o->messages[i] > n - at)
			return gf_error_set(err, -EINVAL,
					    "message %zu: want 1 to %zu tensors, got %zu", i,
					    n - at, o->messages[i]);
		at += o->messages[i];
	}
	if (at < n)
		return gf_error_set(err, -EINVAL, "messages: want %zu tensors in all, got %zu", n,
				    at);
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

/* The GPU, and the memory that messages are packed into. */
static int open_device(struct gradflow_exchange *x, const struct gradflow_exchange_options *o,
		       struct gf_error *err)
{
	const size_t count = x->offset[x->ntensors];
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
				  "stream: want the one that makes gradients, got NULL");
	return rc ? rc : d->gpu->ops->alloc(d->gpu, count * sizeof(float), &x->pool, err);
}

/* A plan that fits: it becomes the caller's, and is one that can be done. */
static int adapt(struct gradflow_exchange *x, const struct gradflow_exchange_options *o,
		 struct gf_error *err)
{
	struct gf_plan *plan = &x->plan;
	int rc = o->messages ? cut(plan, o, err) : 0;

	rc = rc ? rc : take_dtypes(x, o->dtypes, err);
	if (!rc && plan->staleness > 1)
		rc = gf_error_set(err, -ENOTSUP,
				  "staleness %d: an exchange gives back the means of the step "
				  "itself: want 1, and for stale gradients wait for a step when "
				  "the next one has been computed",
				  plan->staleness);
	if (!rc && o->flat && gf_selection_has(&plan->selection, GF_SELECT_SHAPES))
		rc = gf_error_set(err, -ENOTSUP,
				  "selection %s: it works on the shapes of tensors, and these are "
				  "flat pieces of others: want another selection",
				  gf_selection_name(&plan->selection));
	if (rc)
		return rc;
	if (x->halves && x->on_device)
		return gf_error_set(err, -ENOTSUP,
				    "halves: want memory of the host, got a GPU's: NCCL has "
				    "ncclReduceScatter and ncclAllGather");
	if (x->halves)
		return gf_exchange_check_halves(plan, err);
	gf_exchange_set_codecs(plan, x->dtypes);
	if (x->on_device) /* without a plan as NCCL has it */
		gf_train_use_library(plan, o->plan || o->plan_text);
	rc = check(plan, x->on_device, err);
	return rc || !x->on_device ? rc : open_device(x, o, err);
}

int gf_embed_bind(struct gradflow_exchange *x, const struct gradflow_tensor *tensors,
		  const struct gradflow_exchange_options *o, struct gf_error *err)
{
	struct gf_train_config config = {
		.comm = x->comm, .plan = &x->plan, .timeout_s = x->timeout_s, .halves = x->halves};
	struct gf_model_profile *model;
	int rc = 0;

	if (o->plan)
		rc = gf_train_read_plan(x->comm, 0, o->plan, &x->plan, err);
	else if (!o->plan_text)
		gf_train_default_plan(&x->plan, false);
	if (rc)
		return rc;
	x->order = gf_xcalloc(x->ntensors, sizeof(*x->order));
	set_order(x, tensors);
	model = list_tensors(x, tensors);
	place(x, tensors);
	rc = same_tensors(x, model, err);
	rc = rc ? rc : gf_choose_place(x->comm, &x->plan, x->on_device, err);
	if (!rc) {
		gf_plan_settle(&x->plan, (double)x->epoch_steps, 0);
		if (x->plan.servers)
			rc = gf_error_set(err, -ENOTSUP,
					  "want a plan without servers, got one that has %d",
					  x->plan.servers);
		rc = rc ? rc : gf_train_fit(&x->plan, model, x->comm->ranks, err);
		rc = rc ? rc : adapt(x, o, err);
		if (rc && o->plan)
			gf_error_prefix(err, "%s", o->plan);
		rc = gf_comm_agree(x->comm, rc, err);
	}
	gf_model_profile_free(model);
	if (rc)
		return rc;
	x->asked = gf_train_ways(&x->plan);
	if (o->ways && gf_train_is_open(&x->plan)) {
		rc = gf_train_take_ways(&x->plan, o->ways, err);
		rc = rc ? rc : gf_plan_runnable(&x->plan, err);
		if (rc)
			gf_error_prefix(err, "ways");
	}
	return rc ? rc : gf_train_choose(&config, &x->plan, err);
}
