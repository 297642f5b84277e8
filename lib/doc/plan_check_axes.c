/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/plan_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "collectives/codecs/codec.h"
#include "doc/algorithm_traits.h"
#include "doc/shared_records.h"

/* The axes of a message that contradict each other or their plan. */

int gf_plan_refuse(const struct gf_json_at *at, const struct gf_plan_exchange *x, size_t index,
		   const char *key, struct gf_error *err, const char *reason)
{
	char place[64];

	snprintf(place, sizeof(place), "%s/%zu/%s", x->key, index, key);
	return gf_json_refuse(at, place, err, "%s", reason);
}

static int check_stages(const struct gf_json_at *at, const struct gf_plan_exchange *x, size_t index,
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
			       ? gf_plan_refuse(at, x, index, "stages", err, why.text)
			       : 0;
	snprintf(reason, sizeof(reason),
		 "want factors whose product is the %d ranks that exchange, got %.0f", p->ranks,
		 product);
	return gf_plan_refuse(at, x, index, "stages", err, reason);
}

/* Codecs that what reduces cannot sum. */
static int check_codec(const struct gf_json_at *at, const char *place, const struct gf_plan *p,
		       const struct gf_message *m, struct gf_error *err)
{
	const struct gf_select_plan *selection = gf_selection_plan(&p->selection);
	const struct gf_codec *codec = gf_codec_find(m->codec);
	char *names;
	int rc = 0;

	if (!codec) {
		names = gf_codec_names(false, "");
		rc = gf_json_refuse(at, place, err, "want %s, got \"%.40s\"", names, m->codec);
		free(names);
		return rc;
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
	if (!gf_algorithm_has(m->algorithm, GF_ALGORITHM_ENCODED) && !codec->adds) {
		names = gf_codec_names(true, "\"");
		rc = gf_json_refuse(
			at, place, err,
			"want %s with algorithm %.40s, which cannot sum encoded data, got \"%s\"",
			names, m->algorithm, m->codec);
		free(names);
	}
	return rc;
}

static void add_name(struct gf_text *out, const char *name, bool last)
{
	gf_text_addf(out, "%s%s", !out->length ? "" : last ? " or " : ", ", name);
}

/* The names of those that have them: "a, b or c". */
static void list_algorithms(unsigned traits, struct gf_text *out)
{
	const struct gf_algorithm_traits *a, *before = NULL;

	for (a = gf_algorithm_traits; a->name; a++) {
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
	struct gf_text plain = {0}, coded = {0};

	if (!p->reproducible || gf_message_is_open(m) ||
	    gf_algorithm_reproduces(m->algorithm, m->codec))
		return 0;
	list_algorithms(GF_ALGORITHM_ONE_ORDER, &plain);
	list_algorithms(GF_ALGORITHM_ONE_ROUNDING, &coded);
	gf_json_refuse(at, place, err,
		       "want %s with f32, or %s with a codec without blocks, in a reproducible "
		       "plan, got %.40s with %.40s",
		       plain.data, coded.data, m->algorithm, m->codec);
	gf_text_release(&plain);
	gf_text_release(&coded);
	return -EINVAL;
}

int gf_plan_check_way(const struct gf_json_at *at, const char *place, const struct gf_plan *p,
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
	return rc ? rc : check_sums(at, key, p, m, err);
}

int gf_plan_check_axes(const struct gf_json_at *at, const struct gf_plan_exchange *x, size_t index,
		       struct gf_error *err)
{
	const struct gf_plan *p = x->p;
	const struct gf_message *m = &p->messages[index];
	bool halves = gf_algorithm_has(m->algorithm, GF_ALGORITHM_HALVES);
	char reason[192], place[64];
	int rc;

	snprintf(place, sizeof(place), "%s/%zu", x->key, index);
	rc = gf_plan_check_way(at, place, p, m, err);
	if (rc)
		return rc;
	if (m->half == GF_HALF_SPLIT && !gf_selection_has(&p->selection, GF_SELECT_HALVES)) {
		snprintf(reason, sizeof(reason),
			 "want \"all\" with selection %s, which %s, got \"split\"",
			 gf_selection_name(&p->selection),
			 gf_selection_has(&p->selection, GF_SELECT_RECUTS)
				 ? "cuts its messages anew in every step"
				 : "gives its sums back at once");
		return gf_plan_refuse(at, x, index, "half", err, reason);
	}
	if (m->half == GF_HALF_SPLIT && !halves) {
		snprintf(reason, sizeof(reason),
			 "want \"all\" with algorithm %s, which has no reduce-scatter half, got "
			 "\"split\"",
			 m->algorithm);
		return gf_plan_refuse(at, x, index, "half", err, reason);
	}
	if (m->half == GF_HALF_SPLIT && p->staleness > 1)
		return gf_plan_refuse(at, x, index, "half", err,
				      "want \"all\" with a staleness > 1, which leaves no forward "
				      "pass to wait in, got \"split\"");
	if (p->servers && !gf_algorithm_has(m->algorithm, GF_ALGORITHM_SERVERS)) {
		snprintf(reason, sizeof(reason),
			 "want \"ps\" in a plan with a server, got \"%.40s\"", m->algorithm);
		return gf_plan_refuse(at, x, index, "algorithm", err, reason);
	}
	return check_stages(at, x, index, err);
}
