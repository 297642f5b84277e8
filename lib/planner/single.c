/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All gradients in one message (one per run of equal data types): a single
 * startup and no overlap with backward. GradientFlow's disable-overlap.
 */
#include "planner/policies.h"
#include "planner/workbench.h"

static void draft(const struct gf_workbench *w, struct gf_draft *d)
{
	size_t i;

	for (i = 0; i < w->ntensors; i = w->run_last[i] + 1)
		gf_draft_send(d, w, i, w->run_last[i]);
}

static void explain(const struct gf_workbench *w, const struct gf_draft *d,
		    struct gf_text *lines)
{
	size_t i;

	(void)d;
	for (i = 0; i < w->ntensors; i++)
		gf_text_addf(&lines[i], "all together, ready with tensor %zu",
			     w->run_last[i]);
}

const struct gf_policy gf_policy_single = {
	.name = "single",
	.description = "one message of all tensors",
	.source = "GradientFlow, lazy all-reduce without overlap",
	.lanes = 1,
	.automatic = true,
	.draft = draft,
	.explain = explain,
};
