/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/rows.h"

#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/human.h"
#include "cli/table.h"
#include "documents/plan_brief.h"
#include "json/json.h"

/*
 * The columns of times: the name for machines, the heading for people (NULL: machines alone), and
 * where an outcome has the value. A column is there if `where` is not 0 in some row.
 */
enum kind { WHOLE, TIME, RATE, NUMBER, SHARE, BYTES, ERROR };

#define AT(member) offsetof(struct gf_outcome, member)
#define ALWAYS     offsetof(struct gf_outcome, iteration_s)
static const struct column {
	const char *name, *heading;
	enum kind kind;
	size_t at, where;
	bool given; /* a circumstance, which rows without times have, too */
} columns[] = {
	{"ranks", "ranks", WHOLE, AT(ranks), ALWAYS, true},
	{"bandwidth_bytes_per_s", "bandwidth", RATE, AT(bandwidth_bytes_per_s),
	 AT(bandwidth_bytes_per_s), true},
	{"period_steps", "H", NUMBER, AT(period_steps), AT(period_steps), true},
	{"iteration_s", "step", TIME, AT(iteration_s), ALWAYS},
	{"iteration_low_s", "low", TIME, AT(low_s), AT(high_s)},
	{"iteration_high_s", "high", TIME, AT(high_s), AT(high_s)},
	{"compute_s", NULL, TIME, AT(compute_s), ALWAYS},
	{"exposed_comm_s", "exposed", TIME, AT(exposed_comm_s), ALWAYS},
	{"communication_s", NULL, TIME, AT(communication_s), ALWAYS},
	{"hideable_s", NULL, TIME, AT(hideable_s), AT(largest_speedup)},
	{"speedup", "speed-up", NUMBER, AT(speedup), ALWAYS},
	{"largest_speedup", NULL, NUMBER, AT(largest_speedup), AT(largest_speedup)},
	{"efficiency", "efficiency", SHARE, AT(efficiency), ALWAYS},
	{"efficiency_low", NULL, SHARE, AT(efficiency_low), AT(high_s)},
	{"efficiency_high", NULL, SHARE, AT(efficiency_high), AT(high_s)},
	{"unlimited_s", NULL, TIME, AT(unlimited_s), AT(unlimited_s)},
	{"error", "error", ERROR, AT(error), AT(error_of_note)},
	{"memory_bytes", "memory", BYTES, AT(memory_bytes), AT(memory_bytes)},
	{"samples_per_s", NULL, NUMBER, AT(samples_per_s), AT(samples_per_s)},
	{"period_s", "period", TIME, AT(period_s), AT(period_s)},
	{"outer_s", NULL, TIME, AT(outer_s), AT(period_s)},
	{"outer_exposed_s", NULL, TIME, AT(outer_exposed_s), AT(period_s)},
	{"total_s", "total", TIME, AT(total_s), AT(total_s)},
	{"least_s", NULL, TIME, AT(least_s), AT(most_s)},
	{"p50_s", "50 %", TIME, AT(p50_s), AT(most_s)},
	{"p90_s", "90 %", TIME, AT(p90_s), AT(most_s)},
	{"p99_s", "99 %", TIME, AT(p99_s), AT(most_s)},
	{"most_s", NULL, TIME, AT(most_s), AT(most_s)},
	{"mean_s", NULL, TIME, AT(mean_s), AT(most_s)},
};
#define NCOLUMNS GF_ARRAY_LENGTH(columns)

static double real_at(const struct gf_row *r, size_t at)
{
	return *(const double *)((const char *)&r->outcome + at);
}

static double value_of(const struct gf_row *r, const struct column *c)
{
	return c->kind == WHOLE ? *(const int *)((const char *)&r->outcome + c->at)
				: real_at(r, c->at);
}

/* Is something known there? */
static bool is_there(const struct gf_row *r, const struct column *c)
{
	return c->where == ALWAYS || real_at(r, c->where) > 0;
}

/* What there is to print of rows. */
struct shown {
	bool column[NCOLUMNS];
	bool name, period, left_out;
	enum gf_series series;
};

static struct shown look(const struct gf_row *rows, size_t n, enum gf_series series)
{
	struct shown s = {.name = rows->name != NULL, .series = series};

	for (size_t i = 0; i < n; i++) {
		s.left_out |= rows[i].left_out != NULL;
		s.period |= rows[i].plan->period.plan != NULL;
	}
	for (size_t k = 0; k < NCOLUMNS; k++)
		for (size_t i = 0; i < n; i++)
			s.column[k] |= is_there(&rows[i], &columns[k]);
	return s;
}

/* A row that is left out has its circumstances, and no times. */
static bool has(const struct gf_row *r, size_t column)
{
	return (!r->left_out || columns[column].given) && is_there(r, &columns[column]);
}

/* A row is on its plan's curve, one for each bandwidth, or also for each number of ranks. */
static void add_series(const struct gf_row *r, bool with_ranks, struct gf_text *out)
{
	if (r->name)
		gf_text_addf(out, "%s", r->name);
	if (r->outcome.bandwidth_bytes_per_s > 0)
		gf_text_addf(out, "%s%.4g Gb/s", r->name ? " at " : "",
			     r->outcome.bandwidth_bytes_per_s * 8e-9);
	if (with_ranks)
		gf_text_addf(out, "%s%d ranks", out->length ? " on " : "", r->outcome.ranks);
}

static void put_columns(const struct gf_row *r, const struct shown *s, struct gf_json_writer *w)
{
	for (size_t k = 0; k < NCOLUMNS; k++) {
		if (!s->column[k] || !has(r, k))
			continue;
		if (columns[k].kind == WHOLE)
			gf_json_put_size(w, columns[k].name, (size_t)value_of(r, &columns[k]));
		else
			gf_json_put_real(w, columns[k].name, value_of(r, &columns[k]));
	}
}

static void put_row(const struct gf_row *r, const struct shown *s, struct gf_text *out)
{
	GF_RELEASED(gf_plan_brief_release) struct gf_plan_brief b = gf_plan_brief(r->plan);
	struct gf_json_writer w = {0};
	GF_RELEASED(gf_text_release) struct gf_text series = {0};

	gf_json_open_line(&w, NULL);
	if (r->name)
		gf_json_put_string(&w, "plan", r->name);
	gf_plan_brief_put(&b, &w);
	put_columns(r, s, &w);
	if (s->series) {
		add_series(r, s->series == GF_SERIES_RANKS, &series);
		gf_json_put_string(&w, "series", series.data ? series.data : "");
	}
	if (r->left_out)
		gf_json_put_string(&w, "left_out", r->left_out);
	gf_json_close_line(&w, out);
}

void gf_rows_json(const struct gf_row *rows, size_t n, enum gf_series series, struct gf_text *out)
{
	struct shown s = look(rows, n, series);

	for (size_t i = 0; i < n; i++)
		put_row(&rows[i], &s, out);
}

static void add_heading(struct gf_table *t, const struct shown *s)
{
	GF_RELEASED(gf_text_release) struct gf_text all = {0};

	gf_text_addf(&all, "%ssystem\tpolicy\tcodec\tselection\tmessages\tlanes",
		     s->name ? "plan\t" : "");
	for (size_t i = 0; i < NCOLUMNS; i++)
		if (s->column[i] && columns[i].heading)
			gf_text_addf(&all, "\t%s", columns[i].heading);
	gf_table_cells(t, "%s%s", all.data, s->left_out ? "\tnote" : "");
}

static void number_cell(struct gf_table *t, enum kind kind, double value)
{
	if (kind == WHOLE)
		gf_table_cell(t, "%.0f", value);
	else if (kind == TIME)
		gf_table_cell(t, "%s", gf_human_time(value).text);
	else if (kind == BYTES)
		gf_table_cell(t, "%s", gf_human_size(value).text);
	else if (kind == RATE)
		gf_table_cell(t, "%s", gf_human_link(value).text);
	else if (kind == SHARE)
		gf_table_cell(t, "%.1f %%", 100 * value);
	else if (kind == ERROR)
		gf_table_cell(t, "%.1e", value);
	else
		gf_table_cell(t, "%s", gf_human_ratio(value).text);
}

/* Which of the reasons of all rows it is, from 1; the first row that has it adds it. */
static size_t note_of(const char *reason, const char **notes, size_t *n)
{
	size_t i;

	for (i = 0; i < *n && strcmp(notes[i], reason) != 0; i++)
		;
	if (i == *n)
		notes[(*n)++] = reason;
	return i + 1;
}

/* note: why it has no times; 0: it has. */
static void table_row(struct gf_table *t, const struct gf_row *r, const struct shown *s,
		      size_t note)
{
	GF_RELEASED(gf_plan_brief_release) struct gf_plan_brief b = gf_plan_brief(r->plan);

	if (s->name)
		gf_table_cell(t, "%s", r->name);
	gf_table_cells(t, "%s\t%s\t%s\t%s\t%zu\t%d", b.system, b.policy, b.codecs, b.selection,
		       b.nmessages, b.lanes);
	for (size_t k = 0; k < NCOLUMNS; k++) {
		if (!s->column[k] || !columns[k].heading)
			continue;
		if (has(r, k))
			number_cell(t, columns[k].kind, value_of(r, &columns[k]));
		else
			gf_table_cell(t, "-");
	}
	if (s->left_out && note)
		gf_table_cell(t, "(%zu)", note);
	else if (s->left_out)
		gf_table_cell(t, "%s", "");
}

void gf_rows_table(const struct gf_row *rows, size_t n, size_t window, struct gf_text *out)
{
	struct shown s = look(rows, n, GF_SERIES_NONE);
	GF_FREED const char **notes = gf_xcalloc(n, sizeof(*notes));
	GF_RELEASED(gf_table_release) struct gf_table t = {0};
	size_t nnotes = 0, i;

	add_heading(&t, &s);
	for (i = 0; i < n; i++)
		table_row(&t, &rows[i], &s,
			  rows[i].left_out ? note_of(rows[i].left_out, notes, &nnotes) : 0);
	gf_table_print_in(&t, window, out);
	for (i = 0; i < nnotes; i++)
		gf_table_note(window, out, "(%zu) left out: %s", i + 1, notes[i]);
}
