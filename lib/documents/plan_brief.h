/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_PLAN_BRIEF_H
#define GF_DOCUMENTS_PLAN_BRIEF_H

#include "collectives/codecs/codec.h"
#include "documents/plan.h"

/*
 * A plan in a few words: what a row of a table says of it, so that two rows can be told apart.
 * Texts are owned, and "" where the plan has none.
 */
struct gf_plan_brief {
	char *system, *policy, *selection;
	char *codecs, *algorithms; /* of its messages: "f32,f16" */
	/* "" with an exchange in every step */
	char *period, *outer_codecs, *outer_algorithms;
	const char *shard; /* its method, static; "" without shards */
	size_t nmessages;
	int lanes, staleness;
	size_t period_steps; /* 0: every step */
};

/* The codecs of all messages, each once and in the order of gf_codecs, then as they were described,
 * NULL-terminated; and as text: "f32", "f16,mine", which the caller frees. */
const char *const *gf_plan_codecs(const struct gf_plan *p, const char *codecs[GF_CODECS_MOST + 1]);
char *gf_plan_codecs_text(const struct gf_plan *p);

struct gf_plan_brief gf_plan_brief(const struct gf_plan *p);
/* Its members in an object that is open; "policy" first. */
void gf_plan_brief_put(const struct gf_plan_brief *b, struct gf_json_writer *w);
void gf_plan_brief_release(struct gf_plan_brief *b);

#endif
