/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decoupled all-reduce (DeAR): a message's reduce-scatter runs in backward, its
 * all-gather in the next forward, before the tensor's layer runs again. Half of
 * every startup and byte moves out of backward's tail; forward pays where an
 * all-gather is late.
 *
 * Messages are cut by the lazy rule; the threshold that the step model likes
 * best is searched in octaves and then between them.
 */
#include <math.h>

#include "planner/policies.h"
#include "planner/work.h"

#define STEPS_PER_OCTAVE 4

static void cut(const struct gf_work *w, struct gf_draft *d, double theta)
{
	size_t first = 0, last;

	d->nsends = 0;
	for (; first < w->ntensors; first = last + 1) {
		last = gf_work_lazy_cut(w, first, theta);
		gf_draft_send(d, w, first, last)->half = GF_HALF_SPLIT;
	}
}

static void draft(const struct gf_work *w, struct gf_draft *d)
{
	double total = gf_work_bytes(w, 0, w->ntensors - 1);
	double theta, best_theta = 0, best_s = INFINITY;

	if (w->in->threshold_bytes || w->in->threshold_zero) {
		best_theta = (double)w->in->threshold_bytes;
	} else {
		/* from one message down, so that a tie has fewer of them */
		for (theta = total; theta >= 1;
		     theta /= pow(2, 1.0 / STEPS_PER_OCTAVE)) {
			struct gf_sim_result result = {0};

			cut(w, d, theta);
			gf_work_predict(w, d, &result);
			if (result.iteration_s < best_s) {
				best_s = result.iteration_s;
				best_theta = floor(theta);
			}
		}
	}
	cut(w, d, best_theta);
	d->threshold_bytes = (size_t)fmin(best_theta, 0x1p62);
}

const struct gf_policy gf_policy_dear = {
	.name = "dear",
	.description = "reduce-scatter in backward, all-gather in forward",
	.source = "DeAR (Zhang et al. 2023)",
	.lanes = 1,
	.automatic = false,
	.halves = true,
	.thresholds = true,
	.draft = draft,
};
