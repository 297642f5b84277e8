/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ASC-WFBP's Algorithm 1 as it is printed, beside which lib/planner/policies/asc_wfbp.c
 * has its mistakes corrected. The reading: tau_b[1] is set, entries that are
 * never defined are 0, m is modified in place.
 *
 * CALCCOMMTIME is printed as a loop over all layers, called after every
 * decision. Each layer's own branch overwrites what an earlier call, or a
 * merge, wrote (lines 26-27 after 31-32), so when layer l is decided
 *
 *	tau_c[l] = tau_b[l] + t_b[l],  t_c[l] = a + b*m[l]
 *
 * with all tensors merged so far in m[l], and nothing after it matters. The
 * only other value read is tau_c[l+1], beside m[l+1]: 0 if that layer was
 * merged, which leaves no penalty, and else tau_b[l+1] + t_b[l+1]. One pass is
 * therefore the same; tests/unit/test_asc_printed.c holds it to the printed
 *form.
 *
 * The printed algorithm knows one gamma, one a and one b: the cheapest
 * option's for the message at hand.
 */
#include "asc_printed.h"

#include "planner/workbench.h"

static void draft(const struct gf_workbench *w, struct gf_draft *d)
{
	double forward_s = w->in->model->forward_s;
	double m1 = 0, tau_c1 = 0; /* m[l+1], tau_c[l+1] */
	size_t first = 0, i;

	d->lanes = w->lanes;
	for (i = 0; i < w->ntensors; i++) {
		double m = gf_workbench_bytes(w, first, i);
		size_t option = gf_menu_pick(&w->menu, m);
		double a = w->menu.options[option].line.startup_s;
		double b = w->menu.options[option].line.per_byte_s;
		double tau_c = w->ready_s[i] - forward_s;
		double t_c = a + b * m;
		double begun = i ? w->ready_s[i - 1] - forward_s : 0;
		double next, penalty, base = a + b * m1;
		enum gf_mode mode = GF_MODE_SIMULTANEOUS;

		if (i + 1 < w->ntensors) {
			next = w->ready_s[i + 1] - forward_s;
			penalty = base > 0 ? (gf_workbench_gamma(w, option, m, 2) - 1) * b * m1 *
						     (1 - (tau_c - tau_c1) / base)
					   : 0;
			/* line 8 prints tau_b[l], not tau_b[l-1] */
			if (tau_c + t_c <= begun + (next - tau_c))
				mode = GF_MODE_NORMAL;
			else if (next < tau_c + a &&
				 !(tau_c + (tau_c - begun) + t_c + penalty < next) &&
				 i < w->run_last[first])
				mode = GF_MODE_MERGED;
		}
		m1 = m;
		tau_c1 = tau_c;
		if (mode == GF_MODE_MERGED) {
			m1 = 0;
			continue;
		}
		gf_draft_send(d, w, first, i)->mode = mode;
		first = i + 1;
	}
}

const struct gf_policy gf_policy_asc_printed = {
	.name = "asc-wfbp-printed",
	.description = "Algorithm 1 as printed",
	.source = "ASC-WFBP, Algorithm 1 (Shi, Chu, Li 2021)",
	.lanes = 2,
	.draft = draft,
};
