/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/fit.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/*
 * Sums over the points, each weighted 1/time^2, of size and time about their weighted means:
 * centring keeps the normal equations well conditioned for sizes from 1 KiB to 1 GiB.
 */
struct sums {
	double weight, mean_size, mean_time;
	double size_size, size_time; /* centred */
	double raw_size_size, raw_size_time;
};

static struct sums sum_up(const double *size, const double *time, size_t count)
{
	struct sums s = {0};

	for (size_t i = 0; i < count; i++) {
		double w = 1 / (time[i] * time[i]);

		s.weight += w;
		s.mean_size += w * size[i];
		s.mean_time += w * time[i];
	}
	s.mean_size /= s.weight;
	s.mean_time /= s.weight;
	for (size_t i = 0; i < count; i++) {
		double w = 1 / (time[i] * time[i]);
		double dx = size[i] - s.mean_size, dy = time[i] - s.mean_time;

		s.size_size += w * dx * dx;
		s.size_time += w * dx * dy;
		s.raw_size_size += w * size[i] * size[i];
		s.raw_size_time += w * size[i] * time[i];
	}
	return s;
}

static int check(const double *size, const double *time, size_t count, struct gf_error *err)
{
	int distinct = 0;

	for (size_t i = 0; i < count; i++) {
		if (!(time[i] > 0) || !isfinite(time[i]))
			return gf_error_set(err, -EINVAL,
					    "fit: want times > 0, got %g s at %.0f bytes", time[i],
					    size[i]);
		if (!(size[i] >= 0) || !isfinite(size[i]))
			return gf_error_set(err, -EINVAL, "fit: want sizes >= 0, got %g", size[i]);
		distinct |= size[i] != size[0];
	}
	if (!distinct)
		return gf_error_set(err, -EINVAL,
				    "fit: want at least 2 distinct sizes, got %zu points of %s",
				    count, count ? "one size" : "none");
	return 0;
}

int gf_fit_linear(const double *size_bytes, const double *time_s, size_t count,
		  struct gf_linear_fit *fit, struct gf_error *err)
{
	struct gf_linear_fit f = {0};
	struct sums s;
	int rc = check(size_bytes, time_s, count, err);

	if (rc < 0)
		return rc;
	s = sum_up(size_bytes, time_s, count);
	f.per_byte_s = s.size_time / s.size_size;
	f.startup_s = s.mean_time - f.per_byte_s * s.mean_size;
	if (f.per_byte_s < 0) {
		f.clamped_slope = 1;
		f.per_byte_s = 0;
		f.startup_s = s.mean_time;
	} else if (f.startup_s < 0) {
		f.clamped_startup = 1;
		f.startup_s = 0;
		f.per_byte_s = s.raw_size_time / s.raw_size_size;
	}
	*fit = f;
	return 0;
}

static const size_t fewest_points = 3;
/* Tables that are longer are cut at every other point, or fewer; in three, those with more points
 * than that. */
static const size_t cuts_most = 1000, two_cuts_most = 50;
enum { PARTS_MOST = 3 };
/* Below this error one line is enough. */
static const double good_rms = 0.05;
/* How likely chance may be. */
static const double chance = 1e-3;
/* Exact data leave nothing, and nothing cannot be divided by. */
static const double no_less_rms = 1e-6;
/* By how much a cost may seem to fall at a cut by noise, and how far a size lies off a line. */
static const double fall = 0.25;
/* A fall that is one. */
static const double real_fall = 0.3;

/* Points first..last - 1 and the line through them. */
struct range {
	size_t first, last;
	double from_bytes;
	bool falls;  /* it begins below the end of the one before */
	bool joined; /* a line of its own leads to it from the last size of the one before */
	struct gf_linear_fit line;
};

static bool fit_range(const struct gf_fit_points *p, size_t first, size_t last, struct range *r)
{
	r->first = first;
	r->last = last;
	return gf_fit_linear(p->size_bytes + first, p->time_s + first, last - first, &r->line,
			     NULL) == 0;
}

static double at(const struct gf_linear_fit *line, double bytes)
{
	return line->startup_s + line->per_byte_s * bytes;
}

/* Squares of (measured - a line) / measured, which is what a fit makes least.
 */
static double squares(const struct gf_fit_points *p, const struct range *r,
		      const struct gf_linear_fit *line)
{
	double sum = 0;

	for (size_t i = r->first; i < r->last; i++) {
		double left = at(line, p->size_bytes[i]) / p->time_s[i] - 1;

		sum += left * left;
	}
	return sum;
}

/* Do three sizes lie near one line? One that was slow by chance pulls it off the others. */
static bool near_a_line(const struct gf_fit_points *p, size_t first)
{
	struct range r;

	if (!fit_range(p, first, first + fewest_points, &r))
		return false;
	for (size_t i = first; i < r.last; i++)
		if (fabs(at(&r.line, p->size_bytes[i]) / p->time_s[i] - 1) > fall)
			return false;
	return true;
}

/* Does the cost really fall from the size before `next` to that one? */
static bool falls(const struct gf_fit_points *p, size_t next)
{
	const double *time = p->time_s + next;
	const double spread = p->spread_s ? p->spread_s[next] + p->spread_s[next - 1] : 0;

	return time[0] < time[-1] * (1 - real_fall) && time[0] + spread < time[-1] &&
	       near_a_line(p, next - fewest_points) && near_a_line(p, next);
}

/* Finds the size at which the second range begins; false: the cost would fall there. If by the
 * lines it falls between two sizes, but not from the one to the other, the ranges are joined. */
static bool find_cut(const struct gf_fit_points *p, const struct range *a, struct range *b)
{
	double low = p->size_bytes[b->first - 1];
	double high = p->size_bytes[b->first];
	double steeper = b->line.per_byte_s - a->line.per_byte_s;
	double cross = (a->line.startup_s - b->line.startup_s) / steeper, below;

	if (steeper != 0 && cross > low && cross <= high)
		b->from_bytes = fmax(floor(cross), floor(low) + 1);
	else if (at(&b->line, low + 1) >= at(&a->line, low + 1))
		b->from_bytes = floor(low) + 1; /* where it jumps is not known */
	else
		b->from_bytes = ceil(sqrt(low * high));
	below = 1 - at(&b->line, b->from_bytes) / at(&a->line, b->from_bytes);
	b->joined = below > good_rms && at(&b->line, high) >= at(&a->line, low);
	if (b->joined)
		b->from_bytes = high;
	return b->from_bytes > low && (b->joined || below <= fall);
}

/*
 * The logarithm of how likely chance alone makes a line of a part's own so much better there than
 * that of the whole: the F test for two parameters, whose tail is (own/whole)^((n - 2)/2). Parts
 * differ in noise, so each is judged by itself. *needed: the whole's line is not good enough there.
 */
static double log_chance(const struct gf_fit_points *p, const struct range *r,
			 const struct gf_linear_fit *whole, bool *needed)
{
	double n = (double)(r->last - r->first);
	double least = n * no_less_rms * no_less_rms;
	double own = squares(p, r, &r->line) + least;
	double other = squares(p, r, whole) + least;

	*needed |= sqrt(other / n) >= good_rms;
	return fmin(0, (n - 2) / 2 * log(own / other));
}

/* The same by how far the repeats of each size were apart, if that is known: the median of five or
 * more lies within half of that. */
static double log_chance_by_spread(const struct gf_fit_points *p, const struct range *r,
				   const struct gf_linear_fit *whole)
{
	double sum = 0;

	for (size_t i = r->first; p->spread_s && i < r->last; i++) {
		double noise = hypot(p->spread_s[i] / 2, good_rms * p->time_s[i]);
		double own = (at(&r->line, p->size_bytes[i]) - p->time_s[i]) / noise;
		double other = (at(whole, p->size_bytes[i]) - p->time_s[i]) / noise;

		sum += (own * own - other * other) / 2;
	}
	return sum;
}

struct parts {
	struct range at[PARTS_MOST];
	size_t count; /* 0: none is worth it */
	double likely;
};

/* Cuts a range where its parts end, and keeps them if they are the best. Each cut after the first
 * has to be as unlikely to be chance as the first. */
static void try_cuts(const struct gf_fit_points *p, const struct range *whole, const size_t *ends,
		     size_t count, size_t room, struct parts *best)
{
	struct parts parts = {{*whole}, count, 0};
	size_t first = whole->first, lines = count - 1, i;
	double by_fit = 0, by_spread = 0;
	bool needed = false;

	for (i = 0; i < count; first = ends[i++]) {
		if (!fit_range(p, first, ends[i], &parts.at[i]) ||
		    (i > 0 && !find_cut(p, &parts.at[i - 1], &parts.at[i])))
			return;
		lines += i > 0 && parts.at[i].joined;
		by_fit += log_chance(p, &parts.at[i], &whole->line, &needed);
		by_spread += log_chance_by_spread(p, &parts.at[i], &whole->line);
	}
	parts.likely = fmin(by_fit, by_spread) - log(chance) * (double)(count - 2);
	if (needed && lines <= room && parts.likely < best->likely)
		*best = parts;
}

/* The best cut of a range, or the best two, if they are worth it. */
static struct parts cut(const struct gf_fit_points *p, const struct range *whole, size_t room)
{
	struct parts best = {.likely = log(chance)};
	size_t n = whole->last - whole->first, step = 1 + n / cuts_most, ends[PARTS_MOST];
	size_t *k = &ends[0], *l = &ends[1];

	for (*k = whole->first + fewest_points; *k + fewest_points <= whole->last; *k += step) {
		*l = whole->last;
		try_cuts(p, whole, ends, 2, room, &best);
	}
	step = 1 + n / two_cuts_most;
	ends[2] = whole->last;
	for (*k = whole->first + fewest_points; *k + fewest_points <= whole->last; *k += step)
		for (*l = *k + fewest_points; *l + fewest_points <= whole->last; *l += step)
			try_cuts(p, whole, ends, 3, room, &best);
	return best;
}

/* A line that would begin a little below the one before is raised. */
static void append_line(struct gf_lines_fit *f, double from, struct gf_linear_fit l, bool falls)
{
	if (f->nlines > 0 && !falls)
		l.startup_s =
			fmax(l.startup_s, at(&f->lines[f->nlines - 1], from) - l.per_byte_s * from);
	f->from_bytes[f->nlines] = from;
	f->lines[f->nlines++] = l;
}

static void take_lines(const struct gf_fit_points *p, const struct range *ranges, size_t count,
		       struct gf_lines_fit *f)
{
	for (size_t i = 0; i < count; i++) {
		const struct range *r = &ranges[i];

		if (r->joined) {
			double low = p->size_bytes[r->first - 1], high = p->size_bytes[r->first];
			double from_s = at(&f->lines[f->nlines - 1], low);
			double slope = fmax(0, at(&r->line, high) - from_s) / (high - low);

			append_line(f, floor(low) + 1,
				    (struct gf_linear_fit){from_s - slope * low, slope, 0, 0},
				    false);
		}
		append_line(f, r->from_bytes, r->line, r->falls);
	}
}

static void judge(const struct gf_fit_points *p, struct gf_lines_fit *f)
{
	double mean = 0, total = 0, left = 0, sum = 0;
	size_t i, line = 0;

	for (i = 0; i < p->count; i++)
		mean += p->time_s[i] / (double)p->count;
	for (i = 0; i < p->count; i++) {
		double fitted, relative;

		while (line + 1 < f->nlines && f->from_bytes[line + 1] <= p->size_bytes[i])
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
	for (size_t i = 1; i < p->count; i++)
		if (p->size_bytes[i] < p->size_bytes[i - 1])
			return false;
	return true;
}

/* Cuts the range of all points at falls, as long as there is room for lines. */
static size_t cut_at_falls(const struct gf_fit_points *p, size_t most, struct range *ranges)
{
	size_t n = 1, i;

	for (i = fewest_points; n < most && i + fewest_points <= p->count; i++) {
		if (i - ranges[n - 1].first < fewest_points || !falls(p, i))
			continue;
		fit_range(p, ranges[n - 1].first, i, &ranges[n - 1]);
		ranges[n] = (struct range){.from_bytes = p->size_bytes[i], .falls = true};
		fit_range(p, i, p->count, &ranges[n++]);
	}
	return n;
}

int gf_fit_lines(const struct gf_fit_points *p, size_t lines_most, struct gf_lines_fit *fit,
		 struct gf_error *err)
{
	struct range ranges[GF_FIT_LINES_MOST] = {{.last = p->count}};
	struct gf_lines_fit f = {0}, one = {.nlines = 1};
	size_t most = ascending(p) ? lines_most : 1, n, lines, i, k;
	int rc = gf_fit_linear(p->size_bytes, p->time_s, p->count, &ranges[0].line, err);

	assert(lines_most <= GF_FIT_LINES_MOST);
	if (rc < 0)
		return rc;
	one.lines[0] = ranges[0].line;
	judge(p, &one);
	n = lines = cut_at_falls(p, most, ranges);
	for (i = 0; i < n && lines < most;) {
		struct parts parts = cut(p, &ranges[i], most - lines);

		if (!parts.count) {
			i++;
			continue;
		}
		memmove(&ranges[i + parts.count], &ranges[i + 1], (n - i - 1) * sizeof(*ranges));
		memcpy(&ranges[i], parts.at, parts.count * sizeof(*ranges));
		n += parts.count - 1;
		for (lines = n, k = 0; k < n; k++)
			lines += ranges[k].joined;
	}
	take_lines(p, ranges, n, &f);
	judge(p, &f);
	if (f.nlines > 1 && f.residual_rms >= one.residual_rms)
		return gf_fit_lines(p, 1, fit, err); /* raised too much */
	*fit = f;
	return 0;
}

static struct gf_cost_line line_of(const struct gf_lines_fit *f, size_t i)
{
	return (struct gf_cost_line){(size_t)f->from_bytes[i], f->lines[i].startup_s,
				     f->lines[i].per_byte_s, NULL};
}

void gf_fit_take_lines(const struct gf_lines_fit *f, struct gf_cost_line *first,
		       struct gf_cost_line **larger, size_t *nlarger)
{
	*first = line_of(f, 0);
	for (size_t i = 1; i < f->nlines; i++)
		gf_cost_line_add(larger, nlarger, line_of(f, i));
}
