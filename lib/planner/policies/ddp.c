/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The buckets of PyTorch's DistributedDataParallel. Gradients fill a bucket in the order in which
 * they become ready (known from the second step on); once it holds its cap or more it is full, and
 * buckets go in order. By default the cap is 25 MiB, and 1 MiB for the first bucket. A cap that is
 * given (here: the problem's threshold) counts for all buckets, the first one too. In older
 * releases of PyTorch the first one keeps its 1 MiB.
 *
 * PyTorch fills one bucket per data type at a time. Here a bucket ends where the type changes.
 */
#include <math.h>

#include "planner/policies/policy.h"
#include "planner/workbench.h"

#define FIRST_BYTES 1048576.0
#define CAP_BYTES   (25 * FIRST_BYTES)

/* The caps of the first bucket and of the others. */
static void caps_of(const struct gf_problem *in, double *first, double *others)
{
	bool given = in->threshold_bytes || in->threshold_zero;

	*others = given ? (double)in->threshold_bytes : CAP_BYTES;
	*first = given ? *others : FIRST_BYTES;
}

static void fill(const struct gf_workbench *w, double first_cap, struct gf_draft *d)
{
	double cap, others;
	size_t first = 0;

	caps_of(w->in, &cap, &others);
	cap = fmin(cap, first_cap);
	d->threshold_bytes = (size_t)others;
	while (first < w->ntensors) {
		/* sizes are whole: as much as the cap is more than one less */
		size_t last = gf_workbench_lazy_cut(w, first, cap - 1);

		gf_draft_send(d, w, first, last);
		first = last + 1;
		cap = others;
	}
}

static void draft(const struct gf_workbench *w, struct gf_draft *d)
{
	fill(w, INFINITY, d);
}

static void explain(const struct gf_workbench *w, const struct gf_draft *d, struct gf_text *lines)
{
	double cap, others;

	caps_of(w->in, &cap, &others);
	for (size_t i = 0; i < d->nsends; i++, cap = others)
		for (size_t t = d->sends[i].first; t <= d->sends[i].last; t++)
			gf_text_addf(&lines[t], "bucket %zu has %.0f bytes of %.0f", i,
				     gf_workbench_bytes(w, d->sends[i].first, t), cap);
}

/* MANUAL
 * the buckets of PyTorch's DistributedDataParallel as it is: 25 MiB each, the first one 1 MiB.
 * With
 * .Fl -threshold ,
 * that is the cap of every bucket. */
const struct gf_policy gf_policy_ddp = {
	.name = "ddp",
	.description = "buckets of 25 MiB, the first of 1 MiB (PyTorch)",
	.place = 70,
	.source = "PyTorch, DistributedDataParallel's defaults",
	.lanes = 1,
	.automatic = true,
	.thresholds = true,
	.draft = draft,
	.explain = explain,
};

static void draft_capped(const struct gf_workbench *w, struct gf_draft *d)
{
	fill(w, FIRST_BYTES, d);
}

/* In older releases, with a cap that is given. */
/* ddp in older releases of PyTorch; not listed. */
const struct gf_policy gf_policy_ddp_capped = {
	.name = "ddp",
	.lanes = 1,
	.automatic = true,
	.thresholds = true,
	.draft = draft_capped,
};
