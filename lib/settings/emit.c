/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings/emit.h"

#include "base/array.h"
#include "collectives/algorithm.h"
#include "collectives/codecs/codec.h"
#include "cost/preset.h"
#include "planner/systems.h"

void gf_emit_head(const struct gf_plan *p, const char *what, struct gf_text *out)
{
	gf_text_addf(out, "# gradflow: %s, policy %s", what, p->policy ? p->policy : "unknown");
	if (p->model)
		gf_text_addf(out, ", model %s, %d ranks, %zu messages", p->model->name, p->ranks,
			     p->nmessages);
	gf_text_addf(out, "\n");
}

/* "buckets, codecs; PyTorch 2.13", for lists. */
static void mark(const void *emitter, struct gf_text *out)
{
	static const struct {
		unsigned takes;
		const char *words;
	} words[] = {
		{GF_EMIT_BUCKETS, "buckets"},          {GF_EMIT_CAP, "the size of buckets"},
		{GF_EMIT_SIZES, "algorithms by size"}, {GF_EMIT_CODECS, "codecs"},
		{GF_EMIT_ALGORITHM, "an algorithm"},   {GF_EMIT_PERIOD, "a period"},
	};
	const struct gf_emitter *e = emitter;
	const char *comma = "takes ";
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(words); i++)
		if (e->takes & words[i].takes) {
			gf_text_addf(out, "%s%s", comma, words[i].words);
			comma = ", ";
		}
	gf_text_addf(out, "; %s", e->version);
}

bool gf_emit_plan_pays(const struct gf_emit_times *t)
{
	return !(t->default_s > 0) || t->plan_s <= t->default_s;
}

bool gf_emit_cap_pays(const struct gf_emit_times *t)
{
	return t->cap_bytes > 0 && t->default_s > 0 && t->cap_most_s <= t->default_s;
}

const struct gf_list gf_plan_lists[GF_PLAN_LISTS + 1] = {
	{"policies", "--policy, besides auto", {gf_policies, 0, NULL}, true},
	{"systems", "--system", {gf_systems, sizeof(*gf_systems), NULL}, true},
	{"selections", "--selection", {gf_select_plans, 0, NULL}, true},
	{"periods", "--period", {gf_period_plans, 0, NULL}, true},
	{"algorithms", "--algorithm", {gf_algorithms, 0, NULL}, false},
	{"codecs", "--codecs", {gf_codecs, sizeof(*gf_codecs), NULL}, false},
	{"gpus", "--gpu", {gf_presets, sizeof(*gf_presets), NULL}, false},
	{"targets", "--emit", {gf_emitters, 0, NULL}, false, mark},
	{NULL, NULL, {NULL, 0, NULL}, false},
};
