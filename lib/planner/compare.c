/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/compare.h"

#include <math.h>
#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"
#include "cli/human.h"
#include "cli/table.h"
#include "codec/codec.h"
#include "coll/algorithm.h"
#include "cost/preset.h"
#include "json/json.h"
#include "planner/emit.h"
#include "planner/systems.h"

/* Best first; equals stay in the registry's order. */
static void sort(struct gf_compared *rows, size_t n)
{
	size_t i, k;

	for (i = 1; i < n; i++) {
		struct gf_compared row = rows[i];

		for (k = i; k > 0 && rows[k - 1].iteration_s > row.iteration_s;
		     k--)
			rows[k] = rows[k - 1];
		rows[k] = row;
	}
}

/* A bound that no plan of any policy beats: that over the most lanes that one
 * of them may use. Policies that split messages keep their own. */
static void share_bound(struct gf_compared *rows, size_t n)
{
	double bound = INFINITY;
	size_t i;

	for (i = 0; i < n; i++)
		if (rows[i].policy->automatic)
			bound = fmin(bound, rows[i].lower_bound_s);
	for (i = 0; i < n; i++)
		if (rows[i].policy->automatic)
			rows[i].lower_bound_s = bound;
}

/* One policy's row; 1: it is left out, with a note. */
static int make_row(const struct gf_task *t, const struct gf_policy *policy,
		    struct gf_compared *row, struct gf_text *notes,
		    struct gf_error *err)
{
	struct gf_plan p;
	int rc = gf_task_plan(t, policy, &p, err);

	if ((rc == -EINVAL || rc == -ENOTSUP) && !policy->automatic) {
		gf_text_addf(notes, "%s is left out: %s\n", policy->name,
			     err->text);
		return 1;
	}
	if (rc < 0)
		return rc;
	*row = (struct gf_compared){
		.policy = policy,
		.lanes = p.lanes,
		.nmessages = p.nmessages,
		.iteration_s = p.predicted->iteration_s,
		.compute_s = p.predicted->compute_s,
		.exposed_comm_s = p.predicted->exposed_comm_s,
		.lower_bound_s = p.predicted->lower_bound_s,
		.iteration_low_s = p.predicted->iteration_low_s,
		.iteration_high_s = p.predicted->iteration_high_s,
	};
	gf_plan_release(&p);
	return 0;
}

/* A row per policy that makes a plan. */
static int make_rows(const struct gf_task *t, struct gf_compared *rows,
		     size_t *n, struct gf_text *notes, struct gf_error *err)
{
	size_t i;
	int rc;

	if (!t->problem.model || !t->problem.ranks)
		return gf_error_set(
			err, -EINVAL, "--compare: want %s, found none",
			t->problem.model ? "a number of ranks (--ranks)"
					 : "the tensors of a model");
	for (i = 0; gf_policies[i]; i++) {
		rc = make_row(t, gf_policies[i], &rows[*n], notes, err);
		if (rc < 0)
			return rc;
		*n += rc == 0;
	}
	return 0;
}

int gf_request_compare(const struct gf_request *r, struct gf_compared **rows,
		       size_t *nrows, struct gf_text *notes,
		       struct gf_error *err)
{
	struct gf_task t;
	struct gf_compared *made;
	size_t n = 0, i;
	int rc;

	if (r->rule)
		return gf_error_set(err, -EINVAL,
				    "want no rule where policies are compared, "
				    "got one, which says the plan");
	rc = gf_request_pose(r, &t, notes, err);
	if (rc < 0)
		return rc;
	/* every policy at its best, unless the user asks for less */
	if (!r->tolerance_asked)
		t.problem.tolerance = 0;
	for (i = 0; gf_policies[i]; i++)
		;
	made = gf_xcalloc(i, sizeof(*made));
	rc = make_rows(&t, made, &n, notes, err);
	if (rc == 0)
		gf_task_note(&t, notes);
	gf_task_release(&t);
	if (rc < 0) {
		free(made);
		return rc;
	}
	share_bound(made, n);
	sort(made, n);
	if (n > 0 && !made[0].policy->automatic && !r->halves)
		gf_text_addf(notes,
			     "%s is the fastest, but makes the next forward "
			     "pass wait: auto leaves it out (--halves lets it "
			     "in)\n",
			     made[0].policy->name);
	*rows = made;
	*nrows = n;
	return 0;
}

void gf_compared_json(const struct gf_compared *row, struct gf_text *out)
{
	struct gf_json_writer w = {0};

	gf_json_open_line(&w, NULL);
	gf_json_put_string(&w, "policy", row->policy->name);
	gf_json_put_int(&w, "lanes", row->lanes);
	gf_json_put_size(&w, "messages", row->nmessages);
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

void gf_compared_table(const struct gf_compared *rows, size_t n,
		       struct gf_text *out)
{
	bool doubted = n > 0 && rows[0].iteration_high_s > 0;
	size_t columns = doubted ? 8 : 6, i;
	struct gf_table t = {0};
	struct gf_human h;

	gf_table_row(&t, columns,
		     (const char *[]){"policy", "iteration", "exposed",
				      "messages", "lanes", "above bound", "low",
				      "high"});
	for (i = 0; i < n; i++) {
		const struct gf_compared *r = &rows[i];
		double above = r->lower_bound_s > 0
				       ? r->iteration_s / r->lower_bound_s - 1
				       : 0;

		gf_table_begin(&t, columns);
		gf_table_cell(&t, "%s", r->policy->name);
		gf_table_cell(&t, "%s", gf_human_time(r->iteration_s, &h));
		gf_table_cell(&t, "%s", gf_human_time(r->exposed_comm_s, &h));
		gf_table_cell(&t, "%zu", r->nmessages);
		gf_table_cell(&t, "%d", r->lanes);
		/* the bound and the plan are sums in another order */
		gf_table_cell(&t, "%.1f %%", 100 * fmax(above, 0));
		if (!doubted)
			continue;
		gf_table_cell(&t, "%s", gf_human_time(r->iteration_low_s, &h));
		gf_table_cell(&t, "%s", gf_human_time(r->iteration_high_s, &h));
	}
	gf_table_print(&t, out);
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
