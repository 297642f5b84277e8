/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/plan_brief.h"

#include <string.h>

#include "base/heap.h"
#include "base/text.h"
#include "documents/plan_parts.h"

/* Appends a name that the list does not have yet. */
static void add_once(struct gf_text *list, const char *name)
{
	size_t length = strlen(name);
	const char *at = list->data;

	while (at && (at = strstr(at, name))) {
		if ((at == list->data || at[-1] == ',') && (!at[length] || at[length] == ','))
			return;
		at += length;
	}
	gf_text_addf(list, "%s%s", list->length ? "," : "", name);
}

static char *or_empty(const char *text)
{
	return gf_xstrdup(text ? text : "");
}

const char *const *gf_plan_codecs(const struct gf_plan *p, const char *codecs[GF_CODECS_MOST + 1])
{
	const struct gf_codec *c;
	size_t n = 0, i, k;

	for (k = 0; (c = k < GF_CODECS ? &gf_codecs[k] : gf_codec_described(k - GF_CODECS)); k++) {
		for (i = 0; i < p->nmessages; i++)
			if (!strcmp(p->messages[i].codec, c->name))
				break;
		if (i < p->nmessages)
			codecs[n++] = c->name;
	}
	codecs[n] = NULL;
	return codecs;
}

char *gf_plan_codecs_text(const struct gf_plan *p)
{
	const char *codecs[GF_CODECS_MOST + 1];
	struct gf_text out = {0};

	gf_plan_codecs(p, codecs);
	for (size_t i = 0; codecs[i]; i++)
		gf_text_addf(&out, "%s%.*s", i ? "," : "", gf_codec_title_length(codecs[i]),
			     codecs[i]);
	return gf_text_take(&out);
}

static char *algorithms_of(const struct gf_plan *p)
{
	struct gf_text algorithms = {0};

	for (size_t i = 0; i < p->nmessages; i++)
		add_once(&algorithms, gf_plan_runs(p, p->messages[i].first, p->messages[i].last,
						   &p->messages[i]));
	return gf_text_take(&algorithms);
}

struct gf_plan_brief gf_plan_brief(const struct gf_plan *p)
{
	const struct gf_plan outer = gf_period_outer_view(p);

	return (struct gf_plan_brief){
		.system = or_empty(p->system),
		.policy = or_empty(p->policy),
		.selection = gf_xstrdup(gf_selection_title(&p->selection)),
		.period = gf_xstrdup(gf_period_name(&p->period)),
		.period_steps = p->period.steps,
		.shard = p->shard.method ? gf_shard_plans[p->shard.method]->name : "",
		.codecs = gf_plan_codecs_text(p),
		.algorithms = algorithms_of(p),
		.outer_codecs = gf_plan_codecs_text(&outer),
		.outer_algorithms = algorithms_of(&outer),
		.nmessages = p->nmessages,
		.lanes = p->lanes,
		.staleness = p->staleness,
	};
}

void gf_plan_brief_put(const struct gf_plan_brief *b, struct gf_json_writer *w)
{
	gf_json_put_string(w, "policy", b->policy);
	gf_json_put_string(w, "system", b->system);
	gf_json_put_string(w, "codecs", b->codecs);
	gf_json_put_string(w, "selection", b->selection);
	gf_json_put_string(w, "algorithms", b->algorithms);
	gf_json_put_int(w, "staleness", b->staleness);
	gf_json_put_int(w, "lanes", b->lanes);
	gf_json_put_size(w, "messages", b->nmessages);
	if (b->shard[0])
		gf_json_put_string(w, "shard", b->shard);
	if (!b->period_steps)
		return;
	gf_json_put_string(w, "period", b->period);
	gf_json_put_string(w, "outer_codecs", b->outer_codecs);
	gf_json_put_string(w, "outer_algorithms", b->outer_algorithms);
}

void gf_plan_brief_release(struct gf_plan_brief *b)
{
	free(b->system);
	free(b->policy);
	free(b->selection);
	free(b->period);
	free(b->outer_codecs);
	free(b->outer_algorithms);
	free(b->codecs);
	free(b->algorithms);
	memset(b, 0, sizeof(*b));
}
