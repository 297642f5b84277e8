/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/fit_lines.h"

#include <math.h>
#include <stdbool.h>

static const size_t fewest_points = 3;
/* Below it nobody needs another line. */
static const double good_rms = 0.05;
/* By what another line divides the residuals, at the least. */
static const double better = 2;

/* Points first..last - 1 and the line through them. */
struct range {
	size_t first, last;
	double from_bytes;
	struct gf_linear_fit line;
};

static bool fit_range(const struct gf_fit_points *p, size_t first, size_t last,
		      struct range *r)
{
	r->first = first;
	r->last = last;
	return gf_fit_linear(p->size_bytes + first, p->time_s + first,
			     last - first, &r->line, NULL) == 0;
}

static double at(const struct gf_linear_fit *line, double bytes)
{
	return line->startup_s + line->per_byte_s * bytes;
}

/* Squares of (measured - line) / measured, which is what a fit makes least. */
static double squares(const struct gf_fit_points *p, const struct range *r)
{
	double sum = 0;
	size_t i;

	for (i = r->first; i < r->last; i++) {
		double left = at(&r->line, p->size_bytes[i]) / p->time_s[i] - 1;

		sum += left * left;
	}
	return sum;
}

/* Where the second range begins; false: the cost would fall there. */
static bool find_cut(const struct gf_fit_points *p, const struct range *a,
		     struct range *b)
{
	double low = p->size_bytes[b->first - 1];
	double high = p->size_bytes[b->first];
	double steeper = b->line.per_byte_s - a->line.per_byte_s;
	double cross = (a->line.startup_s - b->line.startup_s) / steeper;

	if (steeper != 0 && cross > low && cross <= high)
		b->from_bytes = floor(cross);
	else
		b->from_bytes = ceil(sqrt(low * high));
	/* a crossing is rounded, so that a hair's breadth is no fall */
	return b->from_bytes > low &&
	       at(&b->line, b->from_bytes) >=
		       at(&a->line, b->from_bytes) * (1 - 1e-3);
}

/* Partitions of the points into so many ranges, and the best of them. */
struct search {
	const struct gf_fit_points *p;
	size_t nlines;
	struct range now[GF_FIT_LINES_MOST], best[GF_FIT_LINES_MOST];
	double least; /* sum of squares; INFINITY: none yet */
};

/* Ranges at..nlines-1, which begin with point `first`; the ones before have
 * that sum of squares. */
static void cut_rest(struct search *s, size_t at, size_t first, double before)
{
	size_t ranges_left = s->nlines - at, last, i;
	size_t most = s->p->count - (ranges_left - 1) * fewest_points;
	struct range *r = &s->now[at];

	/* the last one has no choice */
	last = ranges_left == 1 ? s->p->count : first + fewest_points;
	for (; last <= most; last++) {
		double sum;

		if (!fit_range(s->p, first, last, r) ||
		    (at > 0 && !find_cut(s->p, r - 1, r)))
			continue;
		sum = before + squares(s->p, r);
		if (sum >= s->least)
			continue;
		if (ranges_left > 1) {
			cut_rest(s, at + 1, last, sum);
			continue;
		}
		s->least = sum;
		for (i = 0; i < s->nlines; i++)
			s->best[i] = s->now[i];
	}
}

/* What is left per degree of freedom: a line has two, a cut is another. */
static double left_over(const struct search *s)
{
	double n = (double)s->p->count, used = 3 * (double)s->nlines - 1;

	return n > used ? sqrt(s->least / (n - used)) : INFINITY;
}

static bool good(const struct search *s)
{
	return sqrt(s->least / (double)s->p->count) < good_rms;
}

static void judge(const struct gf_fit_points *p, struct gf_lines_fit *f)
{
	double mean = 0, total = 0, left = 0, sum = 0;
	size_t i, line = 0;

	for (i = 0; i < p->count; i++)
		mean += p->time_s[i] / (double)p->count;
	for (i = 0; i < p->count; i++) {
		double fitted, relative;

		while (line + 1 < f->nlines &&
		       f->from_bytes[line + 1] <= p->size_bytes[i])
			line++;
		fitted = at(&f->lines[line], p->size_bytes[i]);
		relative = (p->time_s[i] - fitted) / fitted;
		left += (p->time_s[i] - fitted) * (p->time_s[i] - fitted);
		total += (p->time_s[i] - mean) * (p->time_s[i] - mean);
		sum += relative * relative;
		f->residual_max = fmax(f->residual_max, fabs(relative));
	}
	f->r_squared = total > 0 ? 1 - left / total : 1;
	f->residual_rms = sqrt(sum / (double)p->count);
}

static bool ascending(const struct gf_fit_points *p)
{
	size_t i;

	for (i = 1; i < p->count; i++)
		if (p->size_bytes[i] < p->size_bytes[i - 1])
			return false;
	return true;
}

int gf_fit_lines(const struct gf_fit_points *p, size_t lines_most,
		 struct gf_lines_fit *fit, struct gf_error *err)
{
	struct search won = {.p = p, .nlines = 1}, more;
	struct gf_lines_fit f = {0};
	size_t most = ascending(p) ? lines_most : 1, n, i;
	int rc = gf_fit_linear(p->size_bytes, p->time_s, p->count,
			       &won.best[0].line, err);

	if (rc < 0)
		return rc;
	won.best[0].last = p->count;
	won.least = squares(p, &won.best[0]);
	for (n = 2; n <= most && n * fewest_points <= p->count; n++) {
		if (good(&won))
			break;
		more = (struct search){.p = p, .nlines = n, .least = INFINITY};
		cut_rest(&more, 0, 0, 0);
		if (left_over(&won) >= better * left_over(&more))
			won = more;
	}
	f.nlines = won.nlines;
	for (i = 0; i < f.nlines; i++) {
		f.lines[i] = won.best[i].line;
		f.from_bytes[i] = won.best[i].from_bytes;
		f.clamped_startup |= f.lines[i].clamped_startup;
		f.clamped_slope |= f.lines[i].clamped_slope;
	}
	judge(p, &f);
	*fit = f;
	return 0;
}
