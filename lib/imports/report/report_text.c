/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "base/heap.h"
#include "base/registry.h"
#include "cli/human.h"
#include "cli/table.h"
#include "imports/report/report.h"
#include "json/json.h"

/* A kind's rate on the bus: nccl-tests' busbw, which is that of the link where every rank has one;
 * 0: none is defined. */
static double bus_bytes_per_s(const struct gf_report_size *s)
{
	const double n = s->ranks;

	if (s->kind != GF_COLLECTIVE_ALL_REDUCE || n < 2 || !(s->times.median_s > 0))
		return 0;
	return (double)s->size_bytes / s->times.median_s * 2 * (n - 1) / n;
}

/* --- for people ------------------------------------------------------------
 */

static void add_steps(const struct gf_report_whole *r, struct gf_text *out)
{
	static const double stalled = 1.1;
	const double step_s = r->parts[GF_REPORT_STEP].median_s;

	for (size_t i = 0; i < GF_REPORT_PARTS; i++) {
		gf_text_addf(out, "%s%-14s %s (half of them %s to %s)", i ? "\n" : "",
			     i == GF_REPORT_EXPOSED ? "  exposed" : gf_report_parts[i],
			     gf_human_time(r->parts[i].median_s).text,
			     gf_human_time(r->parts[i].low_s).text,
			     gf_human_time(r->parts[i].high_s).text);
		/* seldom stalls, which no median shows */
		if (i == GF_REPORT_STEP && r->parts[i].mean_s > stalled * step_s)
			gf_text_addf(out, ", %s on average",
				     gf_human_time(r->parts[i].mean_s).text);
	}
	if (step_s > 0)
		gf_text_addf(out, ", %.0f %% of a step",
			     100 * r->parts[GF_REPORT_EXPOSED].median_s / step_s);
	gf_text_addf(out, "\n");
}

/* How many ranks are late, beyond their noise, and cost about as much as the one that costs
 * most. */
static size_t count_late(const struct gf_stragglers *s)
{
	const double least_s = s->ranks[s->slowest].cost_s / 2;
	size_t i, n = 0;

	for (i = 0; i < s->nranks; i++)
		n += s->ranks[i].cost_s >= least_s &&
		     s->ranks[i].cost_s >
			     fmax(GF_REPORT_LATE, 2 * s->ranks[i].noise) * s->without_s;
	return n;
}

static void add_slowest(const struct gf_stragglers *s, struct gf_text *out)
{
	const size_t late = count_late(s);
	struct gf_human c;

	gf_text_addf(out, "without slow ranks a step would take %s instead of %s; ",
		     gf_human_time(s->without_s).text, gf_human_time(s->iteration_s).text);
	c = gf_human_time(s->ranks[s->slowest].cost_s);
	if (late == 1)
		gf_text_addf(out, "rank %d alone costs %s\n", s->ranks[s->slowest].rank, c.text);
	else if (late)
		gf_text_addf(out, "each of %zu ranks alone costs about %s\n", late, c.text);
	else
		gf_text_addf(out, "no rank alone costs more than %s\n", c.text);
}

static void add_latest(const struct gf_report_whole *r, struct gf_text *out)
{
	const struct gf_report_rank *k = &r->ranks[r->latest];

	if (r->late)
		gf_text_addf(out,
			     "rank %d came last to %.0f %% of %zu messages; the others waited %s "
			     "for it alone in a %s\n",
			     k->rank, 100 * (double)k->last / (double)r->matched, r->matched,
			     gf_human_time(k->late_s).text, r->nsteps ? "step" : "message");
	else if (r->matched)
		gf_text_addf(
			out,
			"no rank is late alone: the others waited %s at most for one in a %s\n",
			gf_human_time(k->late_s).text, r->nsteps ? "step" : "message");
	else
		gf_text_addf(
			out,
			"which rank came last is not known: want the traces of several ranks\n");
	if (r->stragglers.nranks)
		add_slowest(&r->stragglers, out);
	else
		gf_text_addf(out, "what slow ranks cost is not simulated: %s\n", r->why_not.data);
}

static void add_interval(double low_s, double high_s, struct gf_text *out)
{
	if (low_s > 0)
		gf_text_addf(out, " (%s to %s)", gf_human_time(low_s).text,
			     gf_human_time(high_s).text);
}

static void add_best(const struct gf_report_whole *r, struct gf_text *out)
{
	const struct gf_plan *p = r->best;
	bool selects;

	if (!p)
		return;
	selects = !gf_selection_has(&p->selection, GF_SELECT_LOSSLESS);
	gf_text_addf(out, "by the best plan (%s, %zu message%s%s%s) it is predicted to take %s",
		     p->policy, p->nmessages, p->nmessages == 1 ? "" : "s",
		     selects ? ", selection " : "", selects ? gf_selection_name(&p->selection) : "",
		     gf_human_time(p->predicted->iteration_s).text);
	add_interval(p->predicted->iteration_low_s, p->predicted->iteration_high_s, out);
	gf_text_addf(out, "\n");
}

/* What a step waits for most, and the command that finds out more. */
static void add_next(const struct gf_report_whole *r, struct gf_text *out)
{
	const double step_s = r->parts[GF_REPORT_STEP].median_s;
	const double exposed_s = r->parts[GF_REPORT_EXPOSED].median_s;
	const struct gf_stragglers *s = &r->stragglers;
	const bool one = s->nranks && count_late(s) == 1;
	const double late_s = one       ? s->ranks[s->slowest].cost_s
			      : r->late ? r->ranks[r->latest].late_s
					: 0;
	const void *by = gf_named_find(gf_importers, 0, r->kind);

	if (!r->nsteps || !(step_s > 0))
		return;
	gf_text_addf(out, "\n");
	if (late_s > exposed_s / 2 && late_s > GF_REPORT_LATE * step_s)
		gf_text_addf(out,
			     "cause: rank %d is late, and the others wait for it; next: see what "
			     "else runs on its host\n",
			     one ? s->ranks[s->slowest].rank : r->ranks[r->latest].rank);
	else if (exposed_s > GF_REPORT_WAITS * step_s && r->of_ranks > 2)
		gf_text_addf(out,
			     "cause: the network, for which a step waits %.0f %% of its time; "
			     "next: mpirun -np %d gf-profile --pairs\n",
			     100 * exposed_s / step_s, r->of_ranks);
	else if (exposed_s > GF_REPORT_LATE * step_s)
		gf_text_addf(out,
			     "cause: messages, for which a step waits %.0f %% of its time; next: "
			     "gf-report TRACE %s--profile - | gf-plan --compare\n",
			     100 * exposed_s / step_s,
			     !by || gf_import_profiles(by) ? "" : "--plan PLAN ");
	else
		gf_text_addf(out,
			     "cause: compute, for which a step takes %.0f %% of its time; next: "
			     "nothing, since no plan of messages makes it much shorter\n",
			     100 * (1 - exposed_s / step_s));
}

static void add_sizes(const struct gf_report_whole *r, size_t window, struct gf_text *out)
{
	GF_RELEASED(gf_table_release) struct gf_table t = {0};
	bool expected = false;

	for (size_t i = 0; i < r->nsizes; i++)
		expected |= !isnan(r->sizes[i].expected_s);
	gf_table_cells(&t, "message\tranks\tsize\tcount\ttime\tbus\twaited%s",
		       expected ? "\texpected" : "");
	for (size_t i = 0; i < r->nsizes; i++) {
		const struct gf_report_size *s = &r->sizes[i];
		const double bus = bus_bytes_per_s(s);

		gf_table_cells(&t, "%s\t%d\t%s\t%zu\t%s\t%s\t%s", gf_collective_name(s->kind),
			       s->ranks, gf_human_size((double)s->size_bytes).text, s->count,
			       gf_human_time(s->times.median_s).text,
			       bus > 0 ? gf_human_rate(bus).text : "-",
			       gf_human_time(s->waited_s).text);
		if (expected)
			gf_table_cell(&t, "%s",
				      isnan(s->expected_s) ? "-"
							   : gf_human_time(s->expected_s).text);
	}
	if (r->nsizes) {
		gf_text_addf(out, "\n");
		gf_table_print_in(&t, window, out);
	}
}

void gf_report_table(const struct gf_report_whole *r, size_t window, struct gf_text *out)
{
	gf_text_addf(out, "%s: %zu rank%s, %zu step%s", r->kind, r->nranks,
		     r->nranks == 1 ? "" : "s", r->nsteps, r->nsteps == 1 ? "" : "s");
	if ((size_t)r->of_ranks > r->nranks)
		gf_text_addf(out, "; a group has %d ranks, whose other traces are not here",
			     r->of_ranks);
	if (r->unmatched)
		gf_text_addf(out, "; %zu messages are not in all traces", r->unmatched);
	gf_text_addf(out, "\n");
	if (r->nsteps)
		add_steps(r, out);
	add_latest(r, out);
	add_best(r, out);
	add_sizes(r, window, out);
	add_next(r, out);
}

/* --- for programs ----------------------------------------------------------
 */

static void put_times(struct gf_json_writer *w, const char *what, const struct gf_report_times *t)
{
	static const char *const ends[] = {"_s", "_low_s", "_high_s"};
	const double values[] = {t->median_s, t->low_s, t->high_s};
	char key[48];

	for (size_t i = 0; i < 3 && !isnan(t->median_s); i++) {
		snprintf(key, sizeof(key), "%s%s", what, ends[i]);
		gf_json_put_real(w, key, values[i]);
	}
}

static void job_json(const struct gf_report_whole *r, struct gf_json_writer *w)
{
	gf_json_open_line(w, NULL);
	gf_json_put_string(w, "part", "job");
	gf_json_put_string(w, "kind", r->kind);
	gf_json_put_size(w, "ranks", r->nranks);
	gf_json_put_int(w, "of_ranks", r->of_ranks);
	gf_json_put_size(w, "steps", r->nsteps);
	for (size_t i = 0; i < GF_REPORT_PARTS; i++)
		put_times(w, gf_report_parts[i], &r->parts[i]);
	if (r->nsteps)
		gf_json_put_real(w, "step_mean_s", r->parts[GF_REPORT_STEP].mean_s);
	gf_json_put_size(w, "matched", r->matched);
	gf_json_put_size(w, "unmatched", r->unmatched);
	if (r->late)
		gf_json_put_int(w, "latest_rank", r->ranks[r->latest].rank);
	if (r->stragglers.nranks) {
		gf_json_put_real(w, "iteration_s", r->stragglers.iteration_s);
		gf_json_put_real(w, "without_stragglers_s", r->stragglers.without_s);
		if (count_late(&r->stragglers) == 1)
			gf_json_put_int(w, "slowest_rank",
					r->stragglers.ranks[r->stragglers.slowest].rank);
	}
	if (r->best) {
		gf_json_put_string(w, "best_policy", r->best->policy);
		gf_json_put_real(w, "best_s", r->best->predicted->iteration_s);
	}
	if (r->knee)
		gf_json_put_int(w, "knee_ranks", r->knee);
	gf_json_close_object(w);
}

static void rank_json(const struct gf_report_whole *r, size_t i, struct gf_json_writer *w)
{
	const struct gf_report_rank *k = &r->ranks[i];

	gf_json_open_line(w, NULL);
	gf_json_put_string(w, "part", "rank");
	gf_json_put_int(w, "rank", k->rank);
	if (!isnan(k->parts[GF_REPORT_STEP].median_s)) {
		gf_json_put_real(w, "step_s", k->parts[GF_REPORT_STEP].median_s);
		gf_json_put_real(w, "compute_s", k->parts[GF_REPORT_COMPUTE].median_s);
	}
	gf_json_put_size(w, "last", k->last);
	gf_json_put_real(w, "late_s", k->late_s);
	if (r->stragglers.nranks) {
		gf_json_put_real(w, "factor", r->stragglers.ranks[i].factor);
		gf_json_put_real(w, "noise", r->stragglers.ranks[i].noise);
		gf_json_put_real(w, "cost_s", r->stragglers.ranks[i].cost_s);
	}
	gf_json_close_object(w);
}

static void size_json(const struct gf_report_size *s, struct gf_json_writer *w)
{
	gf_json_open_line(w, NULL);
	gf_json_put_string(w, "part", "message");
	gf_json_put_string(w, "message", gf_collective_name(s->kind));
	gf_json_put_int(w, "ranks", s->ranks);
	gf_json_put_size(w, "size_bytes", s->size_bytes);
	gf_json_put_size(w, "count", s->count);
	put_times(w, "time", &s->times);
	gf_json_put_real(w, "waited_s", s->waited_s);
	if (bus_bytes_per_s(s) > 0)
		gf_json_put_real(w, "busbw_bytes_per_s", bus_bytes_per_s(s));
	if (!isnan(s->expected_s))
		gf_json_put_real(w, "expected_s", s->expected_s);
	gf_json_close_object(w);
}

static void scale_json(const struct gf_report_scale *s, struct gf_json_writer *w)
{
	gf_json_open_line(w, NULL);
	gf_json_put_string(w, "part", "scale");
	gf_json_put_int(w, "ranks", s->ranks);
	gf_json_put_real(w, "iteration_s", s->iteration_s);
	if (s->low_s > 0) {
		gf_json_put_real(w, "iteration_low_s", s->low_s);
		gf_json_put_real(w, "iteration_high_s", s->high_s);
	}
	gf_json_put_real(w, "efficiency", s->efficiency);
	gf_json_close_object(w);
}

void gf_report_json(const struct gf_report_whole *r, struct gf_text *out)
{
	struct gf_json_writer w = {.text = *out};

	job_json(r, &w);
	for (size_t i = 0; i < r->nranks; i++)
		rank_json(r, i, &w);
	for (size_t i = 0; i < r->nsizes; i++)
		size_json(&r->sizes[i], &w);
	for (size_t i = 0; i < r->nscale; i++)
		scale_json(&r->scale[i], &w);
	*out = w.text;
}

void gf_report_plot(const struct gf_report_whole *r, struct gf_plot *picture)
{
	picture->script = "bars";
	gf_plot_text(picture, "title", "%s: a step of %zu ranks", r->kind, r->nranks);
	gf_plot_text(picture, "subtitle", "medians of %zu steps", r->nsteps);
	gf_plot_text(picture, "ylabel", "time of a step");
	gf_plot_text(picture, "unit", "s");
	gf_plot_number(picture, "stacked", 1);
	gf_text_addf(&picture->csv, "rank,compute,exposed communication,the rest\n");
	for (size_t i = 0; i < r->nranks; i++) {
		const struct gf_report_rank *k = &r->ranks[i];

		gf_text_addf(&picture->csv, "rank %d", k->rank);
		gf_plot_cell(&picture->csv, k->parts[GF_REPORT_COMPUTE].median_s);
		gf_plot_cell(&picture->csv, k->parts[GF_REPORT_EXPOSED].median_s);
		gf_plot_cell(&picture->csv, fmax(k->parts[GF_REPORT_STEP].median_s -
							 k->parts[GF_REPORT_COMPUTE].median_s -
							 k->parts[GF_REPORT_EXPOSED].median_s,
						 0));
		gf_text_addf(&picture->csv, "\n");
	}
}
