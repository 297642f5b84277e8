/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/rows.h"

#include "base/array.h"
#include "cli/human.h"
#include "cli/plot.h"
#include "cli/table.h"
#include "doc/plan_brief.h"
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

/* A row is on its plan's curve, one for each bandwidth. */
static void add_series(const struct gf_row *r, bool bandwidth,
		       struct gf_text *out)
{
	if (r->name)
		gf_text_addf(out, "%s", r->name);
	if (bandwidth)
		gf_text_addf(out, "%s%.4g Gb/s", r->name ? " at " : "",
			     r->outcome.bandwidth_bytes_per_s * 8e-9);
}

static void csv_heading(const struct column *columns, size_t n,
			const struct gf_row *first,
			const struct gf_row_choice *c, struct gf_text *out)
{
	size_t i;

	gf_text_addf(out, "policy");
	for (i = 0; i < n; i++)
		gf_text_addf(out, ",%s", columns[i].name);
	gf_text_addf(out, ",system,codecs,selection,algorithms,staleness,"
			  "lanes,messages");
	gf_text_addf(out, "%s%s\n", first->name ? ",plan" : "",
		     c->series ? ",series" : "");
}

static void csv_label(struct gf_text *out, const char *text)
{
	gf_text_addf(out, ",");
	gf_plot_label(out, text);
}

static void csv_row(const struct gf_row *r, const struct column *columns,
		    size_t n, const struct gf_row_choice *c,
		    struct gf_text *out)
{
	struct gf_plan_brief b = gf_plan_brief(r->plan);
	char number[GF_JSON_REAL_TEXT];
	struct gf_text series = {0};
	size_t i;

	gf_plot_label(out, b.policy);
	for (i = 0; i < n; i++) {
		gf_json_real_text(columns[i].value, number);
		if (columns[i].whole)
			gf_text_addf(out, ",%.0f", columns[i].value);
		else
			gf_text_addf(out, ",%s", number);
	}
	csv_label(out, b.system);
	csv_label(out, b.codecs);
	csv_label(out, b.selection);
	csv_label(out, b.algorithms);
	gf_text_addf(out, ",%d,%d,%zu", b.staleness, b.lanes, b.nmessages);
	if (r->name)
		csv_label(out, r->name);
	if (c->series) {
		add_series(r, c->bandwidth, &series);
		csv_label(out, series.data);
	}
	gf_text_addf(out, "\n");
	gf_text_release(&series);
	gf_plan_brief_release(&b);
}

void gf_rows_csv(const struct gf_row *rows, size_t n,
		 const struct gf_row_choice *c, struct gf_text *out)
{
	struct column columns[COLUMNS_MOST];
	size_t count = columns_of(rows[0].plan, &rows[0].outcome, c, columns);
	size_t i;

	csv_heading(columns, count, &rows[0], c, out);
	for (i = 0; i < n; i++) {
		count = columns_of(rows[i].plan, &rows[i].outcome, c, columns);
		csv_row(&rows[i], columns, count, c, out);
	}
}

static void json_row(const struct gf_row *r, const struct column *columns,
		     size_t n, struct gf_text *out)
{
	struct gf_plan_brief b = gf_plan_brief(r->plan);
	struct gf_json_writer w = {0};
	size_t i;

	gf_json_open_line(&w, NULL);
	if (r->name)
		gf_json_put_string(&w, "plan", r->name);
	gf_plan_brief_put(&b, &w);
	for (i = 0; i < n; i++)
		if (columns[i].whole)
			gf_json_put_size(&w, columns[i].name,
					 (size_t)columns[i].value);
		else
			gf_json_put_real(&w, columns[i].name, columns[i].value);
	gf_json_close_object(&w);
	gf_text_add(out, w.text.data, w.text.length);
	gf_text_release(&w.text);
	gf_plan_brief_release(&b);
}

void gf_rows_json(const struct gf_row *rows, size_t n,
		  const struct gf_row_choice *c, struct gf_text *out)
{
	struct column columns[COLUMNS_MOST];
	size_t i;

	for (i = 0; i < n; i++)
		json_row(&rows[i], columns,
			 columns_of(rows[i].plan, &rows[i].outcome, c, columns),
			 out);
}

/* The heading, by the first row: all have the same columns. */
static size_t headings(const struct gf_row *first,
		       const struct gf_row_choice *c,
		       const char *names[COLUMNS_MOST])
{
	static const char *const what[] = {"system",    "policy",   "codec",
					   "selection", "messages", "lanes",
					   "ranks"};
	static const char *const times[] = {"iteration", "exposed", "speed-up",
					    "efficiency"};
	static const char *const shares[] = {"50 %", "90 %", "99 %"};
	size_t n = 0, i;

	if (first->name)
		names[n++] = "plan";
	for (i = 0; i < GF_ARRAY_LENGTH(what); i++)
		names[n++] = what[i];
	if (c->bandwidth)
		names[n++] = "bandwidth";
	for (i = 0; i < GF_ARRAY_LENGTH(times); i++)
		names[n++] = times[i];
	for (i = 0; c->percentiles && i < GF_ARRAY_LENGTH(shares); i++)
		names[n++] = shares[i];
	if (c->iterations > 0)
		names[n++] = "total";
	return n;
}

static void time_cell(struct gf_table *t, double time_s)
{
	struct gf_human h;

	gf_table_cell(t, "%s", gf_human_time(time_s, &h));
}

static void table_row(struct gf_table *t, const struct gf_row *r,
		      const struct gf_row_choice *c)
{
	struct gf_plan_brief b = gf_plan_brief(r->plan);
	const struct gf_outcome *o = &r->outcome;
	struct gf_human h;

	if (r->name)
		gf_table_cell(t, "%s", r->name);
	gf_table_cell(t, "%s", b.system);
	gf_table_cell(t, "%s", b.policy);
	gf_table_cell(t, "%s", b.codecs);
	gf_table_cell(t, "%s", b.selection);
	gf_table_cell(t, "%zu", b.nmessages);
	gf_table_cell(t, "%d", b.lanes);
	gf_table_cell(t, "%d", o->ranks);
	if (c->bandwidth)
		gf_table_cell(t, "%s",
			      gf_human_rate(o->bandwidth_bytes_per_s, &h));
	time_cell(t, o->iteration_s);
	time_cell(t, o->exposed_comm_s);
	gf_table_cell(t, "%.4g", o->speedup);
	gf_table_cell(t, "%.1f %%", 100 * o->efficiency);
	if (c->percentiles) {
		time_cell(t, o->p50_s);
		time_cell(t, o->p90_s);
		time_cell(t, o->p99_s);
	}
	if (c->iterations > 0)
		time_cell(t, gf_outcome_total_s(r->plan, o, c->iterations));
	gf_plan_brief_release(&b);
}

void gf_rows_table(const struct gf_row *rows, size_t n,
		   const struct gf_row_choice *c, size_t window,
		   struct gf_text *out)
{
	const char *names[COLUMNS_MOST];
	size_t columns = headings(&rows[0], c, names), i;
	struct gf_table t = {0};

	gf_table_row(&t, columns, names);
	for (i = 0; i < n; i++) {
		gf_table_begin(&t, columns);
		table_row(&t, &rows[i], c);
	}
	gf_table_print_in(&t, window, out);
	gf_table_release(&t);
}
