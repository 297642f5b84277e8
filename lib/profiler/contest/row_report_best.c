/* SPDX-License-Identifier: BSD-3-Clause */
/* The conclusions of a report: the best algorithm per size as a rule plan, and the verdict. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "cli/human.h"
#include "cost/fit.h"
#include "documents/profile.h"
#include "profiler/autotune/ways.h"
#include "profiler/contest/row_report.h"

/* A size is large enough to be worth a message of its own when its time per byte is within this of
 * the best. */
static const double near_best = 1.1;

static const struct gf_contest_row *best_at(const struct gf_contest_report *r, size_t size_bytes)
{
	const struct gf_contest_row *best = NULL;

	for (size_t i = 0; i < r->nrows; i++) {
		const struct gf_contest_row *row = &r->rows[i];

		/* a rule is about dense messages, and tells no library */
		if (row->size_bytes != size_bytes || row->way.density > 0 ||
		    row->way.tuning.dialect)
			continue;
		if (!best ||
		    row->reading[GF_IN_PLACE].median_s < best->reading[GF_IN_PLACE].median_s)
			best = row;
	}
	return best;
}

/* From that size on a message is worth its startup. */
static size_t threshold_of(const struct gf_contest_report *r)
{
	double least = INFINITY, rate;
	size_t i, threshold = 1;

	for (int pass = 0; pass < 2; pass++)
		for (i = r->nrows; i-- > 0;) {
			const struct gf_contest_row *row = best_at(r, r->rows[i].size_bytes);

			if (!row || !row->size_bytes)
				continue;
			rate = row->reading[GF_IN_PLACE].median_s / (double)row->size_bytes;
			if (pass == 0)
				least = fmin(least, rate);
			else if (rate <= near_best * least)
				threshold = row->size_bytes;
		}
	return threshold;
}

static bool same_way(const struct gf_way *a, const struct gf_way *b)
{
	if (a->algorithm != b->algorithm || a->nfactors != b->nfactors)
		return false;
	for (size_t i = 0; i < a->nfactors; i++)
		if (a->factors[i] != b->factors[i] ||
		    gf_way_stage_at(a, i) != gf_way_stage_at(b, i))
			return false;
	return true;
}

static void add_entries(const struct gf_contest_report *r, struct gf_rule *rule)
{
	const struct gf_contest_row *last = NULL, *row;
	struct gf_rule_algorithm *entry;
	size_t capacity = 0, i;

	for (i = 0; i < r->nrows && !r->plan; i++) {
		row = best_at(r, r->rows[i].size_bytes);
		if (!row ||
		    (last && (row->size_bytes <= last->size_bytes ||
			      (row->codec == last->codec && same_way(&row->way, &last->way)))))
			continue;
		entry = gf_array_push(&rule->algorithms, &rule->nalgorithms, &capacity);
		entry->min_bytes = last ? row->size_bytes : 0;
		entry->algorithm = gf_xstrdup(row->way.algorithm->name);
		entry->codec = row->codec ? gf_xstrdup(row->codec->name) : NULL;
		entry->nstages = gf_choose_stages(&row->way, &entry->stages);
		last = row;
	}
}

int gf_contest_report_rule(const struct gf_contest_report *r, struct gf_plan *p,
			   struct gf_error *err)
{
	struct gf_rule *rule = gf_xcalloc(1, sizeof(*rule));

	memset(p, 0, sizeof(*p));
	p->rule = rule;
	add_entries(r, rule);
	rule->threshold_bytes = threshold_of(r);
	rule->lanes = r->config->lanes;
	rule->segment_bytes = r->config->segment_bytes;
	p->lanes = rule->lanes;
	p->segment_bytes = rule->segment_bytes;
	p->producer = gf_xstrdup("gf-allreduce " GF_VERSION);
	p->system = gf_xstrdup("auto");
	p->policy = gf_xstrdup("threshold");
	p->staleness = 1;
	if (rule->nalgorithms)
		return 0;
	gf_plan_release(p);
	return gf_error_set(err, -EINVAL, "no algorithm was measured to choose from");
}

static double in_place_s(const struct gf_contest_row *row)
{
	return row->reading[GF_IN_PLACE].median_s;
}

void gf_contest_report_blocking(const struct gf_contest_report *r, struct gf_text *out)
{
	const char *const *calls = gf_contest_mpi_calls[r->config->collective];
	double ratio, least = INFINITY, most = 0;
	size_t i, k, sizes = 0, wins = 0;

	for (i = 0; i < r->nrows; i++)
		for (k = 0; k < r->nrows; k++) {
			const struct gf_contest_row *a = &r->rows[i], *b = &r->rows[k];

			if (a->way.tuning.dialect != &gf_dialect_blocking ||
			    b->way.tuning.dialect || b->chosen ||
			    b->way.algorithm != a->way.algorithm || b->size_bytes != a->size_bytes)
				continue;
			ratio = in_place_s(a) / in_place_s(b);
			least = fmin(least, ratio);
			most = fmax(most, ratio);
			sizes++;
			wins += in_place_s(a) < in_place_s(best_at(r, a->size_bytes));
		}
	if (sizes)
		gf_text_addf(out,
			     "# blocking : %s takes %.2f to %.2f of the time of %s, and less than "
			     "the best at %zu of %zu sizes\n",
			     calls[1], least, most, calls[0], wins, sizes);
}

/* The library's own of that size, told nothing; NULL: it was not measured. */
static const struct gf_contest_row *own_at(const struct gf_contest_report *r, size_t size_bytes)
{
	const struct gf_contest_row *row, *own = NULL;

	for (row = r->rows; row < r->rows + r->nrows; row++)
		if (row->size_bytes == size_bytes && !row->codec &&
		    (!row->way.tuning.dialect || row->way.tuning.dialect == &gf_dialect_blocking) &&
		    gf_algorithm_has(row->way.algorithm->name, GF_ALGORITHM_TOLD) &&
		    (!own || in_place_s(row) < in_place_s(own)))
			own = row;
	return own;
}

static bool same_contestant(const struct gf_contest_row *a, const struct gf_contest_row *b)
{
	char one[GF_TUNING_TEXT] = "", other[GF_TUNING_TEXT] = "";

	if (a->way.tuning.dialect)
		gf_tuning_text(&a->way.tuning, one);
	if (b->way.tuning.dialect)
		gf_tuning_text(&b->way.tuning, other);
	return a->chosen == b->chosen && a->codec == b->codec && !strcmp(one, other) &&
	       same_way(&a->way, &b->way);
}

/* The sizes to avoid of one contestant, whose first row that is. */
static void tell_falls(const struct gf_contest_report *r, const struct gf_contest_row *first,
		       struct gf_text *out)
{
	const size_t room = (size_t)(r->rows + r->nrows - first);
	GF_FREED double *bytes = gf_xcalloc(3 * room, sizeof(*bytes));
	double *times = bytes + room, *spreads = times + room;
	struct gf_fit_points points = {bytes, times, 0, spreads};
	const struct gf_contest_row *row;
	struct gf_lines_fit fit;

	for (row = first; row < r->rows + r->nrows; row++) {
		const struct gf_contest_reading *m = &row->reading[GF_IN_PLACE];

		if (!same_contestant(row, first))
			continue;
		bytes[points.count] = (double)row->size_bytes;
		times[points.count] = m->median_s;
		spreads[points.count++] = m->p75_s - m->p25_s;
	}
	if (!gf_fit_lines(&points, GF_FIT_LINES_MOST, &fit, NULL)) {
		struct gf_cost_lines lines = {0};
		GF_FREED struct gf_cost_line *larger = NULL;

		gf_fit_take_lines(&fit, &lines.first, &larger, &lines.nlarger);
		lines.larger = larger;
		gf_cost_falls(first->way.algorithm->name, &lines, out);
	}
}

void gf_contest_report_falls(const struct gf_contest_report *r, struct gf_text *out)
{
	size_t i, k;

	for (i = 0; i < r->nrows && !r->plan; i++) {
		for (k = 0; k < i; k++)
			if (same_contestant(&r->rows[k], &r->rows[i]))
				break;
		if (k == i)
			tell_falls(r, &r->rows[i], out);
	}
}

void gf_contest_report_answer(const struct gf_contest_report *r, struct gf_text *out)
{
	const enum gf_coll_half half = r->config->collective;
	const struct gf_contest_row *last = NULL, *row, *own;
	double least = INFINITY, most = 0;

	for (size_t i = 0; i < r->nrows && !r->plan; i++) {
		row = best_at(r, r->rows[i].size_bytes);
		if (!row || (last && row->size_bytes <= last->size_bytes))
			continue;
		own = own_at(r, row->size_bytes);
		if (own && row->size_bytes) {
			least = fmin(least, in_place_s(own) / in_place_s(row));
			most = fmax(most, in_place_s(own) / in_place_s(row));
		}
		if (!last)
			gf_text_addf(out, "fastest%s%s: %s", half ? " " : "",
				     half ? gf_coll_half_names[half] : "",
				     row->way.algorithm->name);
		else if (row->codec != last->codec || !same_way(&row->way, &last->way))
			gf_text_addf(out, ", %s from %s", row->way.algorithm->name,
				     gf_human_size((double)row->size_bytes).text);
		last = row;
	}
	if (most > 0)
		gf_text_addf(out, "; %s to %s x as fast as the library's own",
			     gf_human_ratio(least).text, gf_human_ratio(most).text);
	if (last)
		gf_text_addf(out, "\n");
}

int gf_contest_report_write_rule(const struct gf_contest_report *r, const char *path,
				 struct gf_error *err)
{
	GF_RELEASED(gf_plan_release) struct gf_plan rule = {0};
	GF_FREED char *text = NULL;
	int rc = gf_contest_report_rule(r, &rule, err);

	if (rc)
		return rc;
	text = gf_plan_write(&rule);
	return gf_file_write(path, text, strlen(text), err);
}

int gf_contest_report_judge(const struct gf_contest_report *r, double least_bytes_per_s,
			    struct gf_error *err)
{
	double busbw = gf_contest_report_busbw(r);
	size_t wrong = gf_contest_report_wrong(r);

	if (wrong)
		return gf_error_set(err, 1, "%zu elements came out wrong", wrong);
	if (busbw < least_bytes_per_s)
		return gf_error_set(err, 1, "want an average bus bandwidth of %s, got %s",
				    gf_human_rate(least_bytes_per_s).text,
				    gf_human_rate(busbw).text);
	return 0;
}
