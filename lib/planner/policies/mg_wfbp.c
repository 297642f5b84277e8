/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Merged-gradient wait-free backpropagation (Shi, Chu, Li 2019): the waiting message takes in the
 * next tensor iff that one is ready before the message would have got through its startup,
 *
 *	ready(l-1) < start(l) + a		(ASC-WFBP Eq. 5, strictly)
 *
 * and after a merge start(l) = max(start(l), ready(l-1)).
 */
#include <math.h>

#include "cli/human.h"
#include "planner/policies/policy.h"
#include "planner/workbench.h"

static void quote(double next, double start, double startup, struct gf_text *line)
{
	gf_text_addf(line, "next ready %s %s start %s + startup %s", gf_human_time(next).text,
		     next < start + startup ? "<" : ">=", gf_human_time(start).text,
		     gf_human_time(startup).text);
}

/* Drafts into d, or explains into lines; the other is NULL. */
static void walk(const struct gf_workbench *w, struct gf_draft *d, struct gf_text *lines)
{
	double previous_end = 0;
	size_t first = 0, last;

	for (; first < w->ntensors; first = last + 1) {
		double start = fmax(w->ready_s[first], previous_end);

		for (last = first; last < w->run_last[first]; last++) {
			double bytes = gf_workbench_bytes(w, first, last);
			size_t option = gf_menu_pick(&w->menu, bytes);
			double a = w->menu.options[option].line.startup_s;
			double next = w->ready_s[last + 1];

			if (lines)
				quote(next, start, a, &lines[last]);
			if (!(next < start + a))
				break;
			start = fmax(start, next);
		}
		if (lines && last == w->run_last[first])
			gf_text_addf(&lines[last], "nothing to merge with");
		if (d)
			gf_draft_send(d, w, first, last);
		previous_end = start + gf_menu_cost_s(&w->menu, gf_workbench_bytes(w, first, last));
	}
}

static void draft(const struct gf_workbench *w, struct gf_draft *d)
{
	walk(w, d, NULL);
}

static void explain(const struct gf_workbench *w, const struct gf_draft *d, struct gf_text *lines)
{
	(void)d;
	walk(w, NULL, lines);
}

const struct gf_policy gf_policy_mg_wfbp = {
	.name = "mg-wfbp",
	.description = "merge a tensor that is ready within the startup",
	.place = 50,
	.source = "ASC-WFBP, Eq. 5 (MG-WFBP, Shi et al. 2019)",
	.lanes = 1,
	.automatic = true,
	.draft = draft,
	.explain = explain,
};
