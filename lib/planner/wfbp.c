/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wait-free backpropagation: one message per tensor, in order, as soon as it
 * is ready and the one before has ended.
 */
#include "planner/policies.h"
#include "planner/workbench.h"

static void draft(const struct gf_workbench *w, struct gf_draft *d)
{
	size_t i;

	for (i = 0; i < w->ntensors; i++)
		gf_draft_send(d, w, i, i);
}

static void explain(const struct gf_workbench *w, const struct gf_draft *d,
		    struct gf_text *lines)
{
	size_t i;

	(void)d;
	for (i = 0; i < w->ntensors; i++)
		gf_text_addf(&lines[i],
			     "by itself, from ready and the end of the one "
			     "before");
}

const struct gf_policy gf_policy_wfbp = {
	.name = "wfbp",
	.description = "one message per tensor, as it becomes ready",
	.source = "ASC-WFBP, section II-B (Zhang et al. 2017)",
	.lanes = 1,
	.automatic = true,
	.draft = draft,
	.explain = explain,
};
