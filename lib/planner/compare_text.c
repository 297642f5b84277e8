/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/human.h"
#include "cli/table.h"
#include "collectives/codecs/codec.h"
#include "documents/selections/selection.h"
#include "json/json.h"
#include "planner/compare.h"
#include "planner/summary.h"
#include "simulator/sum_error.h"
#include "simulator/sweep_plots.h"

static const char *const unsure_names[] = {"free", "assumed", "beyond", "halved", "derived"};

/* How many times as fast as now; 0: that cannot be said. */
static double gain_of(const struct gf_comparison *c, const struct gf_compared *row)
{
	return row->unsure & GF_UNSURE_DERIVED ? 0 : c->now_s / row->times.iteration_s;
}

static void json_row(const struct gf_compared *row, const struct gf_comparison *c,
		     struct gf_text *out)
{
	const struct gf_compare_over *over = &c->over;
	struct gf_json_writer w = {0};

	gf_json_open_line(&w, NULL);
	gf_plan_brief_put(&row->plan, &w);
	gf_json_open_line(&w, "over");
	gf_json_put_string(&w, gf_compare_names[row->axis], row->name);
	if (row->across)
		gf_json_put_string(&w, gf_compare_names[over->across], row->across);
	gf_json_close_object(&w);
	if (row->times.error > 0)
		gf_json_put_real(&w, "error", row->times.error);
	if (row->times.memory.peak_bytes > 0)
		gf_json_put_real(&w, "memory_bytes", row->times.memory.peak_bytes);
	if (row->plan.period_steps)
		gf_json_put_size(&w, "period_steps", row->plan.period_steps);
	gf_json_put_real(&w, "iteration_s", row->times.iteration_s);
	gf_json_put_real(&w, "compute_s", row->times.compute_s);
	gf_json_put_real(&w, "exposed_comm_s", row->times.exposed_comm_s);
	gf_json_put_real(&w, "lower_bound_s", row->times.lower_bound_s);
	if (row->border_bytes > 0)
		gf_json_put_real(&w, "border_bytes", row->border_bytes);
	if (row->times.iteration_high_s > 0) {
		gf_json_put_real(&w, "iteration_low_s", row->times.iteration_low_s);
		gf_json_put_real(&w, "iteration_high_s", row->times.iteration_high_s);
	}
	if (gain_of(c, row) > 0)
		gf_json_put_real(&w, c->given ? "x_given" : "x_ddp", gain_of(c, row));
	if (c->pays && row->pays_below_bytes_per_s < INFINITY)
		gf_json_put_real(&w, "pays_below_bytes_per_s", row->pays_below_bytes_per_s);
	if (c->pays) {
		gf_json_put_int(&w, "pays_from_ranks", row->pays_from_ranks);
		gf_json_put_int(&w, "pays_to_ranks", row->pays_to_ranks);
	}
	for (size_t i = 0; i < GF_ARRAY_LENGTH(unsure_names); i++)
		if (row->unsure >> i & 1)
			gf_json_put_bool(&w, unsure_names[i], true);
	gf_json_close_line(&w, out);
}

/* Stale gradients may take more steps: their rows say how stale they are. */
static void add_system(struct gf_table *t, const struct gf_plan_brief *b)
{
	if (b->staleness > 1)
		gf_table_cell(t, "%s (K=%d)", b->system, b->staleness);
	else
		gf_table_cell(t, "%s", b->system);
}

/* "8.13 ms", and how it is in doubt: "+?" is longer by a cost that nobody has measured, "~" is
 * beyond what was measured, "/2" takes halves for half of an all-reduce, "*" goes by a data sheet
 * where others were measured. */
static void add_time(struct gf_table *t, const struct gf_compared *r)
{
	gf_table_cell(t, "%s%s%s%s%s", gf_human_time(r->times.iteration_s).text,
		      r->unsure & GF_UNSURE_COST ? " +?" : "",
		      r->unsure & GF_UNSURE_BEYOND ? " ~" : "",
		      r->unsure & GF_UNSURE_HALVED ? " /2" : "",
		      r->unsure & GF_UNSURE_DERIVED ? " *" : "");
}

/* What the marks mean, of those that are there. */
static void add_marks(const struct gf_comparison *c, size_t window, struct gf_text *out)
{
	unsigned unsure = 0;

	for (size_t i = 0; i < c->nrows; i++)
		unsure |= c->rows[i].unsure;
	if (unsure & GF_UNSURE_COST)
		gf_table_note(window, out,
			      "+?: and what it costs the processor, which is not measured");
	if (unsure & GF_UNSURE_BEYOND)
		gf_table_note(window, out, "~: beyond the sizes or ranks that were measured");
	if (unsure & GF_UNSURE_HALVED)
		gf_table_note(window, out, "/2: assumed: half of the all-reduce, for each half");
	if (unsure & GF_UNSURE_DERIVED)
		gf_table_note(window, out,
			      "*: not measured but by the topology's rates, and not compared");
}

/* That row of a grid, or the first of any `down` or `across` (NULL); NULL: it is left out. */
static const struct gf_compared *row_at(const struct gf_comparison *c, const char *down,
					const char *across)
{
	for (size_t i = 0; i < c->nrows; i++)
		if ((!down || strcmp(c->rows[i].name, down) == 0) &&
		    (!across || strcmp(c->rows[i].across, across) == 0))
			return &c->rows[i];
	return NULL;
}

/* "f16", "mine", "lanes 2" */
static void add_value(enum gf_compare_axis axis, const char *name, struct gf_text *out)
{
	if (isdigit((unsigned char)*name))
		gf_text_addf(out, "%s ", gf_compare_option(axis));
	gf_text_addf(out, "%.*s", gf_codec_title_length(name), name);
}

static void add_values(const struct gf_comparison *c, const struct gf_compared *row,
		       struct gf_text *out)
{
	add_value(row->axis, row->name, out);
	if (row->across) {
		gf_text_addf(out, " with ");
		add_value(c->over.across, row->across, out);
	}
}

/* The iterations, one axis down and one across. */
static void grid(const struct gf_comparison *c, size_t window, struct gf_text *out)
{
	const char *across_name = gf_compare_names[c->over.across];
	const struct gf_compared *row;
	const char *down, *across;
	GF_RELEASED(gf_table_release) struct gf_table t = {0};
	GF_RELEASED(gf_text_release) struct gf_text fastest = {0};
	size_t columns = 1, i, k;

	while (gf_compare_value(&c->over, c->over.across, columns - 1))
		columns++;
	gf_table_begin(&t, columns);
	gf_table_cell(&t, "%s", gf_compare_names[c->over.down]);
	for (k = 0; (across = gf_compare_value(&c->over, c->over.across, k)); k++)
		gf_table_cell(&t, "%.*s", gf_codec_title_length(across), across);
	for (i = 0; (down = gf_compare_value(&c->over, c->over.down, i)); i++) {
		gf_table_cell(&t, "%.*s", gf_codec_title_length(down), down);
		for (k = 0; (across = gf_compare_value(&c->over, c->over.across, k)); k++) {
			row = row_at(c, down, across);
			if (row)
				add_time(&t, row);
			else
				gf_table_cell(&t, "-");
		}
	}
	gf_table_print_in(&t, window, out);
	add_values(c, &c->rows[0], &fastest);
	gf_table_note(window, out, "a step; %s across; fastest: %s", across_name, fastest.data);
}

/* The axes whose values no column of a plan shows. */
static size_t values_of(const struct gf_comparison *c, enum gf_compare_axis values[2])
{
	size_t n = 0;

	if (c->over.axes >> GF_COMPARE_THRESHOLD & 1)
		values[n++] = GF_COMPARE_THRESHOLD;
	if (c->over.axes >> GF_COMPARE_DENSITIES & 1)
		values[n++] = GF_COMPARE_DENSITIES;
	return n;
}

/* "14.2 Gb/s", "8 to 256". */
static void add_pays(struct gf_table *t, const struct gf_compared *r)
{
	const double below = r->pays_below_bytes_per_s;

	gf_table_cell(t, "%s",
		      below == 0         ? "-"
		      : below < INFINITY ? gf_human_link(below).text
					 : "any");
	if (!r->pays_from_ranks)
		gf_table_cell(t, "-");
	else if (r->pays_to_ranks == GF_COMPARE_RANKS_MOST)
		gf_table_cell(t, "%d and more", r->pays_from_ranks);
	else
		gf_table_cell(t, "%d to %d", r->pays_from_ranks, r->pays_to_ranks);
}

static void rows_table(const struct gf_comparison *c, size_t window, struct gf_text *out)
{
	bool doubted = c->nrows > 0 && c->rows[0].times.iteration_high_s > 0;
	/* the first columns, where these are compared */
	bool algorithms = c->over.axes >> GF_COMPARE_ALGORITHMS & 1;
	bool by_codec = algorithms || c->over.axes >> GF_COMPARE_CODECS & 1;
	bool periods = c->over.axes >> GF_COMPARE_PERIODS & 1;
	bool shards = false, rounds = false;
	enum gf_compare_axis values[2];
	size_t nvalues = values_of(c, values), i, k;
	GF_RELEASED(gf_table_release) struct gf_table t = {0};
	GF_RELEASED(gf_text_release) struct gf_text head = {0};

	for (i = 0; i < nvalues; i++)
		gf_text_addf(&head, "%s\t", gf_compare_option(values[i]));
	for (i = 0; i < c->nrows; i++) {
		shards |= c->rows[i].times.memory.peak_bytes > 0;
		rounds |= by_codec && c->rows[i].times.error > GF_ERROR_OF_NOTE;
	}
	gf_text_addf(
		&head,
		"%s%s%ssystem\tpolicy\tcodec\tselection\tmessages\tlanes%s\tstep\texposed%s%s%s",
		shards ? "shard\tmemory\t" : "",
		/* sent: bytes that leave a group in a step */
		periods ? "period\tH\tsent\t" : "", algorithms ? "algorithm\t" : "",
		rounds ? "\terror" : "", c->now_s > 0 ? c->given ? "\tx given" : "\tx ddp" : "",
		doubted ? "\tlow\thigh" : "", c->pays ? "\tpays below\tpays on ranks" : "");
	gf_table_cells(&t, "%s", head.data);
	for (i = 0; i < c->nrows; i++) {
		const struct gf_compared *r = &c->rows[i];

		for (k = 0; k < nvalues; k++)
			gf_table_cell(&t, "%s", r->axis == values[k] ? r->name : "");
		if (shards)
			gf_table_cells(&t, "%s\t%s",
				       r->plan.shard[0] ? r->plan.shard : gf_shard_plans_names[0],
				       r->times.memory.peak_bytes > 0
					       ? gf_human_size(r->times.memory.peak_bytes).text
					       : "");
		if (periods)
			gf_table_cells(&t, "%s\t%zu\t%s", r->plan.period,
				       r->plan.period_steps ? r->plan.period_steps : 1,
				       r->border_bytes > 0 ? gf_human_size(r->border_bytes).text
							   : "");
		if (algorithms)
			gf_table_cell(&t, "%s", r->plan.algorithms);
		add_system(&t, &r->plan);
		gf_table_cells(&t, "%s\t%s\t%s\t%zu\t%d", r->plan.policy, r->plan.codecs,
			       r->plan.selection, r->plan.nmessages, r->plan.lanes);
		if (rounds && r->times.error > 0)
			gf_table_cell(&t, "%.1e", r->times.error);
		else if (rounds)
			gf_table_cell(&t, "-");
		add_time(&t, r);
		gf_table_cell(&t, "%s", gf_human_time(r->times.exposed_comm_s).text);
		if (c->now_s > 0)
			gf_table_cell(&t, "%s",
				      gain_of(c, r) > 0 ? gf_human_ratio(gain_of(c, r)).text : "-");
		if (doubted)
			gf_table_cells(&t, "%s\t%s", gf_human_time(r->times.iteration_low_s).text,
				       gf_human_time(r->times.iteration_high_s).text);
		if (c->pays)
			add_pays(&t, r);
	}
	gf_table_print_in(&t, window, out);
}

void gf_comparison_text(const struct gf_comparison *c, bool json, size_t window,
			struct gf_text *out)
{
	for (size_t i = 0; json && i < c->nrows; i++)
		json_row(&c->rows[i], c, out);
	if (json)
		return;
	(c->over.grid ? grid : rows_table)(c, window, out);
	add_marks(c, window, out);
}

/* How much a row's messages change a value at most, as a share; more for what leaves some out,
 * takes old gradients or exchanges in few steps. What makes the next forward wait counts as more
 * than nothing. */
static double error_of(const struct gf_compared *r)
{
	const struct gf_select_plan *selection = gf_select_plan_find(r->plan.selection);
	double most = r->automatic ? 0 : DBL_MIN;

	for (size_t i = 0; gf_codecs[i].name; i++)
		if (strstr(r->plan.codecs, gf_codecs[i].name))
			most = fmax(most, gf_codecs[i].error);
	return most + !(selection && selection->traits & GF_SELECT_LOSSLESS) +
	       (r->plan.staleness - 1) + (r->plan.period_steps > 0);
}

/* The first row, or another that takes as long and changes less. */
static const struct gf_compared *best_of(const struct gf_comparison *c)
{
	const struct gf_compared *best = &c->rows[0];

	for (size_t i = 1; i < c->nrows; i++)
		if (!((c->rows[i].unsure ^ best->unsure) & ~(unsigned)GF_UNSURE_HALVED) &&
		    c->rows[i].times.iteration_s < GF_GAIN_LEAST * c->rows[0].times.iteration_s &&
		    error_of(&c->rows[i]) < error_of(best))
			best = &c->rows[i];
	return best;
}

void gf_comparison_answer(const struct gf_comparison *c, struct gf_text *out)
{
	const struct gf_compared *best = best_of(c);
	GF_RELEASED(gf_text_release) struct gf_text by = {0};

	if (best->unsure & GF_UNSURE_DERIVED)
		return;
	if (!best->automatic)
		gf_text_addf(out,
			     "%s is the fastest, but makes the next forward pass wait: auto leaves "
			     "it out (--policy %s plans it)\n",
			     best->plan.policy, best->plan.policy);
	if (!(c->now_s > 0))
		return;
	add_values(c, best, &by);
	if (best->axis == GF_COMPARE_POLICIES && !best->across)
		gf_text_addf(&by, " by %s", best->plan.algorithms);
	gf_gain_text(c->now_s, c->given, best->whole,
		     c->now_s < best->times.iteration_s ? "change nothing" : by.data, out);
}

/* --- pictures ------------------------------------------------------------- */

/* "policies, codecs", "lanes by codecs": what is compared. */
static void add_axes(const struct gf_compare_over *over, struct gf_text *out)
{
	unsigned axes = over->axes, axis;

	if (over->grid)
		gf_text_addf(out, "%s by %s", gf_compare_names[over->down],
			     gf_compare_names[over->across]);
	for (axis = 0; axis < GF_COMPARE_AXES && !over->grid; axis++)
		if (axes >> axis & 1)
			gf_text_addf(out, "%s%s", out->length ? ", " : "", gf_compare_names[axis]);
}

/* What a value is called, without the description of one's own codec. */
static void add_name(struct gf_text *csv, const char *name)
{
	GF_FREED char *title = gf_xasprintf("%.*s", gf_codec_title_length(name), name);

	gf_plot_label(csv, title);
}

/* The bars' places in the picture, from 1 on: of the best one, and of those whose costs are not all
 * known. */
struct marked {
	const struct gf_comparison *c;
	struct gf_plot *plot;
	struct gf_text hatched;
};

static void mark(struct marked *m, const struct gf_compared *row, size_t group, size_t series)
{
	const struct gf_comparison *c = m->c;

	if (row->unsure & (GF_UNSURE_COST | GF_UNSURE_DERIVED))
		gf_text_addf(&m->hatched, " %zu:%zu ", group, series);
	if (row != best_of(c) || row->unsure & GF_UNSURE_DERIVED)
		return;
	gf_plot_number(m->plot, "best", (double)group);
	if (series)
		gf_plot_number(m->plot, "best_series", (double)series);
	if (c->now_s > 0)
		gf_plot_text(m->plot, "best_text", "%s x %s",
			     gf_human_ratio(c->now_s / row->times.iteration_s).text,
			     c->given ? "given" : "ddp");
	else
		gf_plot_text(m->plot, "best_text", "best");
}

static void mark_end(struct marked *m)
{
	gf_plot_text(m->plot, "hatched", "%s", m->hatched.data ? m->hatched.data : "");
	gf_text_release(&m->hatched);
}

/* A group for each value of one axis, a bar for each of the other; gnuplot wants none without a
 * number. */
static void plot_grid(const struct gf_comparison *c, struct gf_plot *plot)
{
	struct marked marked = {.c = c, .plot = plot};
	size_t i, k, group = 0, series;
	const char *down, *across;

	gf_plot_text(plot, "groups", "%s", gf_compare_names[c->over.down]);
	gf_plot_text(plot, "series", "%s", gf_compare_names[c->over.across]);
	gf_text_addf(&plot->csv, "%s", gf_compare_names[c->over.down]);
	for (k = 0; (across = gf_compare_value(&c->over, c->over.across, k)); k++)
		if (row_at(c, NULL, across)) {
			gf_text_addf(&plot->csv, ",");
			add_name(&plot->csv, across);
		}
	gf_text_addf(&plot->csv, "\n");
	for (i = 0; (down = gf_compare_value(&c->over, c->over.down, i)); i++) {
		if (!row_at(c, down, NULL))
			continue;
		add_name(&plot->csv, down);
		group++;
		for (k = series = 0; (across = gf_compare_value(&c->over, c->over.across, k));
		     k++) {
			const struct gf_compared *row = row_at(c, down, across);

			series += row_at(c, NULL, across) != NULL;
			if (row) {
				gf_plot_cell(&plot->csv, row->times.iteration_s);
				mark(&marked, row, group, series);
			} else if (row_at(c, NULL, across)) {
				gf_text_addf(&plot->csv, ",");
			}
		}
		gf_text_addf(&plot->csv, "\n");
	}
	mark_end(&marked);
}

/* One bound for all, or each row's own: those that let messages run into the next step have
 * another. */
static const char *bound_name(const struct gf_comparison *c)
{
	double low = c->rows[0].times.lower_bound_s, high = low;

	for (size_t i = 1; i < c->nrows; i++) {
		low = fmin(low, c->rows[i].times.lower_bound_s);
		high = fmax(high, c->rows[i].times.lower_bound_s);
	}
	return high < 1.001 * low ? "lower bound" : "lower bound of each";
}

static void plot_rows(const struct gf_comparison *c, struct gf_plot *plot)
{
	const bool doubted = c->rows[0].times.iteration_high_s > 0;
	const bool one = (c->over.axes & (c->over.axes - 1)) == 0;
	struct marked marked = {.c = c, .plot = plot};
	const char *bound = bound_name(c);
	const char *group = one ? gf_compare_option(c->rows[0].axis) : "plan";

	gf_plot_text(plot, "groups", "%s", group);
	gf_plot_number(plot, "stacked", 1);
	gf_plot_text(plot, "level", "%s", bound);
	gf_plot_number(plot, "doubt", doubted);
	gf_text_addf(&plot->csv, "%s,compute,exposed%s,%s\n", group, doubted ? ",low,high" : "",
		     bound);
	for (size_t i = 0; i < c->nrows; i++) {
		add_name(&plot->csv, c->rows[i].name);
		gf_plot_cell(&plot->csv, c->rows[i].times.compute_s);
		gf_plot_cell(&plot->csv, c->rows[i].times.exposed_comm_s);
		if (doubted) {
			gf_plot_cell(&plot->csv, c->rows[i].times.iteration_low_s);
			gf_plot_cell(&plot->csv, c->rows[i].times.iteration_high_s);
		}
		gf_plot_cell(&plot->csv, c->rows[i].times.lower_bound_s);
		gf_text_addf(&plot->csv, "\n");
		mark(&marked, &c->rows[i], i + 1, 0);
	}
	mark_end(&marked);
}

void gf_comparison_plot(const struct gf_request *r, const struct gf_comparison *c,
			struct gf_plot *plot)
{
	struct gf_network_view network = {
		.levels = r->fabric.levels,
		.nlevels = r->fabric.nlevels,
		.ranks = r->fabric.ranks,
		.measured = r->fabric.network != NULL,
	};
	GF_RELEASED(gf_text_release) struct gf_text under = {0}, axes = {0};

	if (r->fabric.nlevels > 0)
		network.rate = r->fabric.levels[r->fabric.nlevels - 1].bandwidth_bytes_per_s;
	gf_network_text(&network, &under);
	plot->script = "bars";
	add_axes(&c->over, &axes);
	gf_plot_text(plot, "title", "%s on %d ranks: %s", r->model->name, r->fabric.ranks,
		     axes.data);
	gf_plot_text(plot, "subtitle", "%spredicted", under.data ? under.data : "");
	gf_plot_text(plot, "ylabel", "step");
	gf_plot_text(plot, "unit", "s");
	if (c->over.grid)
		plot_grid(c, plot);
	else
		plot_rows(c, plot);
}
