/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lazy all-reduce (GradientFlow, section 3.1): gradients wait in the pool until they are more than
 * theta bytes, then go as one message; what is left at the end is flushed.
 *
 * Without a given theta the best one is searched. Between two neighbouring thetas the cuts only
 * change when theta reaches the bytes of the smallest message that it made, so walking from each
 * theta to that size visits every distinct plan. On models where that is too many (the work is
 * bounded, not timed) the walk goes on in geometric strides.
 */
#include <math.h>

#include "planner/policies/policy.h"
#include "planner/workbench.h"

/* Messages looked at: about a fifth of a second. */
#define SEARCH_BUDGET 1000000.0
#define STRIDE        (1 + 1.0 / 16)

/*
 * The end of communication on one lane, and in *smallest the bytes of the smallest message that
 * theta made (INFINITY: every cut was a flush).
 */
static double serial_end_s(const struct gf_workbench *w, double theta, double *smallest,
			   double *looked_at)
{
	struct gf_workbench_at at = {w->in->model->forward_s, 0};
	size_t first = 0;

	*smallest = INFINITY;
	while (first < w->ntensors) {
		size_t last = gf_workbench_lazy_cut(w, first, theta);
		double bytes = gf_workbench_bytes(w, first, last);

		if (bytes > theta)
			*smallest = fmin(*smallest, bytes);
		at = gf_workbench_after(w,
					&(struct gf_workbench_next){gf_menu_pick(&w->menu, bytes),
								    bytes, w->ready_s[last]},
					at);
		first = last + 1;
		*looked_at += 1;
	}
	return w->mutual ? fmax(at.end_s, w->backward_end_s + at.lag_s) : at.end_s;
}

static double search(const struct gf_workbench *w)
{
	double theta = 0, best_theta = 0, best = INFINITY, looked_at = 0;

	for (;;) {
		double smallest;
		double end = serial_end_s(w, theta, &smallest, &looked_at);

		/* ties: the larger theta, fewer messages */
		if (end <= best) {
			best = end;
			best_theta = theta;
		}
		if (isinf(smallest))
			return best_theta;
		theta = looked_at > SEARCH_BUDGET ? fmax(smallest, theta * STRIDE) : smallest;
	}
}

static void draft(const struct gf_workbench *w, struct gf_draft *d)
{
	double theta = (double)w->in->threshold_bytes;

	if (theta <= 0 && !w->in->threshold_zero)
		theta = search(w);
	d->threshold_bytes = (size_t)fmin(theta, 0x1p62);
	gf_draft_cut(d, w, theta);
}

static void explain(const struct gf_workbench *w, const struct gf_draft *d, struct gf_text *lines)
{
	for (size_t i = 0; i < d->nsends; i++)
		for (size_t t = d->sends[i].first; t <= d->sends[i].last; t++) {
			double waiting = gf_workbench_bytes(w, d->sends[i].first, t);
			bool sent = waiting > (double)d->threshold_bytes;

			gf_text_addf(&lines[t], "%.0f bytes wait %s theta = %zu%s", waiting,
				     sent ? ">" : "<=", d->threshold_bytes,
				     t == d->sends[i].last && !sent
					     ? ", flushed: the last of its run"
					     : "");
		}
}

/* MANUAL
 * send once more than theta bytes wait (GradientFlow's lazy all-reduce); without
 * .Fl -threshold
 * theta is searched over all cuts that it can make */
const struct gf_policy gf_policy_threshold = {
	.name = "threshold",
	.description = "send once more than theta bytes wait (theta searched)",
	.place = 40,
	.source = "GradientFlow, lazy all-reduce",
	.lanes = 1,
	.automatic = true,
	.thresholds = true,
	.draft = draft,
	.explain = explain,
};
