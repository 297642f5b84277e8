/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/sweep_plots.h"

#include <stdbool.h>
#include <string.h>

#include "base/heap.h"
#include "cli/human.h"
#include "collectives/codecs/codec.h"

/* What a picture is of: its title, and the beginning of its subtitle. */
static void title(const struct gf_row *r, int ranks, struct gf_plot *plot)
{
	const struct gf_plan *p = r->plan;
	const char *selection = gf_selection_title(&p->selection);
	bool published = p->system && strcmp(p->system, "auto") != 0;
	bool period = !gf_period_has(&p->period, GF_PERIOD_EVERY);
	GF_RELEASED(gf_text_release) struct gf_text what = {0};

	gf_text_addf(&what, "%s", p->model->name);
	if (ranks)
		gf_text_addf(&what, " on %d rank%s", ranks, ranks == 1 ? "" : "s");
	if (!r->name)
		gf_text_addf(&what, ", %s %s",
			     published ? "system"
			     : period  ? "period"
				       : "policy",
			     published   ? p->system
			     : period    ? gf_period_name(&p->period)
			     : p->policy ? p->policy
					 : "of the plan");
	if (!r->name && !published && !gf_selection_has(&p->selection, GF_SELECT_LOSSLESS))
		gf_text_addf(&what, ", selection %s", selection);
	if (!r->name && p->staleness > 1)
		gf_text_addf(&what, ", K = %d", p->staleness);
	gf_plot_text(plot, "title", "%s", what.data);
}

void gf_network_text(const struct gf_network_view *v, struct gf_text *out)
{
	if (v->nlevels > 1 && gf_levels_ranks(v->levels, v->nlevels) == v->ranks)
		for (size_t i = v->nlevels; i-- > 0;)
			gf_text_addf(out, "%zu%s", v->levels[i].size, i ? " x " : " ranks, ");
	if (v->measured)
		gf_text_addf(out, "measured network, ");
	else if (v->nlevels && v->rate > 0)
		gf_text_addf(out, "%s %s, ", v->levels[v->nlevels - 1].link,
			     gf_human_link(v->rate).text);
	else if (v->nlevels)
		gf_text_addf(out, "%s, ", v->levels[v->nlevels - 1].link);
	else if (v->rate > 0)
		gf_text_addf(out, "%s, ", gf_human_link(v->rate).text);
}

/* ranks 0: several, rate false: several. */
static void network(const struct gf_plan *p, const struct gf_what_if *w, int ranks, bool rate,
		    struct gf_text *out)
{
	struct gf_network_view v = {
		.levels = w->levels ? w->levels : p->levels,
		.nlevels = w->levels ? w->nlevels : p->nlevels,
		.ranks = ranks,
		.measured = w->network || (p->network && !w->levels),
	};

	v.measured = v.measured && !(w->bandwidth_bytes_per_s > 0);
	if (rate && v.nlevels > 0)
		v.rate = v.levels[v.nlevels - 1].bandwidth_bytes_per_s;
	if (rate && w->bandwidth_bytes_per_s > 0)
		v.rate = w->bandwidth_bytes_per_s;
	gf_network_text(&v, out);
}

void gf_iteration_titles(const struct gf_plan *p, const struct gf_what_if *w, int ranks,
			 const char *end, struct gf_plot *plot)
{
	GF_RELEASED(gf_text_release) struct gf_text under = {0};

	title(&(struct gf_row){.plan = p}, ranks, plot);
	network(p, w, ranks, true, &under);
	gf_plot_text(plot, "subtitle", "%s%s", under.data ? under.data : "", end);
}

/* The end of a row. */
static void span(struct gf_text *csv, double start_s, double end_s)
{
	gf_plot_cell(csv, start_s);
	gf_plot_cell(csv, end_s);
	gf_text_addf(csv, "\n");
}

/* A bar of compute; the messages' own columns stay empty. */
static void compute(struct gf_text *csv, const char *row, const struct gf_bar *bar)
{
	const char *kind = gf_bar_names[bar->kind];

	gf_text_addf(csv, "%s,%s,", row, kind);
	if (bar->kind != GF_BAR_STEPS)
		gf_text_addf(csv, "%s,,", kind);
	else if (bar->first == bar->last)
		gf_text_addf(csv, "%zu,,", bar->first);
	else
		gf_text_addf(csv, "%zu to %zu,,", bar->first, bar->last);
	span(csv, bar->start_s, bar->end_s);
}

static void mark(struct gf_text *csv, const char *name, double at_s)
{
	gf_text_addf(csv, ",mark,%s,,", name);
	span(csv, at_s, at_s);
}

static void message(struct gf_text *csv, const struct gf_plan *p, bool stale,
		    const struct gf_bar *bar)
{
	const struct gf_tensor *tensors = p->model->tensors;
	GF_RELEASED(gf_text_release) struct gf_text name = {0};

	if (bar->kind == GF_BAR_EXCHANGE)
		gf_text_addf(&name, "fragment %zu", bar->message);
	else if (stale)
		gf_text_addf(&name, "step %d", bar->step);
	else if (bar->own)
		gf_text_addf(&name, "sums of the selection");
	else if (bar->first == bar->last)
		gf_text_addf(&name, "%s", tensors[bar->first].name);
	else
		gf_text_addf(&name, "%s to %s", tensors[bar->first].name, tensors[bar->last].name);
	gf_text_addf(csv, ",%s,", gf_bar_names[bar->kind]);
	gf_plot_label(csv, name.data);
	if (bar->own)
		gf_text_addf(csv, ",");
	else if (bar->first == bar->last)
		gf_text_addf(csv, ",%zu", bar->first);
	else
		gf_text_addf(csv, ",%zu-%zu", bar->first, bar->last);
	gf_plot_cell(csv, bar->bytes);
	span(csv, bar->start_s, bar->end_s);
}

static void row(const struct gf_plan *p, const struct gf_gantt *t, size_t row, struct gf_text *csv)
{
	for (size_t i = 0; i < t->nbars; i++) {
		const struct gf_bar *b = &t->bars[i];

		if (b->row != row)
			continue;
		if (row == 0) {
			compute(csv, t->last_step ? "group" : "compute", b);
			continue;
		}
		if (t->last_step)
			gf_text_addf(csv, "between groups");
		else if (t->nlanes == 1)
			gf_text_addf(csv, "network");
		else
			gf_text_addf(csv, "lane %zu", row);
		message(csv, p, t->steps > 1, b);
	}
}

static bool is_whole(const struct gf_gantt *t, const struct gf_outcome *o)
{
	return t->first_step == 1 && (double)t->last_step == o->period_steps;
}

static void add_period(const struct gf_plan *p, const struct gf_what_if *w,
		       const struct gf_outcome *o, struct gf_text *out)
{
	const struct gf_gantt *t = o->timeline;

	gf_text_addf(out, "%s group of %d in ", w->nslow || w->nslow_links ? "the slowest" : "a",
		     p->period.group_ranks);
	if (!is_whole(t, o))
		gf_text_addf(out, "steps %zu to %zu of ", t->first_step, t->last_step);
	gf_text_addf(out, "a period of %.0f steps, ", o->period_steps);
}

static void add_jitter(const struct gf_what_if *w, int steps, struct gf_text *out)
{
	gf_text_addf(out, "%s jitter", steps > 1 ? "drawn with" : "median of");
	if (w->jitter > 0)
		gf_text_addf(out, " %.3g %%", 100 * w->jitter);
	if (w->network_jitter_s > 0)
		gf_text_addf(out, ", of messages %s", gf_human_time(w->network_jitter_s).text);
}

/* The Gantt chart. The subtitle says how the times were found ("predicted", "simulated"). */
static void plot_gantt(const struct gf_plan *p, const struct gf_what_if *w,
		       const struct gf_outcome *o, const char *how, struct gf_plot *plot)
{
	const struct gf_gantt *t = o->timeline;
	const bool varies = gf_what_if_varies(w);
	GF_RELEASED(gf_text_release) struct gf_text end = {0};

	plot->script = "gantt";
	if (t->last_step)
		add_period(p, w, o, &end);
	if (varies && !t->last_step)
		add_jitter(w, t->steps, &end);
	else
		gf_text_addf(&end, "%s%s", how, varies ? " without jitter" : "");
	gf_iteration_titles(p, w, o->ranks, end.data, plot);
	gf_text_addf(&plot->csv, "row,kind,name,tensors,bytes,start_s,end_s\n");
	for (size_t i = 0; i <= t->nlanes; i++)
		row(p, t, i, &plot->csv);
	if (t->last_step && is_whole(t, o)) {
		mark(&plot->csv, "period", t->step_end_s[0]);
	} else if (t->last_step) {
		mark(&plot->csv, "fragment is applied", t->applied_s);
	} else if (t->steps > 1) {
		mark(&plot->csv, "step 1 ends", t->step_end_s[0]);
		mark(&plot->csv, "step 2 ends", t->step_end_s[1]);
	} else {
		mark(&plot->csv, "backward ends", t->backward_end_s);
		mark(&plot->csv, "step ends", t->step_end_s[0]);
	}
}

/* Of linear scaling, which tells 70 % from 100 % where speed-ups of many ranks look alike. */
static void over_ranks(const struct gf_outcome *o, struct gf_plot *plot)
{
	gf_plot_text(plot, "x", "ranks");
	gf_plot_text(plot, "y", "efficiency");
	gf_plot_text(plot, "ylabel", "efficiency");
	gf_plot_text(plot, "yunit", "%%");
	if (o->high_s > 0) {
		gf_plot_text(plot, "low", "efficiency_low");
		gf_plot_text(plot, "high", "efficiency_high");
	}
	gf_plot_number(plot, "xlog", 2);
	gf_plot_text(plot, "reference", "linear speed-up");
	gf_plot_number(plot, "level", 1);
}

static void times(const struct gf_outcome *o, struct gf_plot *plot)
{
	gf_plot_text(plot, "y", "iteration_s");
	gf_plot_text(plot, "ylabel", "step");
	gf_plot_text(plot, "yunit", "s");
	if (o->high_s > 0) {
		gf_plot_text(plot, "low", "iteration_low_s");
		gf_plot_text(plot, "high", "iteration_high_s");
	}
	gf_plot_text(plot, "reference", "compute alone");
	gf_plot_number(plot, "level", o->compute_s);
}

static bool is_dense(const struct gf_plan *p)
{
	bool dense = gf_selection_has(&p->selection, GF_SELECT_LOSSLESS) &&
		     gf_period_has(&p->period, GF_PERIOD_EVERY);

	for (size_t i = 0; i < p->nmessages; i++)
		dense &= gf_codec_is_plain(p->messages[i].codec);
	return dense;
}

static void over_bandwidth(const struct gf_outcome *o, struct gf_plot *plot)
{
	gf_plot_text(plot, "x", "bandwidth_bytes_per_s");
	gf_plot_text(plot, "xlabel", "bandwidth");
	gf_plot_text(plot, "xunit", "b/s");
	gf_plot_number(plot, "xlog", 10);
	gf_plot_number(plot, "ylog", 10);
	times(o, plot);
}

static void add_rows(const struct gf_row *rows, size_t n, enum gf_series series,
		     struct gf_plot *plot)
{
	GF_RELEASED(gf_text_release) struct gf_text lines = {0};

	gf_rows_json(rows, n, series, &lines);
	(void)gf_json_rows_text(lines.data, ',', &plot->csv, NULL); /* objects, each of them */
}

/* A curve for each plan, bandwidth and number of ranks. */
static void over_periods(const struct gf_row *rows, size_t n, struct gf_plot *plot)
{
	gf_plot_text(plot, "x", "period_steps");
	gf_plot_text(plot, "xlabel", "steps of a period");
	gf_plot_text(plot, "series", "series");
	gf_plot_number(plot, "xlog", 2);
	times(&rows->outcome, plot);
	add_rows(rows, n, GF_SERIES_RANKS, plot);
}

/* How many curves there are depends on plans, and on bandwidths where ranks are on the axis. */
static void curves(const struct gf_row *rows, size_t n, bool over_rates, struct gf_plot *plot)
{
	double rate = rows->outcome.bandwidth_bytes_per_s;

	if (!rows->name && rate > 0 && !over_rates) {
		gf_plot_text(plot, "series", "bandwidth_bytes_per_s");
		gf_plot_text(plot, "series_title", "bandwidth");
		gf_plot_text(plot, "series_unit", "b/s");
	} else if (rows->name) {
		gf_plot_text(plot, "series", over_rates ? "plan" : "series");
	}
	add_rows(rows, n, rows->name && !over_rates ? GF_SERIES_RATES : GF_SERIES_NONE, plot);
}

/* Plans in one set of circumstances. */
static void bars(const struct gf_row *rows, size_t n, struct gf_plot *plot)
{
	bool doubted = false;

	for (size_t i = 0; i < n; i++)
		doubted |= rows[i].outcome.high_s > 0;

	plot->script = "bars";
	gf_plot_text(plot, "ylabel", "step");
	gf_plot_text(plot, "unit", "s");
	gf_plot_text(plot, "groups", "plan");
	gf_plot_number(plot, "stacked", 1);
	gf_plot_number(plot, "doubt", doubted);
	gf_text_addf(&plot->csv, "plan,compute,exposed%s\n", doubted ? ",low,high" : "");
	for (size_t i = 0; i < n; i++) {
		gf_plot_label(&plot->csv, rows[i].name);
		gf_plot_cell(&plot->csv, rows[i].outcome.compute_s);
		gf_plot_cell(&plot->csv, rows[i].outcome.exposed_comm_s);
		if (doubted) {
			gf_plot_cell(&plot->csv, rows[i].outcome.low_s);
			gf_plot_cell(&plot->csv, rows[i].outcome.high_s);
		}
		gf_text_addf(&plot->csv, "\n");
	}
}

/* left_out: rows that are not there. */
static void plot_rows(const struct gf_row *rows, size_t n, size_t left_out,
		      const struct gf_what_if *w, struct gf_plot *plot)
{
	const struct gf_outcome *o = &rows->outcome;
	bool ranks_vary = false, rates_vary = false, periods_vary = false;
	struct gf_what_if here = *w; /* where the first row is */
	GF_RELEASED(gf_text_release) struct gf_text under = {0};

	if (o->bandwidth_bytes_per_s > 0)
		here.bandwidth_bytes_per_s = o->bandwidth_bytes_per_s;
	if (n == 1) {
		plot_gantt(rows->plan, &here, o, "simulated", plot);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		const struct gf_outcome *other = &rows[i].outcome;

		ranks_vary |= other->ranks != o->ranks;
		periods_vary |=
			rows[i].plan == rows->plan && other->period_steps != o->period_steps;
		rates_vary |= other->bandwidth_bytes_per_s != o->bandwidth_bytes_per_s;
	}
	title(rows, ranks_vary ? 0 : o->ranks, plot);
	network(rows->plan, &here, ranks_vary ? 0 : o->ranks, !rates_vary, &under);
	gf_text_addf(&under, "simulated");
	if (left_out)
		gf_text_addf(&under, "; %zu of %zu left out", left_out, n + left_out);
	gf_plot_text(plot, "subtitle", "%s", under.data);
	if (!ranks_vary && !rates_vary && !periods_vary && rows->name) {
		bars(rows, n, plot);
		return;
	}
	plot->script = "curves";
	if (periods_vary) {
		over_periods(rows, n, plot);
		return;
	}
	if (ranks_vary)
		over_ranks(o, plot);
	else
		over_bandwidth(o, plot);
	for (size_t i = 0; !ranks_vary && rows->name && i < n; i++)
		if (is_dense(rows[i].plan)) {
			gf_plot_text(plot, "dense", "%s", rows[i].name);
			break;
		}
	curves(rows, n, !ranks_vary, plot);
}

void gf_rows_plot(const struct gf_row *rows, size_t n, const struct gf_what_if *w,
		  struct gf_plot *plot)
{
	GF_FREED struct gf_row *timed = gf_xcalloc(n, sizeof(*timed));
	size_t ntimed = 0, i;

	for (i = 0; i < n; i++)
		if (!rows[i].left_out)
			timed[ntimed++] = rows[i];
	plot_rows(timed, ntimed, n - ntimed, w, plot);
}

int gf_plan_plot(const struct gf_plan *p, struct gf_plot *plot, struct gf_error *err)
{
	struct gf_what_if as_it_is = {.timeline = true};
	GF_RELEASED(gf_outcome_release) struct gf_outcome o = {0};
	int rc;

	if (p->rule)
		return gf_error_set(err, -EINVAL, "--plot: want a plan with messages, got a rule");
	rc = gf_what_if(p, &as_it_is, &o, err);
	if (rc == 0)
		plot_gantt(p, &as_it_is, &o, "predicted", plot);
	return rc;
}
