/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/plan_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "collectives/codecs/codec.h"
#include "documents/algorithm_traits.h"
#include "documents/shared_records.h"

/* One of a plan's two exchanges, and the key where its messages are. */
struct exchange {
	const struct gf_plan *p;
	const char *key;
};

/* --- the axes of a message that contradict each other or their plan ---------- */

/* Refuses this key of the exchange's message `index`; returns -EINVAL. */
static int refuse(const struct gf_json_at *at, const struct exchange *x, size_t index,
		  const char *key, struct gf_error *err, const char *reason)
{
	return gf_json_refuse(at, gf_json_path("%s/%zu/%s", x->key, index, key).text, err, "%s",
			      reason);
}

static int check_stages(const struct gf_json_at *at, const struct exchange *x, size_t index,
			struct gf_error *err)
{
	const struct gf_plan *p = x->p;
	const struct gf_message *m = &p->messages[index];
	const double product = gf_stages_ranks(m->stages, m->nstages);
	struct gf_error why;
	char reason[96];

	/* sets have an exchange of their own */
	if (!m->nstages || gf_selection_has(&p->selection, GF_SELECT_SETS))
		return 0;
	if (product == p->ranks)
		return gf_levels_ranks(p->levels, p->nlevels) == p->ranks &&
				       gf_stages_check_hosts(m->stages, m->nstages, p->levels,
							     p->nlevels, &why)
			       ? refuse(at, x, index, "stages", err, why.text)
			       : 0;
	snprintf(reason, sizeof(reason),
		 "want factors whose product is the %d ranks that exchange, got %.0f", p->ranks,
		 product);
	return refuse(at, x, index, "stages", err, reason);
}

/* Codecs that what reduces cannot sum. */
static int check_codec(const struct gf_json_at *at, const char *place, const struct gf_plan *p,
		       const struct gf_message *m, struct gf_error *err)
{
	const struct gf_select_plan *selection = gf_selection_plan(&p->selection);
	const struct gf_codec *codec = gf_codec_find(m->codec);
	GF_FREED char *names = NULL;

	if (!codec) {
		names = gf_codec_names(false, "");
		return gf_json_refuse(at, place, err, "want %s, got \"%.40s\"", names, m->codec);
	}
	if (selection->encoding && !gf_codec_is_plain(m->codec))
		return gf_json_refuse(at, place, err,
				      "want \"f32\" with selection %s, %s, got \"%.40s\"",
				      selection->name, selection->encoding, m->codec);
	if (selection->traits & GF_SELECT_SETS)
		return 0; /* they have algorithms of their own */
	if (gf_stages_call(m->stages, m->nstages) && !codec->plain)
		return gf_json_refuse(
			at, place, err,
			"want \"f32\" with a stage that is a library's call, got \"%s\"", m->codec);
	if (gf_algorithm_has(m->algorithm, GF_ALGORITHM_ENCODED) || codec->adds)
		return 0;
	names = gf_codec_names(true, "\"");
	return gf_json_refuse(
		at, place, err,
		"want %s with algorithm %.40s, which cannot sum encoded data, got \"%s\"", names,
		m->algorithm, m->codec);
}

static void add_name(struct gf_text *out, const char *name, bool last)
{
	gf_text_addf(out, "%s%s", !out->length ? "" : last ? " or " : ", ", name);
}

/* The names of those that have them: "a, b or c". */
static void list_algorithms(unsigned traits, struct gf_text *out)
{
	const struct gf_algorithm_traits *a, *before = NULL;

	for (size_t i = 0; (a = gf_algorithm_at(i)); i++) {
		if ((a->traits & traits) != traits)
			continue;
		if (before)
			add_name(out, before->name, false);
		before = a;
	}
	if (before)
		add_name(out, before->name, true);
}

static int check_sums(const struct gf_json_at *at, const char *place, const struct gf_plan *p,
		      const struct gf_message *m, struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text plain = {0}, coded = {0};

	if (!p->reproducible || gf_message_is_open(m) ||
	    gf_algorithm_reproduces(m->algorithm, m->codec))
		return 0;
	list_algorithms(GF_ALGORITHM_ONE_ORDER, &plain);
	list_algorithms(GF_ALGORITHM_ONE_ROUNDING, &coded);
	gf_json_refuse(at, place, err,
		       "want %s with f32, or %s with a codec without blocks, in a reproducible "
		       "plan, got %.40s with %.40s",
		       plain.data, coded.data, m->algorithm, m->codec);
	return -EINVAL;
}

/* Whether stages, codec and algorithm, of a message or of a rule's entry at `place`, fit each other
 * and the plan (-EINVAL). */
static int check_way(const struct gf_json_at *at, const char *place, const struct gf_plan *p,
		     const struct gf_message *m, struct gf_error *err)
{
	struct gf_error why;
	char key[80];
	int rc;

	snprintf(key, sizeof(key), "%s/algorithm", place);
	if (!gf_message_is_open(m) && gf_algorithm_check(m->algorithm, &why))
		return gf_json_refuse(at, key, err, "%s", why.text);
	snprintf(key, sizeof(key), "%s/stages", place);
	if (gf_stages_check(m->algorithm, m->stages, m->nstages, &why))
		return gf_json_refuse(at, key, err, "%s", why.text);
	snprintf(key, sizeof(key), "%s/codec", place);
	rc = check_codec(at, key, p, m, err);
	snprintf(key, sizeof(key), "%s/algorithm", place);
	return rc ?: check_sums(at, key, p, m, err);
}

/* Whether the axes of message `index` fit each other and the plan (-EINVAL). */
static int check_axes(const struct gf_json_at *at, const struct exchange *x, size_t index,
		      struct gf_error *err)
{
	const struct gf_plan *p = x->p;
	const struct gf_message *m = &p->messages[index];
	bool halves = gf_algorithm_has(m->algorithm, GF_ALGORITHM_HALVES);
	char reason[192], place[64];
	int rc;

	snprintf(place, sizeof(place), "%s/%zu", x->key, index);
	rc = check_way(at, place, p, m, err);
	if (rc)
		return rc;
	if (m->half == GF_HALF_SPLIT && !gf_selection_has(&p->selection, GF_SELECT_HALVES)) {
		snprintf(reason, sizeof(reason),
			 "want \"all\" with selection %s, which %s, got \"split\"",
			 gf_selection_name(&p->selection),
			 gf_selection_has(&p->selection, GF_SELECT_RECUTS)
				 ? "cuts its messages anew in every step"
				 : "gives its sums back at once");
		return refuse(at, x, index, "half", err, reason);
	}
	if (m->half == GF_HALF_SPLIT && !halves) {
		snprintf(reason, sizeof(reason),
			 "want \"all\" with algorithm %s, which has no reduce-scatter half, got "
			 "\"split\"",
			 m->algorithm);
		return refuse(at, x, index, "half", err, reason);
	}
	if (m->half == GF_HALF_SPLIT && p->staleness > 1)
		return refuse(at, x, index, "half", err,
			      "want \"all\" with a staleness > 1, which leaves no forward "
			      "pass to wait in, got \"split\"");
	if (p->servers && !gf_algorithm_has(m->algorithm, GF_ALGORITHM_SERVERS)) {
		snprintf(reason, sizeof(reason),
			 "want \"ps\" in a plan with a server, got \"%.40s\"", m->algorithm);
		return refuse(at, x, index, "algorithm", err, reason);
	}
	return check_stages(at, x, index, err);
}

/* --- across the keys of a plan ----------------------------------------------- */

/* Messages are ranges, and every tensor stands in exactly one. */
static int check_cover(const struct gf_json_at *at, const struct exchange *x, struct gf_error *err)
{
	const struct gf_plan *p = x->p;
	const size_t count = p->model->ntensors;
	size_t next = 0, i;
	char reason[128];
	int rc = 0;

	for (i = 0; i < p->nmessages && !rc; next = p->messages[i++].last + 1) {
		const struct gf_message *m = &p->messages[i];

		if (m->mode == GF_MODE_MERGED) {
			rc = refuse(at, x, i, "mode", err,
				    "want \"normal\" or \"simultaneous\", got \"merged\", "
				    "which is a tensor's");
		} else if (m->first != next) {
			snprintf(reason, sizeof(reason),
				 "want tensor %zu, which follows those of the messages before, got "
				 "%zu",
				 next, m->first);
			rc = refuse(at, x, i, "first", err, reason);
		} else if (m->last < next || m->last >= count) {
			snprintf(reason, sizeof(reason), "want an integer from %zu to %zu, got %zu",
				 next, count - 1, m->last);
			rc = refuse(at, x, i, "last", err, reason);
		}
	}
	if (!rc && next < count)
		rc = gf_json_refuse(at, x->key, err,
				    "want tensor %zu in one message, got it in none", next);
	return rc;
}

/* The types that the document states, against those that follow. */
static int check_types(const struct gf_json_at *at, struct gf_plan *p, struct gf_error *err)
{
	size_t count = p->model->ntensors, i;
	enum gf_mode *stated = p->types;
	int rc = 0;

	p->types = NULL;
	gf_plan_set_types(p);
	for (i = 0; i < count && !rc; i++) {
		if ((int)stated[i] < 0 || stated[i] == p->types[i])
			continue;
		rc = gf_json_refuse(at, gf_json_path("tensors/%zu/type", i).text, err,
				    "want \"%s\", which follows from messages, got \"%s\"",
				    gf_mode_names[p->types[i]], gf_mode_names[stated[i]]);
	}
	free(stated);
	return rc;
}

static int check_prediction(const struct gf_json_at *at, const struct gf_plan *p,
			    struct gf_error *err)
{
	for (size_t i = 0; p->predicted && i < p->nmessages; i++) {
		const struct gf_predicted_message *m = &p->predicted->messages[i];

		if (m->end_s < m->start_s)
			return gf_json_refuse(
				at, gf_json_path("predicted/messages/%zu/end_s", i).text, err,
				"want a number >= %g, its start_s, got %g", m->start_s, m->end_s);
	}
	return 0;
}

/* Every tensor once, each message as its axes allow. */
static int check_exchange(const struct gf_json_at *at, const struct exchange *x,
			  struct gf_error *err)
{
	int rc = check_cover(at, x, err);

	for (size_t i = 0; i < x->p->nmessages && !rc; i++)
		rc = check_axes(at, x, i, err);
	return rc;
}

/* Sets go by an algorithm of their own, whatever the struct has. */
static void take_set_names(struct gf_plan *p)
{
	const char *runs;

	for (size_t i = 0; i < p->nmessages; i++) {
		struct gf_message *m = &p->messages[i];

		if (!gf_plan_has(p, m))
			continue;
		runs = gf_plan_runs(p, m->first, m->last, m);
		if (runs == m->algorithm || strcmp(runs, m->algorithm) != 0)
			continue;
		free(m->algorithm);
		m->algorithm = gf_xstrdup(gf_select_own_message.algorithm);
	}
}

/* Axes of the exchange in every step that a period contradicts. */
static int check_with_period(const struct gf_json_at *at, const struct gf_plan *p,
			     struct gf_error *err)
{
	const struct gf_period *o = &p->period;
	const bool alone = o->group_ranks == 1;

	if (p->servers && !gf_period_has(o, GF_PERIOD_SERVERS))
		return gf_json_refuse(at, "servers", err,
				      "want 0 with period %s, whose groups have no server, got %d",
				      gf_period_name(o), p->servers);
	if (p->ranks % o->group_ranks || o->group_ranks >= p->ranks)
		return gf_json_refuse(at, "period/group_ranks", err,
				      "want a divisor of the plan's %d ranks below it, got %d",
				      p->ranks, o->group_ranks);
	if (alone && p->staleness > 1)
		return gf_json_refuse(
			at, "pipeline/staleness", err,
			"want 1 with groups of one rank, which exchange nothing in a step, got %d",
			p->staleness);
	if (alone && !gf_selection_has(&p->selection, GF_SELECT_LOSSLESS))
		return gf_json_refuse(at, "selection/method", err,
				      "want \"dense\" with groups of one rank, which exchange "
				      "nothing in a step, got \"%s\"",
				      gf_selection_name(&p->selection));
	return 0;
}

/* Fragments go one at a time, each of whole messages. */
static int check_fragments(const struct gf_json_at *at, const struct gf_period *o,
			   struct gf_error *err)
{
	struct gf_error steps;

	if (o->fragments > o->nmessages)
		return gf_json_refuse(at, "period/fragments", err,
				      "want at most the period's %zu messages, got %zu",
				      o->nmessages, o->fragments);
	if (gf_period_check_steps(o, &steps) < 0)
		return gf_json_refuse(at, "period/steps", err, "%s", steps.text);
	return 0;
}

static int check_period(const struct gf_json_at *at, const struct gf_plan *p, struct gf_error *err)
{
	const struct gf_period *o = &p->period;
	const struct gf_plan outer = gf_period_outer_view(p);
	int rc = 0;

	if (!o->plan)
		return 0;
	rc = check_with_period(at, p, err);
	rc = rc ? rc : check_exchange(at, &(struct exchange){&outer, "period/messages"}, err);
	for (size_t i = 0; i < o->nmessages && !rc; i++)
		if (o->messages[i].half != GF_HALF_ALL)
			rc = refuse(at, &(struct exchange){p, "period/messages"}, i, "half", err,
				    "want \"all\" in a period, which has no forward pass "
				    "to wait in, got \"split\"");
	return rc ?: check_fragments(at, o, err);
}

/* Axes that shards contradict: by default a rank's messages carry its gradients as they are. */
static int check_shard(const struct gf_json_at *at, const struct gf_plan *p, struct gf_error *err)
{
	const struct gf_shard *s = &p->shard;
	const char *name = gf_shard_plans[s->method]->name;
	const bool units = gf_shard_has(s, GF_SHARD_PARAMETERS);
	const struct exchange x = {p, "messages"};

	if (gf_shard_has(s, GF_SHARD_OPEN))
		return gf_json_refuse(at, "shard/method", err,
				      "want one that says what a rank keeps, got \"%s\"", name);
	for (size_t i = 0; i < p->nmessages; i++) {
		const struct gf_message *m = &p->messages[i];

		if (m->keep && !units)
			return refuse(at, &x, i, "keep", err,
				      "want it with shards of parameters, which are given back, "
				      "got it without");
		if (!gf_shard_is_used(s))
			continue;
		if (m->half != GF_HALF_SPLIT)
			return refuse(at, &x, i, "half", err,
				      "want \"split\" with shards, whose gradients are scattered "
				      "and whose parameters are gathered, got \"all\"");
	}
	if (s->ahead && !units)
		return gf_json_refuse(at, "shard/ahead", err,
				      "want 0 with \"%s\", which gathers all of a step's "
				      "parameters, got %zu",
				      name, s->ahead);
	if (!gf_shard_is_used(s))
		return s->group_ranks ? gf_json_refuse(at, "shard/method", err,
						       "want one beside group_ranks, got none")
				      : 0;
	if (s->group_ranks < 1 || p->ranks % s->group_ranks)
		return gf_json_refuse(at, "shard/group_ranks", err,
				      "want a divisor of the plan's %d ranks, got %d", p->ranks,
				      s->group_ranks);
	for (size_t i = 0; i < p->nmessages && gf_plan_copies(p) > 1; i++) {
		const struct gf_message *m = &p->messages[i];
		int ranks = 1;

		for (size_t k = 0; k < m->nstages && ranks < s->group_ranks; k++)
			ranks *= m->stages[k].factor;
		if (!gf_algorithm_has(m->algorithm, GF_ALGORITHM_COPIES) || ranks != s->group_ranks)
			return refuse(
				at, &x, i, "stages", err,
				"want those of an algorithm whose inner ones are the ranks of "
				"a copy, where there are several copies, got others");
	}
	if (!gf_selection_has(&p->selection, GF_SELECT_LOSSLESS))
		return gf_json_refuse(at, "selection/method", err,
				      "want \"dense\" with shards, got \"%s\"",
				      gf_selection_name(&p->selection));
	if (p->period.plan)
		return gf_json_refuse(at, "period/method", err,
				      "want \"every\" with shards, got \"%s\"",
				      gf_period_name(&p->period));
	return 0; /* halves refuse servers and stale gradients */
}

static int check_whole(const struct gf_json_at *at, struct gf_plan *p, struct gf_error *err)
{
	const struct gf_plan inner = gf_period_inner_view(p);
	int (*suits)(const void *, size_t, struct gf_error *) =
		gf_selection_plan(&p->selection)->suits;
	struct gf_error why;
	int rc;

	if (!p->ranks)
		return gf_json_refuse(at, "ranks", err, "want an integer, got nothing");
	if (!p->lanes)
		return gf_json_refuse(at, "lanes", err, "want an integer, got nothing");
	if (!p->model)
		return gf_json_refuse(at, "model", err, "want an object, got nothing");
	if (!p->model->tensors)
		return gf_json_refuse(at, "tensors", err, "want at least one tensor, got none");
	if (p->servers && !gf_selection_has(&p->selection, GF_SELECT_SERVERS))
		return gf_json_refuse(
			at, "servers", err,
			"want 0 with selection %s, which no server can add up, got %d",
			gf_selection_name(&p->selection), p->servers);
	if (suits && suits(p->selection.params, gf_model_profile_elems(p->model), &why))
		return gf_json_refuse(at, "selection", err, "%s", why.text);
	take_set_names(p);
	rc = gf_tensors_check(at, p->model, "model/backward_s", err);
	rc = rc ? rc : check_exchange(at, &(struct exchange){&inner, "messages"}, err);
	rc = rc ?: check_types(at, p, err);
	rc = rc ?: check_prediction(at, p, err);
	rc = rc ?: check_period(at, p, err);
	return rc ?: check_shard(at, p, err);
}

static int check_entry(const struct gf_json_at *at, const struct gf_plan *p, size_t index,
		       struct gf_error *err)
{
	const struct gf_rule_algorithm *a = &p->rule->algorithms[index];
	struct gf_message m = {.algorithm = a->algorithm,
			       .stages = a->stages,
			       .nstages = a->nstages,
			       .codec = a->codec ? a->codec : (char *)"f32"};
	char place[64];

	snprintf(place, sizeof(place), "rule/algorithms/%zu", index);
	return check_way(at, place, p, &m, err);
}

/* A rule binds to any model and any number of ranks: it names none. */
static int check_rule(const struct gf_json_at *at, struct gf_plan *p, struct gf_error *err)
{
	const struct gf_rule *r = p->rule;
	static const char *const others[] = {
		"ranks",    "servers",   "lanes",  "segment_bytes", "model",
		"messages", "predicted", "period", "fusion",        "shard",
	};
	char place[64];
	int rc;

	for (size_t i = 0; i < GF_ARRAY_LENGTH(others); i++)
		if (gf_json_has(at, others[i]))
			return gf_json_refuse(at, others[i], err,
					      "want none of it in a plan with a rule, which binds "
					      "to any model and ranks, got it");
	if (!r->nalgorithms)
		return gf_json_refuse(at, "rule/algorithms", err,
				      "want at least one entry, got none");
	for (size_t i = 0; i < r->nalgorithms; i++) {
		size_t got = r->algorithms[i].min_bytes;

		snprintf(place, sizeof(place), "rule/algorithms/%zu/min_bytes", i);
		if (i == 0 && got != 0)
			return gf_json_refuse(at, place, err, "want 0, got %zu", got);
		if (i > 0 && got <= r->algorithms[i - 1].min_bytes)
			return gf_json_refuse(at, place, err,
					      "want an integer > %zu, the one before it, got %zu",
					      r->algorithms[i - 1].min_bytes, got);
		rc = check_entry(at, p, i, err);
		if (rc)
			return rc;
	}
	p->lanes = r->lanes;
	p->segment_bytes = r->segment_bytes;
	return 0;
}

/* Keys that would have no effect. */
static int check_idle(const struct gf_json_at *at, const struct gf_plan *p, struct gf_error *err)
{
	const size_t segment_bytes = p->rule ? p->rule->segment_bytes : p->segment_bytes;

	if (segment_bytes % sizeof(float))
		return gf_json_refuse(at, p->rule ? "rule/segment_bytes" : "segment_bytes", err,
				      "want a multiple of an element's 4 bytes, got %zu",
				      segment_bytes);
	if (p->staleness == 1 &&
	    (p->pipeline_warmup_steps || p->pipeline_warmup_part.of != GF_STEPS_KNOWN))
		return gf_json_refuse(at, "pipeline/warmup_steps", err,
				      "want 0 with a staleness of 1, by which every step is "
				      "synchronous, got some");
	return 0;
}

int gf_plan_finish(const struct gf_json_at *at, void *plan, struct gf_error *err)
{
	struct gf_plan *p = plan;
	int rc;

	if (p->predicted && p->predicted->nmessages != p->nmessages)
		return gf_json_refuse(at, "predicted/messages", err,
				      "want %zu entries, one per message, got %zu", p->nmessages,
				      p->predicted->nmessages);
	rc = gf_levels_check(at, p->levels, p->nlevels, err);
	rc = rc ?: check_idle(at, p, err);
	rc = rc ?: gf_processing_check(at, &p->processing, err);
	if (rc == 0 && p->reproducible && !gf_selection_has(&p->selection, GF_SELECT_LOSSLESS))
		rc = gf_json_refuse(at, "selection/method", err,
				    "want \"dense\" in a reproducible plan, got \"%s\", which "
				    "chooses by message",
				    gf_selection_name(&p->selection));
	if (rc)
		return rc;
	return p->rule ? check_rule(at, p, err) : check_whole(at, p, err);
}
