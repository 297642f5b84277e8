/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/plan_rule.h"

#include <errno.h>

#include "base/array.h"
#include "base/heap.h"
#include "codec/codec.h"
#include "doc/algorithm_traits.h"

/* Stages are of the ranks that they were found on. */
static bool is_for(const struct gf_rule_algorithm *entry, int ranks)
{
	double product = 1;
	size_t i;

	for (i = 0; i < entry->nstages; i++)
		product *= entry->stages[i].factor;
	return entry->nstages && product == ranks;
}

static void add_stage(struct gf_message *m, size_t *capacity, int factor,
		      const char *algorithm)
{
	struct gf_stage *stage =
		gf_array_push(&m->stages, &m->nstages, capacity);

	stage->factor = factor;
	stage->algorithm = gf_xstrdup(algorithm);
}

/* The rule's own stages, when they are of as many ranks. Else algorithms that
 * work level by level take their factors from the levels, when these are of as
 * many; they do without otherwise. */
static void decompose(const struct gf_plan *whole,
		      const struct gf_rule_algorithm *entry,
		      struct gf_message *m)
{
	/* NCCL's calls take no codec */
	bool calls = gf_device_is_gpu(whole->model->device) &&
		     gf_codec_is_plain(m->codec);
	bool two = gf_algorithm_has(m->algorithm, GF_ALGORITHM_TWO_LEVELS);
	bool own = gf_algorithm_has(m->algorithm, GF_ALGORITHM_STAGES);
	size_t capacity = 0, i;

	if (is_for(entry, whole->ranks)) {
		for (i = 0; i < entry->nstages; i++)
			add_stage(m, &capacity, entry->stages[i].factor,
				  entry->stages[i].algorithm);
		return;
	}
	if (!gf_algorithm_has(m->algorithm, GF_ALGORITHM_LEVELS) ||
	    !whole->nlevels ||
	    gf_levels_ranks(whole->levels, whole->nlevels) != whole->ranks)
		return;
	for (i = 0; i < whole->nlevels; i++) {
		int size = (int)whole->levels[i].size;

		if (size > 1 && two && m->nstages == 2)
			m->stages[1].factor *= size;
		else if (size > 1)
			add_stage(m, &capacity, size,
				  own ? gf_stage_unsaid(size, calls) : "ring");
	}
}

/* Lazy all-reduce (GradientFlow, section 3.1): send once the waiting bytes are
 * more than the threshold. */
static void fuse(struct gf_plan *whole, const struct gf_rule *rule)
{
	const struct gf_model_profile *model = whole->model;
	size_t waiting_bytes = 0, first = 0, capacity = 0, i;
	const struct gf_rule_algorithm *entry;
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
		entry = gf_rule_for(rule, waiting_bytes);
		m->algorithm = gf_xstrdup(entry->algorithm);
		m->codec = gf_xstrdup(entry->codec ? entry->codec : "f32");
		decompose(whole, entry, m);
		first = i + 1;
		waiting_bytes = 0;
	}
}

int gf_plan_bind(const struct gf_plan *rule,
		 const struct gf_model_profile *model, int ranks,
		 struct gf_plan *whole, struct gf_error *err)
{
	struct gf_plan w, shallow;
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
	w.segment_bytes = rule->rule->segment_bytes;
	w.threshold_bytes = rule->rule->threshold_bytes;
	fuse(&w, rule->rule);
	gf_plan_set_types(&w);
	rc = gf_plan_check(&w, err);
	if (rc)
		gf_plan_release(&w);
	else
		*whole = w;
	return rc;
}
