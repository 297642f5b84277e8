/* SPDX-License-Identifier: BSD-3-Clause */
#include "rt/bind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "codec/codec.h"
#include "coll/algorithm.h"

/* The threshold policy (SYSTEMS section 1): send once what waits is more than
 * the threshold. */
static void fuse(struct gf_plan *whole, const struct gf_rule *rule)
{
	const struct gf_model_profile *model = whole->model;
	size_t waiting_bytes = 0, first = 0, capacity = 0, i;
	struct gf_message *m;

	for (i = 0; i < model->ntensors; i++) {
		waiting_bytes += gf_tensor_bytes(&model->tensors[i]);
		if (waiting_bytes <= rule->threshold_bytes &&
		    i + 1 < model->ntensors)
			continue;
		m = gf_array_push(&whole->messages, &whole->nmessages,
				  &capacity);
		m->first = first;
		m->last = i;
		m->mode =
			rule->lanes > 1 ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL;
		m->release = GF_RELEASE_READY;
		m->half = GF_HALF_ALL;
		m->algorithm =
			gf_xstrdup(gf_rule_algorithm_for(rule, waiting_bytes));
		m->codec = gf_xstrdup("f32");
		first = i + 1;
		waiting_bytes = 0;
	}
}

/* Algorithms that work level by level take their factors from the levels, when
 * these are of as many ranks; they do without otherwise. */
static void decompose(const struct gf_plan *whole, struct gf_message *m)
{
	static const char *const by_level[] = {"blueconnect", "hierarchical"};
	size_t capacity = 0, i;
	struct gf_stage *stage;

	for (i = 0; i < GF_ARRAY_LENGTH(by_level); i++)
		if (!strcmp(m->algorithm, by_level[i]))
			break;
	if (i == GF_ARRAY_LENGTH(by_level) || !whole->nlevels ||
	    gf_levels_ranks(whole->levels, whole->nlevels) != whole->ranks)
		return;
	for (i = 0; i < whole->nlevels; i++) {
		size_t size = whole->levels[i].size;

		if (size < 2)
			continue;
		stage = gf_array_push(&m->stages, &m->nstages, &capacity);
		stage->factor = (int)size;
		stage->algorithm =
			gf_xstrdup(size & (size - 1) ? "ring" : "halving");
	}
}

int gf_plan_bind(const struct gf_plan *rule,
		 const struct gf_model_profile *model, int ranks,
		 struct gf_plan *whole, struct gf_error *err)
{
	struct gf_plan w, shallow;
	size_t i;
	int rc;

	if (!rule->rule)
		return gf_error_set(err, -EINVAL,
				    "want a rule plan, got one that is bound "
				    "to %d ranks",
				    rule->ranks);
	if (!model->ntensors || ranks < 1)
		return gf_error_set(err, -EINVAL,
				    "want tensors and ranks to bind a rule "
				    "to, got %zu and %d",
				    model->ntensors, ranks);
	/* Copy all but the rule: what remains describes a whole plan. */
	shallow = *rule;
	shallow.rule = NULL;
	shallow.model = NULL;
	gf_plan_copy(&w, &shallow);
	w.model = gf_model_profile_copy(model);
	w.ranks = ranks;
	w.lanes = rule->rule->lanes;
	w.threshold_bytes = rule->rule->threshold_bytes;
	fuse(&w, rule->rule);
	for (i = 0; i < w.nmessages; i++)
		decompose(&w, &w.messages[i]);
	gf_plan_set_types(&w);
	rc = gf_plan_check(&w, err);
	if (rc)
		gf_plan_release(&w);
	else
		*whole = w;
	return rc;
}

int gf_plan_check_ranks(const struct gf_plan *plan, int ranks,
			struct gf_error *err)
{
	if (plan->ranks + plan->servers == ranks)
		return 0;
	if (plan->servers)
		return gf_error_set(err, -EINVAL,
				    "the plan is for %d ranks and a server, "
				    "this job has %d",
				    plan->ranks, ranks);
	return gf_error_set(err, -EINVAL,
			    "the plan is for %d ranks, this job has %d",
			    plan->ranks, ranks);
}

int gf_plan_fit(const struct gf_plan *plan,
		const struct gf_model_profile *model, int ranks,
		struct gf_error *err)
{
	const struct gf_tensor *want, *got;
	size_t i;

	if (!plan->model || plan->rule)
		return gf_error_set(err, -EINVAL,
				    "want a plan bound to a model, got a "
				    "rule");
	if (gf_plan_check_ranks(plan, ranks, err))
		return -EINVAL;
	if (plan->model->ntensors != model->ntensors)
		return gf_error_set(err, -EINVAL,
				    "the plan (%s) has %zu tensors, the model "
				    "(%s) has %zu",
				    plan->model->name, plan->model->ntensors,
				    model->name, model->ntensors);
	for (i = 0; i < model->ntensors; i++) {
		want = &plan->model->tensors[i];
		got = &model->tensors[i];
		if (want->count_elems == got->count_elems &&
		    !strcmp(want->name, got->name))
			continue;
		return gf_error_set(err, -EINVAL,
				    "tensor %zu: the plan (%s) has %s of %zu "
				    "elements, the model (%s) has %s of %zu",
				    i, plan->model->name, want->name,
				    want->count_elems, model->name, got->name,
				    got->count_elems);
	}
	return 0;
}

static int check_message(const struct gf_message *m, size_t index,
			 struct gf_error *err)
{
	const struct gf_algorithm *a;
	const struct gf_codec *codec;

	codec = gf_codec_find(m->codec);
	if (!codec)
		return gf_error_set(err, -ENOTSUP,
				    "message %zu: this build has no codec "
				    "\"%s\"",
				    index, m->codec);
	a = gf_algorithm_find(m->algorithm);
	if (!a)
		return gf_error_set(err, -ENOTSUP,
				    "message %zu: this build has no algorithm "
				    "\"%s\"",
				    index, m->algorithm);
	if (m->half == GF_HALF_SPLIT && !a->owned)
		return gf_error_set(err, -ENOTSUP,
				    "message %zu: algorithm \"%s\" has no "
				    "halves for \"split\"",
				    index, m->algorithm);
	if (!a->build && !codec->adds)
		return gf_error_set(err, -ENOTSUP,
				    "message %zu: algorithm \"%s\" adds "
				    "numbers, and what codec \"%s\" sends "
				    "are none",
				    index, m->algorithm, m->codec);
	return 0;
}

int gf_plan_runnable(const struct gf_plan *plan, struct gf_error *err)
{
	size_t i;
	int rc = 0;

	if (!plan->model || plan->rule)
		return gf_error_set(err, -EINVAL,
				    "want a plan bound to a model, got a "
				    "rule");
	if (plan->servers && plan->selection.method != GF_SELECT_DENSE)
		return gf_error_set(err, -ENOTSUP,
				    "servers: add whole gradients, and "
				    "selection \"%s\" sends others",
				    gf_select_names[plan->selection.method]);
	for (i = 0; i < plan->model->ntensors && !rc; i++)
		if (plan->model->tensors[i].dtype != GF_F32)
			rc = gf_error_set(
				err, -ENOTSUP,
				"tensor %zu: this build runs f32 gradients, "
				"got %s",
				i,
				gf_dtype_names[plan->model->tensors[i].dtype]);
	for (i = 0; i < plan->nmessages && !rc; i++)
		rc = check_message(&plan->messages[i], i, err);
	return rc;
}
