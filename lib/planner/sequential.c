/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compute, then communicate: one message per tensor, all after backward has
 * ended. The baseline of every paper.
 */
#include "planner/policies.h"
#include "planner/workbench.h"

static void draft(const struct gf_workbench *w, struct gf_draft *d)
{
	size_t i;

	for (i = 0; i < w->ntensors; i++)
		gf_draft_send(d, w, i, i)->release = GF_RELEASE_BACKWARD_END;
}

static void explain(const struct gf_workbench *w, const struct gf_draft *d,
		    struct gf_text *lines)
{
	size_t i;

	(void)d;
	for (i = 0; i < w->ntensors; i++)
		gf_text_addf(&lines[i], "by itself, once backward ends");
}

const struct gf_policy gf_policy_sequential = {
	.name = "sequential",
	.description = "one message per tensor, after backward has ended",
	.source = "baseline without overlap",
	.lanes = 1,
	.automatic = true,
	.draft = draft,
	.explain = explain,
};
