/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOC_PLAN_BRIEF_H
#define GF_DOC_PLAN_BRIEF_H

#include "doc/plan.h"

/*
 * A plan in a few words: what a row of a table says of it, so that two rows
 * can be told apart. Texts are owned, and "" where the plan has none.
 */
struct gf_plan_brief {
	char *system, *policy, *selection, *period;
	char *codecs, *algorithms; /* of its messages: "f32,f16" */
	size_t nmessages;
	int lanes, staleness;
	size_t period_steps; /* 0: every step */
};

struct gf_plan_brief gf_plan_brief(const struct gf_plan *p);
bool gf_plan_brief_equal(const struct gf_plan_brief *a,
			 const struct gf_plan_brief *b);
/* Its members in an object that is open; "policy" first. */
void gf_plan_brief_put(const struct gf_plan_brief *b, struct gf_json_writer *w);
void gf_plan_brief_release(struct gf_plan_brief *b);

#endif
