/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ASC-WFBP with Theorem 1 read as its derivation means it (SYSTEMS.md section
 * 1). Tensors are walked in generation order; the waiting message has `bytes`,
 * would take own = a + b*bytes alone and start at max(ready, previous end):
 *
 *	Q1  start + own <= next ready			normal
 *	Q2  next ready < start + a
 *	Q3  ready + own + penalty(ready) < next ready
 *	    Q2 and not Q3				merge with the next
 *tensor otherwise					simultaneous
 *
 * The penalty is what the rest of the previous message costs this one
 * (Eq. 13); the rest is a share in [0, 1] of it, and no more bytes are charged
 * than this message has. The last tensor's message is simultaneous.
 */
#include <math.h>

#include "planner/policies.h"
#include "planner/work.h"

struct sent {
	double bytes, start_s, end_s;
};

/* What starting at t_s beside the previous message costs, Eq. 13 corrected. */
static double penalty_s(const struct gf_work *w, const struct sent *previous,
			const struct gf_send *s, double bytes, double t_s)
{
	const struct gf_option *o = &w->menu.options[s->option];
	double length = previous->end_s - previous->start_s;
	double left;

	if (previous->bytes <= 0 || !(length > 0))
		return 0;
	left = 1 - (t_s - previous->start_s) / length;
	left = previous->bytes * fmin(fmax(left, 0), 1);
	return (gf_work_gamma(w, s->option, bytes, 2) - 1) * o->per_byte_s *
	       fmin(left, bytes);
}

static void draft(const struct gf_work *w, struct gf_draft *d)
{
	struct sent previous = {0, 0, 0};
	size_t first = 0, last;

	d->lanes = w->lanes;
	for (last = 0; last < w->ntensors; last++) {
		double ready = w->ready_s[last];
		double bytes = gf_work_bytes(w, first, last);
		double own = gf_menu_cost_s(&w->menu, bytes);
		double start = fmax(ready, previous.end_s);
		bool final = last + 1 == w->ntensors;
		double next = final ? 0 : w->ready_s[last + 1];
		struct gf_send send = {
			.option = gf_menu_pick(&w->menu, bytes),
		};
		double a = w->menu.options[send.option].startup_s;
		double penalty = penalty_s(w, &previous, &send, bytes, ready);
		bool normal = !final && start + own <= next;

		if (!final && !normal && next < start + a &&
		    !(ready + own + penalty < next) &&
		    last < w->run_last[first])
			continue; /* merge */
		gf_draft_send(d, w, first, last)->mode =
			normal ? GF_MODE_NORMAL : GF_MODE_SIMULTANEOUS;
		if (!normal) {
			start = ready;
			own += penalty;
		}
		previous = (struct sent){bytes, start,
					 fmax(previous.end_s, start + own)};
		first = last + 1;
	}
}

const struct gf_policy gf_policy_asc_wfbp = {
	.name = "asc-wfbp",
	.description = "normal, merged or simultaneous by Theorem 1, corrected",
	.source = "ASC-WFBP, Theorem 1 (Shi, Chu, Li 2021)",
	.lanes = 2,
	.automatic = true,
	.draft = draft,
};
