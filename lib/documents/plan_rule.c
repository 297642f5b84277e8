/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/plan_rule.h"

#include "base/array.h"
#include "base/heap.h"
#include "collectives/codecs/codec.h"
#include "documents/algorithm_traits.h"

/* Stages are of the ranks that they were found on. */
static bool is_for(const struct gf_rule_algorithm *entry, int ranks)
{
	return entry->nstages && gf_stages_ranks(entry->stages, entry->nstages) == ranks;
}

static bool levels_fit(const struct gf_plan *p, int ranks)
{
	return p->nlevels && gf_levels_ranks(p->levels, p->nlevels) == ranks;
}

/* One stage a factor; an algorithm of two levels has the outer ones as one, and none for a single
 * factor. */
static void set_stages(const char *algorithm, const int *factors, size_t n,
		       struct gf_stage **stages, size_t *nstages)
{
	bool two = gf_algorithm_has(algorithm, GF_ALGORITHM_TWO_LEVELS);
	bool own = gf_algorithm_has(algorithm, GF_ALGORITHM_STAGES);
	size_t capacity = 0, i;

	for (i = 0; i < n && (n > 1 || !two); i++) {
		struct gf_stage *stage;

		if (two && *nstages == 2) {
			(*stages)[1].factor *= factors[i];
			continue;
		}
		stage = gf_array_push(stages, nstages, &capacity);
		stage->factor = factors[i];
		stage->algorithm = gf_xstrdup(own ? gf_stage_unsaid(factors[i], false) : "ring");
	}
}

/* The rule's own stages, when they are of as many ranks. Else algorithms that work level by level
 * take their factors from the levels, when these are of as many; they do without otherwise. */
static void decompose(const struct gf_plan *whole, const struct gf_rule_algorithm *entry,
		      struct gf_message *m)
{
	GF_FREED int *factors = NULL;
	size_t n = 0, i;

	if (is_for(entry, whole->ranks)) {
		m->stages = gf_stages_copy(entry->stages, entry->nstages);
		m->nstages = entry->nstages;
		m->unsaid = entry->unsaid;
		return;
	}
	if (!gf_algorithm_has(m->algorithm, GF_ALGORITHM_LEVELS) ||
	    !levels_fit(whole, whole->ranks))
		return;
	factors = gf_xcalloc(whole->nlevels, sizeof(*factors));
	for (i = 0; i < whole->nlevels; i++)
		if (whole->levels[i].size > 1)
			factors[n++] = (int)whole->levels[i].size;
	set_stages(m->algorithm, factors, n, &m->stages, &m->nstages);
	m->unsaid = true;
}

void gf_rule_place(struct gf_plan *rule, const int *factors, size_t n)
{
	int ranks = 1;

	for (size_t i = 0; i < n; i++)
		ranks *= factors[i];
	if (levels_fit(rule, ranks))
		return;
	for (size_t i = 0; i < rule->rule->nalgorithms; i++) {
		struct gf_rule_algorithm *a = &rule->rule->algorithms[i];

		if (!gf_algorithm_has(a->algorithm, GF_ALGORITHM_LEVELS) || is_for(a, ranks))
			continue;
		gf_stages_free(a->stages, a->nstages);
		a->stages = NULL;
		a->nstages = 0;
		set_stages(a->algorithm, factors, n, &a->stages, &a->nstages);
		a->unsaid = true;
	}
}

static void use_calls(const char *algorithm, const char *codec, struct gf_stage *stages, size_t n)
{
	if (!gf_algorithm_has(algorithm, GF_ALGORITHM_STAGES) ||
	    (codec && !gf_codec_is_plain(codec)))
		return;
	for (size_t i = 0; i < n; i++) {
		free(stages[i].algorithm);
		stages[i].algorithm = gf_xstrdup(gf_stage_unsaid(stages[i].factor, true));
	}
}

void gf_plan_use_calls(struct gf_plan *p)
{
	for (size_t i = 0; i < p->nmessages; i++) {
		struct gf_message *m = &p->messages[i];

		if (m->unsaid)
			use_calls(m->algorithm, m->codec, m->stages, m->nstages);
	}
	for (size_t i = 0; p->rule && i < p->rule->nalgorithms; i++) {
		struct gf_rule_algorithm *a = &p->rule->algorithms[i];

		if (a->unsaid)
			use_calls(a->algorithm, a->codec, a->stages, a->nstages);
	}
}

/* Lazy all-reduce (GradientFlow, section 3.1): send once the waiting bytes are more than the
 * threshold. */
static void fuse(struct gf_plan *whole, const struct gf_rule *rule)
{
	const struct gf_model_profile *model = whole->model;
	size_t waiting_bytes = 0, first = 0, capacity = 0, i;
	const struct gf_rule_algorithm *entry;
	struct gf_message *m;

	for (i = 0; i < model->ntensors; i++) {
		waiting_bytes += gf_tensor_bytes(&model->tensors[i]);
		if (waiting_bytes <= rule->threshold_bytes && i + 1 < model->ntensors)
			continue;
		m = gf_array_push(&whole->messages, &whole->nmessages, &capacity);
		m->first = first;
		m->last = i;
		m->mode = rule->lanes > 1 ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL;
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

int gf_plan_bind(const struct gf_plan *rule, const struct gf_model_profile *model, int ranks,
		 struct gf_plan *whole, struct gf_error *err)
{
	struct gf_plan w, shallow;
	int rc;

	if (!rule->rule)
		return gf_error_set(err, -EINVAL,
				    "want a rule plan, got one that is bound to %d ranks",
				    rule->ranks);
	if (!model->ntensors || ranks < 1)
		return gf_error_set(err, -EINVAL,
				    "want tensors and ranks to bind a rule to, got %zu and %d",
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
	if (gf_device_is_gpu(model->device))
		gf_plan_use_calls(&w);
	gf_plan_set_types(&w);
	rc = gf_plan_check(&w, err);
	if (rc)
		gf_plan_release(&w);
	else
		*whole = w;
	return rc;
}
