/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/rows.h"

#include "cli/human.h"
#include "cli/plot.h"
#include "cli/table.h"
#include "json/json.h"

#define COLUMNS_MOST 24

struct column {
	const char *name;
	double value;
	bool whole;
};

static size_t columns_of(const struct gf_plan *p, const struct gf_outcome *o,
			 const struct gf_row_choice *c, struct column *out)
{
	size_t n = 0;

	out[n++] = (struct column){"ranks", o->ranks, true};
	if (c->bandwidth)
		out[n++] = (struct column){"bandwidth_bytes_per_s",
					   o->bandwidth_bytes_per_s, false};
	out[n++] = (struct column){"iteration_s", o->iteration_s, false};
	out[n++] = (struct column){"compute_s", o->compute_s, false};
	out[n++] = (struct column){"exposed_comm_s", o->exposed_comm_s, false};
	out[n++] =
		(struct column){"communication_s", o->communication_s, false};
	out[n++] = (struct column){"speedup", o->speedup, false};
	out[n++] = (struct column){"efficiency", o->efficiency, false};
	if (c->samples)
		out[n++] = (struct column){"samples_per_s", o->samples_per_s,
					   false};
	if (c->iterations > 0)
		out[n++] = (struct column){
			"total_s", gf_outcome_total_s(p, o, c->iterations),
			false};
	if (c->percentiles) {
		out[n++] = (struct column){"least_s", o->least_s, false};
		out[n++] = (struct column){"p50_s", o->p50_s, false};
		out[n++] = (struct column){"p90_s", o->p90_s, false};
		out[n++] = (struct column){"p99_s", o->p99_s, false};
		out[n++] = (struct column){"most_s", o->most_s, false};
		out[n++] = (struct column){"mean_s", o->mean_s, false};
	}
	return n;
}

static void csv_row(const char *policy, const struct column *columns, size_t n,
		    struct gf_text *out)
{
	char number[GF_JSON_REAL_TEXT];
	size_t i;

	gf_plot_label(out, policy);
	for (i = 0; i < n; i++) {
		gf_json_real_text(columns[i].value, number);
		if (columns[i].whole)
			gf_text_addf(out, ",%.0f", columns[i].value);
		else
			gf_text_addf(out, ",%s", number);
	}
	gf_text_addf(out, "\n");
}

void gf_outcomes_csv(const struct gf_plan *p, const struct gf_outcome *o,
		     size_t n, const struct gf_row_choice *c,
		     struct gf_text *out)
{
	struct column columns[COLUMNS_MOST];
	size_t count = columns_of(p, &o[0], c, columns), i;

	gf_text_addf(out, "policy");
	for (i = 0; i < count; i++)
		gf_text_addf(out, ",%s", columns[i].name);
	gf_text_addf(out, "\n");
	for (i = 0; i < n; i++) {
		count = columns_of(p, &o[i], c, columns);
		csv_row(p->policy ? p->policy : "", columns, count, out);
	}
}

static void json_row(const char *policy, const struct column *columns, size_t n,
		     struct gf_text *out)
{
	struct gf_json_writer w = {0};
	size_t i;

	gf_json_open_line(&w, NULL);
	if (policy)
		gf_json_put_string(&w, "policy", policy);
	for (i = 0; i < n; i++)
		if (columns[i].whole)
			gf_json_put_size(&w, columns[i].name,
					 (size_t)columns[i].value);
		else
			gf_json_put_real(&w, columns[i].name, columns[i].value);
	gf_json_close_object(&w);
	gf_text_add(out, w.text.data, w.text.length);
	gf_text_release(&w.text);
}

void gf_outcomes_json(const struct gf_plan *p, const struct gf_outcome *o,
		      size_t n, const struct gf_row_choice *c,
		      struct gf_text *out)
{
	struct column columns[COLUMNS_MOST];
	size_t i;

	for (i = 0; i < n; i++)
		json_row(p->policy, columns, columns_of(p, &o[i], c, columns),
			 out);
}

void gf_outcomes_table(const struct gf_outcome *outcomes, size_t n,
		       struct gf_text *out)
{
	struct gf_table t = {0};
	struct gf_human h;
	size_t i;

	gf_table_row(&t, 6,
		     (const char *[]){"ranks", "bandwidth", "iteration",
				      "exposed", "speed-up", "efficiency"});
	for (i = 0; i < n; i++) {
		const struct gf_outcome *o = &outcomes[i];
		double rate = o->bandwidth_bytes_per_s;

		gf_table_begin(&t, 6);
		gf_table_cell(&t, "%d", o->ranks);
		gf_table_cell(&t, "%s",
			      rate > 0 ? gf_human_rate(rate, &h) : "-");
		gf_table_cell(&t, "%s", gf_human_time(o->iteration_s, &h));
		gf_table_cell(&t, "%s", gf_human_time(o->exposed_comm_s, &h));
		gf_table_cell(&t, "%.4g", o->speedup);
		gf_table_cell(&t, "%.1f %%", 100 * o->efficiency);
	}
	gf_table_print(&t, out);
	gf_table_release(&t);
}
