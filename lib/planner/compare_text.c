/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "cli/human.h"
#include "cli/table.h"
#include "codec/codec.h"
#include "coll/algorithm.h"
#include "cost/preset.h"
#include "json/json.h"
#include "planner/compare.h"
#include "planner/emit.h"

static void json_row(const struct gf_compared *row, struct gf_text *out)
{
	struct gf_json_writer w = {0};

	gf_json_open_line(&w, NULL);
	gf_plan_brief_put(&row->plan, &w);
	gf_json_put_real(&w, "iteration_s", row->iteration_s);
	gf_json_put_real(&w, "compute_s", row->compute_s);
	gf_json_put_real(&w, "exposed_comm_s", row->exposed_comm_s);
	gf_json_put_real(&w, "lower_bound_s", row->lower_bound_s);
	if (row->iteration_high_s > 0) {
		gf_json_put_real(&w, "iteration_low_s", row->iteration_low_s);
		gf_json_put_real(&w, "iteration_high_s", row->iteration_high_s);
	}
	gf_json_close_object(&w);
	gf_text_add(out, w.text.data, w.text.length);
	gf_text_release(&w.text);
}

void gf_comparison_json(const struct gf_comparison *c, struct gf_text *out)
{
	size_t i;

	for (i = 0; i < c->nrows; i++)
		json_row(&c->rows[i], out);
}

/* Stale gradients may take more steps: their rows say how stale they are. */
static void add_system(struct gf_table *t, const struct gf_plan_brief *b)
{
	if (b->staleness > 1)
		gf_table_cell(t, "%s (K=%d)", b->system, b->staleness);
	else
		gf_table_cell(t, "%s", b->system);
}

void gf_comparison_table(const struct gf_comparison *c, size_t window,
			 struct gf_text *out)
{
	static const char *const heading[] = {
		"algorithm", "system",      "policy", "codec",
		"selection", "messages",    "lanes",  "iteration",
		"exposed",   "above bound", "low",    "high"};
	bool doubted = c->nrows > 0 && c->rows[0].iteration_high_s > 0;
	/* the first column, where algorithms are compared */
	size_t named = c->axes >> GF_COMPARE_ALGORITHMS & 1;
	size_t columns = (doubted ? 11 : 9) + named, i;
	struct gf_table t = {0};
	struct gf_human h;

	gf_table_row(&t, columns, heading + !named);
	for (i = 0; i < c->nrows; i++) {
		const struct gf_compared *r = &c->rows[i];
		double above = r->lower_bound_s > 0
				       ? r->iteration_s / r->lower_bound_s - 1
				       : 0;

		gf_table_begin(&t, columns);
		if (named)
			gf_table_cell(&t, "%s", r->plan.algorithms);
		add_system(&t, &r->plan);
		gf_table_cell(&t, "%s", r->plan.policy);
		gf_table_cell(&t, "%s", r->plan.codecs);
		gf_table_cell(&t, "%s", r->plan.selection);
		gf_table_cell(&t, "%zu", r->plan.nmessages);
		gf_table_cell(&t, "%d", r->plan.lanes);
		gf_table_cell(&t, "%s", gf_human_time(r->iteration_s, &h));
		gf_table_cell(&t, "%s", gf_human_time(r->exposed_comm_s, &h));
		/* the bound and the plan are sums in another order */
		gf_table_cell(&t, "%.1f %%", 100 * fmax(above, 0));
		if (!doubted)
			continue;
		gf_table_cell(&t, "%s", gf_human_time(r->iteration_low_s, &h));
		gf_table_cell(&t, "%s", gf_human_time(r->iteration_high_s, &h));
	}
	gf_table_print_in(&t, window, out);
	gf_table_release(&t);
}

const struct gf_list gf_plan_lists[GF_PLAN_LISTS + 1] = {
	{"policies", "--policy, besides auto", {gf_policies, 0, NULL}, true},
	{"systems", "--system", {gf_systems, sizeof(*gf_systems), NULL}, true},
	{"selections", "--selection", {gf_select_plans, 0, NULL}, true},
	{"algorithms", "--algorithm", {gf_algorithms, 0, NULL}, false},
	{"codecs", "--codecs", {gf_codecs, sizeof(*gf_codecs), NULL}, false},
	{"gpus", "--gpu", {gf_presets, sizeof(*gf_presets), NULL}, false},
	{"targets", "--emit", {gf_emitters, 0, NULL}, false},
	{NULL, NULL, {NULL, 0, NULL}, false},
};
