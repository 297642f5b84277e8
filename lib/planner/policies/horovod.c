/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Horovod's tensor fusion. Once in a cycle of 1 ms the coordinator takes the gradients that have
 * become ready since, and makes messages of at most 128 MiB of them (the problem's threshold, if
 * one is given).
 *
 * Cycles are counted from the start of backward. Messages go when their last gradient is ready,
 * which is up to a cycle before Horovod sends them.
 */
#include <math.h>

#include "planner/policies/policy.h"
#include "planner/workbench.h"

#define CYCLE_S      1e-3
#define FUSION_BYTES (128 * 1048576.0)

static double fusion_bytes(const struct gf_problem *in)
{
	return in->threshold_bytes || in->threshold_zero ? (double)in->threshold_bytes
							 : FUSION_BYTES;
}

static double cycle_of(const struct gf_workbench *w, size_t tensor, double cycle_s)
{
	return ceil((w->ready_s[tensor] - w->in->model->forward_s) / cycle_s);
}

/* The last tensor of the message that begins at first. */
static size_t cut(const struct gf_workbench *w, size_t first, double cycle_s)
{
	double cycle = cycle_of(w, first, cycle_s), most = fusion_bytes(w->in);
	size_t last = first;

	while (last < w->run_last[first] && cycle_of(w, last + 1, cycle_s) == cycle &&
	       gf_workbench_bytes(w, first, last + 1) <= most)
		last++;
	return last;
}

/* In one cycle that does not end, messages are as large as they may be. */
static void fill(const struct gf_workbench *w, struct gf_draft *d, double cycle_s)
{
	size_t first = 0, last;

	d->threshold_bytes = (size_t)fusion_bytes(w->in);
	for (; first < w->ntensors; first = last + 1) {
		last = cut(w, first, cycle_s);
		gf_draft_send(d, w, first, last);
	}
}

static void draft(const struct gf_workbench *w, struct gf_draft *d)
{
	fill(w, d, CYCLE_S);
}

static void explain(const struct gf_workbench *w, const struct gf_draft *d, struct gf_text *lines)
{
	for (size_t i = 0; i < d->nsends; i++)
		for (size_t t = d->sends[i].first; t <= d->sends[i].last; t++)
			gf_text_addf(&lines[t], "ready in cycle %.0f, message of %.0f bytes",
				     cycle_of(w, t, CYCLE_S),
				     gf_workbench_bytes(w, d->sends[i].first, d->sends[i].last));
}

static void draft_at_most(const struct gf_workbench *w, struct gf_draft *d)
{
	fill(w, d, INFINITY);
}

/* Buckets of at most the threshold, in which DeepSpeed and XLA send what is ready; not listed. */
const struct gf_policy gf_policy_at_most = {
	.name = "at-most",
	.lanes = 1,
	.automatic = true,
	.thresholds = true,
	.draft = draft_at_most,
};

/* MANUAL
 * Horovod's tensor fusion as it is: what becomes ready within the same millisecond, up to 128
 * MiB, or up to
 * .Fl -threshold */
const struct gf_policy gf_policy_horovod = {
	.name = "horovod",
	.description = "what is ready in the same 1 ms, up to 128 MiB",
	.place = 80,
	.source = "Horovod, tensor fusion's defaults",
	.lanes = 1,
	.automatic = true,
	.thresholds = true,
	.draft = draft,
	.explain = explain,
};
