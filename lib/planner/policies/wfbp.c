/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Policies without a choice: one message per tensor (wait-free backpropagation), the same once
 * backward has ended (the baseline of every paper), and all gradients in one message per run of
 * equal data types (GradientFlow's disable-overlap).
 */
#include "planner/policies/policy.h"
#include "planner/workbench.h"

static void draft_wfbp(const struct gf_workbench *w, struct gf_draft *d)
{
	for (size_t i = 0; i < w->ntensors; i++)
		gf_draft_send(d, w, i, i);
}

static void explain_wfbp(const struct gf_workbench *w, const struct gf_draft *d,
			 struct gf_text *lines)
{
	(void)d;
	for (size_t i = 0; i < w->ntensors; i++)
		gf_text_addf(&lines[i], "by itself, from ready and the end of the one before");
}

const struct gf_policy gf_policy_wfbp = {
	.name = "wfbp",
	.description = "one message per tensor, as it becomes ready",
	.place = 30,
	.source = "ASC-WFBP, section II-B (Zhang et al. 2017)",
	.lanes = 1,
	.automatic = true,
	.draft = draft_wfbp,
	.explain = explain_wfbp,
};

static void draft_sequential(const struct gf_workbench *w, struct gf_draft *d)
{
	for (size_t i = 0; i < w->ntensors; i++)
		gf_draft_send(d, w, i, i)->release = GF_RELEASE_BACKWARD_END;
}

static void explain_sequential(const struct gf_workbench *w, const struct gf_draft *d,
			       struct gf_text *lines)
{
	(void)d;
	for (size_t i = 0; i < w->ntensors; i++)
		gf_text_addf(&lines[i], "by itself, once backward ends");
}

const struct gf_policy gf_policy_sequential = {
	.name = "sequential",
	.description = "one message per tensor, after backward has ended",
	.place = 10,
	.source = "baseline without overlap",
	.lanes = 1,
	.automatic = true,
	.draft = draft_sequential,
	.explain = explain_sequential,
};

static void draft_single(const struct gf_workbench *w, struct gf_draft *d)
{
	for (size_t i = 0; i < w->ntensors; i = w->run_last[i] + 1)
		gf_draft_send(d, w, i, w->run_last[i]);
}

static void explain_single(const struct gf_workbench *w, const struct gf_draft *d,
			   struct gf_text *lines)
{
	(void)d;
	for (size_t i = 0; i < w->ntensors; i++)
		gf_text_addf(&lines[i], "all together, ready with tensor %zu", w->run_last[i]);
}

const struct gf_policy gf_policy_single = {
	.name = "single",
	.description = "one message of all tensors",
	.place = 20,
	.source = "GradientFlow, lazy all-reduce without overlap",
	.lanes = 1,
	.automatic = true,
	.draft = draft_single,
	.explain = explain_single,
};
