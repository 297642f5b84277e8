/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings/emit.h"

#include <math.h>
#include <stdio.h>

#include "base/array.h"
#include "cli/human.h"
#include "collectives/algorithm.h"
#include "collectives/codecs/codec.h"
#include "cost/preset.h"
#include "planner/shards.h"
#include "planner/systems.h"
#include "simulator/sum_error.h"

void gf_emit_head(const struct gf_plan *p, const char *what, struct gf_text *out)
{
	double error;

	gf_text_addf(out, "# gradflow: %s, policy %s", what, p->policy ? p->policy : "unknown");
	if (p->model)
		gf_text_addf(out, ", model %s, %d ranks, %zu messages", p->model->name, p->ranks,
			     p->nmessages);
	gf_text_addf(out, "\n");
	if (!p->model || gf_codec_is_plain(p->messages[0].codec))
		return;
	error = gf_sim_library_error(p->messages[0].codec, p->ranks, gf_shard_is_used(&p->shard),
				     p->model);
	if (error > 0)
		gf_text_addf(
			out,
			"# reduced in %s, which changes mean gradients by %.1e of them (rms)\n",
			p->messages[0].codec, error);
}

/* "buckets, codecs; PyTorch 2.13", for lists. */
static void mark(const void *emitter, struct gf_text *out)
{
	static const struct {
		unsigned takes;
		const char *words;
	} words[] = {
		{GF_EMIT_BUCKETS, "buckets"},
		{GF_EMIT_CAP, "the size of buckets"},
		{GF_EMIT_SIZES, "algorithms by size"},
		{GF_EMIT_CODECS, "codecs"},
		{GF_EMIT_ALGORITHM, "an algorithm"},
		{GF_EMIT_PERIOD, "a period"},
		{GF_EMIT_SHARDS, "shards"},
	};
	const struct gf_emitter *e = emitter;
	const char *comma = "takes ";

	for (size_t i = 0; i < GF_ARRAY_LENGTH(words); i++)
		if (e->takes & words[i].takes) {
			gf_text_addf(out, "%s%s", comma, words[i].words);
			comma = ", ";
		}
	gf_text_addf(out, "; %s", e->version);
}

double gf_emit_doubt(const struct gf_plan *p)
{
	const struct gf_prediction *s = p->predicted;

	return s && s->iteration_high_s > 0 ? s->iteration_high_s / s->iteration_s - 1 : 0;
}

bool gf_emit_pays(const struct gf_emit_times *t, double s)
{
	return !(t->default_s > 0) || s * (1 + fmax(GF_EMIT_GAIN, t->doubt)) <= t->default_s;
}

bool gf_emit_cap_pays(const struct gf_emit_times *t)
{
	return t->cap_bytes > 0 && t->default_s > 0 && gf_emit_pays(t, t->cap_most_s);
}

bool gf_emit_plan_pays(const struct gf_emit_times *t)
{
	return gf_emit_pays(t, t->plan_s) &&
	       !(gf_emit_cap_pays(t) && t->plan_s * (1 + GF_EMIT_GAIN) > t->cap_most_s);
}

int gf_emit_nothing(const struct gf_emitter *e, const char *name, const struct gf_emit_times *t,
		    double best_s, struct gf_error *err)
{
	const struct gf_human by_default = gf_human_time(t->default_s);
	const double gain = 1 - best_s / t->default_s;
	char doubt[64] = "";

	if (fabs(gain) < 0.0005) /* 0.0 % */
		return gf_error_set(err, 1,
				    "--emit %s: %s as it is takes %s a step, and nothing that it "
				    "can be told is faster: change nothing",
				    e->name, name, by_default.text);
	if (gain < 0)
		return gf_error_set(err, 1,
				    "--emit %s: %s as it is takes %s a step, and as told %s: "
				    "change nothing",
				    e->name, name, by_default.text, gf_human_time(best_s).text);
	if (t->doubt > GF_EMIT_GAIN)
		snprintf(doubt, sizeof(doubt), ", and predictions are in doubt by %.1f %%",
			 100 * t->doubt);
	return gf_error_set(err, 1,
			    "--emit %s: %s as it is takes %s a step, which is within %.1f %% of "
			    "the best%s: change nothing",
			    e->name, name, by_default.text, 100 * gain, doubt);
}

const struct gf_list gf_plan_lists[GF_PLAN_LISTS + 1] = {
	{"policies", "--policy, besides auto", {gf_policies, 0, NULL}, true},
	{"systems", "--system", {gf_systems, sizeof(*gf_systems), NULL}, true},
	{"selections", "--selection", {gf_select_plans, 0, NULL}, true},
	{"periods", "--period", {gf_period_plans, 0, NULL}, true},
	{"shards", "--shard", {gf_shard_plans, 0, NULL}, true},
	{"units", "--shard units=", {gf_shard_rules, sizeof(*gf_shard_rules), NULL}, true},
	{"algorithms", "--algorithms", {gf_algorithms, 0, NULL}, false},
	{"codecs", "--codecs", {gf_codecs, sizeof(*gf_codecs), NULL}, false},
	{"gpus", "--gpu", {gf_presets, sizeof(*gf_presets), NULL}, false},
	{"targets", "--emit", {gf_emitters, 0, NULL}, false, mark},
	{NULL, NULL, {NULL, 0, NULL}, false},
};
