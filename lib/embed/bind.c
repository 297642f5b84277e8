/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"
#include "choose/ways.h"
#include "embed/embedded.h"
#include "coll/runnable.h"
#include "train/assign.h"
#include "train/choose_ways.h"

static size_t count_of(const struct gradflow_tensor *t)
{
	size_t count = 1, i;

	for (i = 0; i < t->dimensions; i++)
		count *= t->shape[i];
	return count;
}

/* Of at most so many elements. */
static int check_one(const struct gradflow_tensor *t, size_t index, size_t most,
		     struct gf_error *err)
{
	size_t i;

	if (!t->name || !t->name[0])
		return gf_error_set(err, -EINVAL,
				    "tensor %zu: want a name, got none", index);
	if (t->dimensions < 1 || t->dimensions > GRADFLOW_DIMENSIONS)
		return gf_error_set(err, -EINVAL,
				    "tensor %zu (%s): want 1 to %d dimensions, "
				    "got %zu",
				    index, t->name, GRADFLOW_DIMENSIONS,
				    t->dimensions);
	for (i = 0; i < t->dimensions; i++) {
		if (!t->shape[i] || t->shape[i] > most)
			return gf_error_set(err, -EINVAL,
					    "tensor %zu (%s): dimension %zu: "
					    "want 1 or more, and memory for "
					    "them, got %zu",
					    index, t->name, i, t->shape[i]);
		most /= t->shape[i];
	}
	return 0;
}

int gf_embed_check(const struct gradflow_tensor *tensors, size_t ntensors,
		   struct gf_error *err)
{
	size_t left = SIZE_MAX / 16, i, k;
	int rc = 0;

	for (i = 0; i < ntensors && !rc; i++) {
		rc = check_one(&tensors[i], i, left, err);
		left -= rc ? 0 : count_of(&tensors[i]);
	}
	for (i = 0; i < ntensors && !rc; i++)
		for (k = 0; k < i && !rc; k++)
			if (!strcmp(tensors[i].name, tensors[k].name))
				rc = gf_error_set(
					err, -EINVAL,
					"tensor %zu: want a name of its own, "
					"got tensor %zu's, %s",
					i, k, tensors[i].name);
	return rc;
}

/* Where the caller's tensor `name` is, or ntensors. */
static size_t find(const struct gradflow_tensor *tensors, size_t ntensors,
		   const char *name, size_t near)
{
	size_t i;

	for (i = 0; i < ntensors; i++) {
		size_t at = (near + i) % ntensors;

		if (!strcmp(tensors[at].name, name))
			return at;
	}
	return ntensors;
}

/* Numbers the tensors as a whole plan does, where it knows all of them; what it
 * does not know gf_plan_fit names. */
static void set_order(struct gf_job *g, const struct gradflow_tensor *tensors)
{
	const struct gf_model_profile *m = g->plan.model;
	size_t *order = gf_xcalloc(g->ntensors, sizeof(*order)), i, at = 0;

	for (i = 0; i < g->ntensors; i++)
		g->order[i] = i;
	if (m && m->ntensors == g->ntensors) {
		for (i = 0; i < g->ntensors; i++) {
			at = find(tensors, g->ntensors, m->tensors[i].name, at);
			if (at == g->ntensors)
				break;
			order[at++] = i;
		}
		if (i == g->ntensors)
			memcpy(g->order, order, i * sizeof(*order));
	}
	free(order);
}

/* The tensors in that order, as a profile that knows no times. */
static struct gf_model_profile *
list_tensors(const struct gf_job *g, const struct gradflow_tensor *tensors)
{
	struct gf_model_profile *out = gf_xcalloc(1, sizeof(*out));
	size_t i;

	out->name =
		gf_xstrdup(g->plan.model ? g->plan.model->name : "embedded");
	out->device = gf_xstrdup("cpu");
	out->overlap_slowdown = 1;
	out->ntensors = g->ntensors;
	out->tensors = gf_xcalloc(g->ntensors, sizeof(*out->tensors));
	for (i = 0; i < g->ntensors; i++) {
		struct gf_tensor *t = &out->tensors[g->order[i]];

		t->name = gf_xstrdup(tensors[i].name);
		t->count_elems = count_of(&tensors[i]);
		gf_tensor_set_shape(t, tensors[i].shape, tensors[i].dimensions);
		t->dtype = GF_F32;
		t->need_s = NAN;
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

static void place(struct gf_job *g, const struct gradflow_tensor *tensors)
{
	size_t i;

	g->shapes = gf_xcalloc(g->ntensors, sizeof(*g->shapes));
	g->offset = gf_xcalloc(g->ntensors + 1, sizeof(*g->offset));
	for (i = 0; i < g->ntensors; i++) {
		set_shape(&g->shapes[g->order[i]], &tensors[i]);
		g->offset[g->order[i] + 1] = count_of(&tensors[i]);
	}
	for (i = 0; i < g->ntensors; i++)
		g->offset[i + 1] += g->offset[i];
}

static int same_tensors(struct gf_job *g, const struct gf_model_profile *m,
			struct gf_error *err)
{
	struct gf_text text = {0};
	size_t i;
	int rc;

	for (i = 0; i < m->ntensors; i++)
		gf_text_addf(&text, "%s%s %zu", i ? ", " : "",
			     m->tensors[i].name, m->tensors[i].count_elems);
	rc = gf_comm_same_text(g->comm, "tensors", text.data, err);
	gf_text_release(&text);
	return rc;
}

static int fit(struct gf_plan *plan, const struct gf_model_profile *model,
	       int ranks, struct gf_error *err)
{
	if (plan->servers)
		return gf_error_set(err, -ENOTSUP,
				    "want a plan without servers, got one that "
				    "has %d",
				    plan->servers);
	return gf_train_fit(plan, model, ranks, err);
}

int gf_job_bind(struct gf_job *g, const struct gradflow_tensor *tensors,
		const struct gf_job_plan *from, struct gf_error *err)
{
	struct gf_train_config config = {
		.comm = g->comm, .plan = &g->plan, .timeout_s = g->timeout_s};
	struct gf_model_profile *model;
	int rc = 0;

	if (from->file)
		rc = gf_train_read_plan(g->comm, 0, from->file, &g->plan, err);
	else if (!from->given)
		gf_train_default_plan(&g->plan, false);
	if (rc)
		return rc;
	g->order = gf_xcalloc(g->ntensors, sizeof(*g->order));
	set_order(g, tensors);
	model = list_tensors(g, tensors);
	place(g, tensors);
	rc = same_tensors(g, model, err);
	rc = rc ? rc : gf_choose_place(g->comm, &g->plan, g->on_device, err);
	if (!rc) {
		gf_plan_settle(&g->plan, (double)g->epoch_steps, 0);
		rc = fit(&g->plan, model, g->comm->ranks, err);
		if (!rc && from->settle)
			rc = from->settle(g, from->ctx, err);
		if (rc && from->file)
			gf_error_prefix(err, "%s", from->file);
		rc = gf_comm_agree(g->comm, rc, err);
	}
	gf_model_profile_free(model);
	if (rc)
		return rc;
	g->asked = gf_train_ways(&g->plan);
	if (from->ways && gf_train_is_open(&g->plan)) {
		rc = gf_train_take_ways(&g->plan, from->ways, err);
		rc = rc ? rc : gf_plan_runnable(&g->plan, err);
		if (rc)
			gf_error_prefix(err, "ways");
	}
	return rc ? rc : gf_train_choose(&config, &g->plan, err);
}
