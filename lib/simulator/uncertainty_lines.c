/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/uncertainty.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"
#include "cost/stat.h"

/* Of its repeats, against their median. */
static double scatter(const struct gf_fit *fit)
{
	double *shares, median;
	size_t i, n = 0;

	if (!fit->npoints || !fit->spread_s)
		return 0;
	shares = gf_xcalloc(fit->npoints, sizeof(*shares));
	for (i = 0; i < fit->npoints; i++)
		if (fit->time_s[i] > 0)
			shares[n++] = fit->spread_s[i] / (2 * fit->time_s[i]);
	median = n ? gf_stat_median(shares, n) : 0;
	free(shares);
	return median;
}

double gf_uncertainty_of_fit(const struct gf_fit *fit, size_t nlines)
{
	double d;

	if (!fit->npoints)
		return 0;
	d = fmin(hypot(fit->residual_rms, scatter(fit)), GF_UNCERTAINTY_MOST);
	return fit->npoints > 2 * nlines ? d : fmax(d, GF_UNCERTAINTY_RUNS);
}

struct end {
	const struct gf_fit *fit;
	const struct gf_cost_lines *lines;
	bool high;
	double d;
	size_t last; /* point */
	struct gf_cost_line *parts;
	size_t nparts, capacity;
};

static double bytes_at(const struct end *e, size_t point)
{
	return (double)e->fit->size_bytes[point];
}

static double cost_s(const struct gf_cost_line *l, double bytes)
{
	return l->startup_s + l->per_byte_s * bytes;
}

static void add(struct end *e, double from, double startup_s, double per_byte_s)
{
	*gf_array_push(&e->parts, &e->nparts, &e->capacity) =
		(struct gf_cost_line){(size_t)from, startup_s, per_byte_s, NULL};
}

/* The factor of the lines from one point to another. */
static double factor_of(const struct end *e, size_t first, size_t last)
{
	double factor = e->high ? 1 + e->d : 1 / (1 + e->d);

	for (; first <= last; first++) {
		double missed =
			e->fit->time_s[first] / gf_cost_lines_s(e->lines, bytes_at(e, first));

		if (missed > 0)
			factor = e->high ? fmax(factor, missed) : fmin(factor, missed);
	}
	return factor;
}

/* How much too large the slope of a line between two sizes may be, where times are off by a
 * share. */
static double slope_error(const struct end *e, double time_s, double from, double to)
{
	const double off = 2 * sqrt(2) * fmax(e->d, GF_UNCERTAINTY_RUNS);

	return to > from ? off * time_s / (to - from) : INFINITY;
}

static void add_smaller(struct end *e, double factor)
{
	const struct gf_cost_lines *l = e->lines;
	const double first = bytes_at(e, 0), last = bytes_at(e, e->last);
	const double time_s = factor * gf_cost_lines_s(l, first);
	const double to = l->nlarger ? (double)l->larger->from_bytes : last;
	double least_s =
		fmin(fmax(l->first.startup_s - to * slope_error(e, time_s, first, to), 0), time_s);

	if (e->high)
		least_s = time_s;
	if (first > 0)
		add(e, 0, least_s, (time_s - least_s) / first);
}

static void add_larger(struct end *e, double factor)
{
	const double last = fmax(bytes_at(e, e->last), 1);
	struct gf_cost_line l = gf_cost_line_at(e->lines, last, 1, NULL);
	const double from = fmax(bytes_at(e, 0), (double)l.from_bytes);
	const double time_s = factor * cost_s(&l, last);
	double slope =
		fmin(fmax(l.per_byte_s - slope_error(e, time_s, from, last), 0), time_s / last);

	if (e->high)
		slope = time_s / last;
	add(e, last, time_s - slope * last, slope);
}

/* Costs do not fall: where a part begins below the end of the one before it, it is raised at the
 * high end, and that one is lowered at the low end. */
static void level(struct end *e)
{
	double bound_s = e->high ? 0 : INFINITY;
	size_t k;

	for (k = 0; k < e->nparts; k++) {
		size_t i = e->high ? k : e->nparts - 1 - k;
		struct gf_cost_line *p = &e->parts[i];
		double from = (double)p->from_bytes,
		       to = i + 1 < e->nparts ? (double)p[1].from_bytes : 2 * from,
		       from_s = cost_s(p, from), to_s = cost_s(p, to);
		bool fine = e->high ? from_s >= bound_s : to_s <= bound_s;

		from_s = e->high ? fmax(from_s, bound_s) : fmin(from_s, bound_s);
		to_s = e->high ? fmax(to_s, bound_s) : fmin(to_s, bound_s);
		bound_s = e->high ? to_s : from_s;
		if (fine)
			continue;
		p->per_byte_s = (to_s - from_s) / (to - from);
		p->startup_s = from_s - p->per_byte_s * from;
	}
}

void gf_uncertainty_lines(const struct gf_fit *fit, struct gf_cost_line *first,
			  struct gf_cost_line **larger, size_t *nlarger, size_t parts_most,
			  bool high)
{
	const struct gf_cost_lines lines = {*first, *larger, *nlarger};
	const size_t last = fit->npoints - 1;
	struct end e = {.fit = fit, .lines = &lines, .high = high, .last = last};
	size_t step = 1 + last / parts_most, i, k;
	double from, next;

	if (!fit->npoints)
		return;
	e.d = gf_uncertainty_of_fit(fit, 1 + *nlarger);
	for (i = 0; i == 0 || i < last; i = k) {
		double factor;

		k = last - i > step ? i + step : last;
		factor = factor_of(&e, i, k);
		if (i == 0)
			add_smaller(&e, factor);
		for (from = bytes_at(&e, i); from < bytes_at(&e, k); from = next) {
			struct gf_cost_line l = gf_cost_line_at(&lines, from, 1, &next);

			add(&e, from, l.startup_s * factor, l.per_byte_s * factor);
		}
		if (k == last) {
			add_larger(&e, factor);
			break;
		}
	}
	level(&e);
	gf_list_free(&gf_cost_line_record, *larger, *nlarger);
	for (i = k = 0; i < e.nparts; i++)
		if (e.parts[i].startup_s != e.parts[k].startup_s ||
		    e.parts[i].per_byte_s != e.parts[k].per_byte_s)
			e.parts[++k] = e.parts[i];
	*first = e.parts[0];
	*nlarger = k;
	*larger = gf_xmemdup(e.parts + 1, k * sizeof(*e.parts));
	free(e.parts);
}
