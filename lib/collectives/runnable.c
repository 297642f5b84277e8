/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/runnable.h"

#include <string.h>

#include "collectives/algorithm.h"
#include "collectives/codecs/codec.h"

int gf_plan_check_ranks(const struct gf_plan *plan, int ranks, struct gf_error *err)
{
	if (plan->ranks + plan->servers == ranks)
		return 0;
	if (plan->servers)
		return gf_error_set(err, -EINVAL,
				    "the plan is for %d ranks and a server, this job has %d",
				    plan->ranks, ranks);
	return gf_error_set(err, -EINVAL, "the plan is for %d ranks, this job has %d", plan->ranks,
			    ranks);
}

int gf_plan_fit(const struct gf_plan *plan, const struct gf_model_profile *model, int ranks,
		struct gf_error *err)
{
	const struct gf_tensor *want, *got;

	if (!plan->model || plan->rule)
		return gf_error_set(err, -EINVAL, "want a plan bound to a model, got a rule");
	if (gf_plan_check_ranks(plan, ranks, err))
		return -EINVAL;
	if (plan->model->ntensors != model->ntensors)
		return gf_error_set(err, -EINVAL, "the plan (%s) has %zu tensors, this job has %zu",
				    plan->model->name, plan->model->ntensors, model->ntensors);
	for (size_t i = 0; i < model->ntensors; i++) {
		want = &plan->model->tensors[i];
		got = &model->tensors[i];
		if (want->count_elems == got->count_elems && !strcmp(want->name, got->name))
			continue;
		return gf_error_set(err, -EINVAL,
				    "tensor %zu: the plan (%s) has %s of %zu elements, this job "
				    "has %s of %zu",
				    i, plan->model->name, want->name, want->count_elems, got->name,
				    got->count_elems);
	}
	return 0;
}

static int check_message(const struct gf_message *m, size_t index, struct gf_error *err)
{
	const struct gf_algorithm *a;
	const struct gf_codec *codec;

	codec = gf_codec_find(m->codec);
	if (!codec)
		return gf_error_set(err, -ENOTSUP, "message %zu: this build has no codec \"%s\"",
				    index, m->codec);
	if (gf_codec_is_described(codec))
		return gf_error_set(
			err, -ENOTSUP,
			"message %zu: codec \"%s\" is known by its figures alone, which "
			"gf-plan and gf-sim work with: nothing executes it",
			index, m->codec);
	a = gf_algorithm_find(m->algorithm);
	if (!a)
		return gf_error_set(err, -ENOTSUP,
				    "message %zu: this build has no algorithm \"%s\"", index,
				    m->algorithm);
	if (m->half == GF_HALF_SPLIT && !a->owned)
		return gf_error_set(err, -ENOTSUP,
				    "message %zu: algorithm \"%s\" has no halves for \"split\"",
				    index, m->algorithm);
	if (!a->build && !codec->adds)
		return gf_error_set(err, -ENOTSUP,
				    "message %zu: algorithm \"%s\" adds numbers, and what codec "
				    "\"%s\" sends are none",
				    index, m->algorithm, m->codec);
	return 0;
}

int gf_plan_runnable(const struct gf_plan *plan, struct gf_error *err)
{
	const struct gf_period *period = &plan->period;
	int rc = 0;

	if (!plan->model || plan->rule)
		return gf_error_set(err, -EINVAL, "want a plan bound to a model, got a rule");
	for (size_t i = 0; i < plan->model->ntensors && !rc; i++)
		if (plan->model->tensors[i].dtype != GF_F32)
			rc = gf_error_set(err, -ENOTSUP,
					  "tensor %zu: this build runs f32 gradients, got %s", i,
					  gf_dtype_names[plan->model->tensors[i].dtype]);
	for (size_t i = 0; i < plan->nmessages && !rc; i++)
		rc = check_message(&plan->messages[i], i, err);
	for (size_t i = 0; i < period->nmessages && !rc; i++) {
		rc = check_message(&period->messages[i], i, err);
		if (rc)
			gf_error_prefix(err, "period");
	}
	return rc;
}
