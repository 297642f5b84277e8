/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/curve.h"

#include <math.h>

#include "base/clock.h"
#include "base/heap.h"
#include "cost/stat.h"
#include "profiler/network_parts.h"

enum { SIZES = 3 };
static const size_t smallest_bytes = (size_t)64 << 10;
/* The largest size: memory for several such messages is still a small thing. */
static const size_t largest_bytes = (size_t)64 << 20;
/* The share of the time that curve.c leaves. */
static const double share = 0.4;

static int sit(const struct gf_measure_curve_config *c, const struct gf_measure_subject *subject,
	       size_t bytes, int n, struct gf_measure_samples *samples, struct gf_error *err)
{
	struct gf_measure_budget point = c->limits.point;
	struct gf_measure_sitting sitting = {bytes, n, n};

	/* no more than contention's time allows */
	point.budget_s = fmin(point.budget_s, share * c->limits.budget_s / (2 * SIZES * c->lanes));
	sitting.budget = gf_measure_round(&point);
	return subject->sit(subject->ctx, &sitting, samples, err);
}

static int measure_size(const struct gf_measure_curve_config *c,
			const struct gf_measure_subject *subject, double per_byte_s,
			struct gf_contention_entry *entry, struct gf_error *err)
{
	GF_FREED struct gf_measure_samples *samples =
		gf_xcalloc((size_t)c->lanes, sizeof(*samples));
	double drain = per_byte_s * (double)entry->size_bytes, alone = 0;
	int round, n, rc = 0;

	for (round = 0; round < GF_MEASURE_ROUNDS; round++)
		for (n = 1; n <= c->lanes && rc == 0; n++)
			rc = sit(c, subject, entry->size_bytes, n, &samples[n - 1], err);
	entry->gamma = gf_xcalloc((size_t)c->lanes, sizeof(*entry->gamma));
	entry->ngamma = (size_t)c->lanes;
	entry->gamma[0] = 1;
	for (n = 1; n <= c->lanes; n++) {
		struct gf_measure_samples *s = &samples[n - 1];
		double time = rc == 0 ? gf_stat_median(s->values, s->count) : 0;

		if (n == 1)
			alone = time;
		else /* noise must not make company faster than being alone */
			entry->gamma[n - 1] = fmax(entry->gamma[n - 2], 1 + (time - alone) / drain);
		gf_measure_samples_release(s);
	}
	return rc;
}

/* One size with the fewest repeats; n at once take n times as long. */
static double size_s(const struct gf_measure_curve_config *c, double sitting_s,
		     const struct gf_allreduce_cost *curve, double bytes)
{
	struct gf_cost_lines lines = gf_allreduce_lines(curve);
	double one = gf_cost_lines_s(&lines, bytes);
	int low = gf_measure_round(&c->limits.point).low, n;
	double sum = 0;

	for (n = 1; n <= c->lanes; n++)
		sum += sitting_s + n * one * (low + gf_measure_uncounted(n * one));
	return GF_MEASURE_ROUNDS * sum;
}

/* From how many bytes on a message spends two thirds in its transfer. */
static double telling_bytes(const struct gf_allreduce_cost *curve)
{
	struct gf_cost_lines lines = gf_allreduce_lines(curve);
	double low = INFINITY, below = INFINITY;

	for (size_t i = lines.nlarger + 1; i-- > 0;) {
		const struct gf_cost_line *l = i ? &lines.larger[i - 1] : &lines.first;
		double enough = 2 * l->startup_s / l->per_byte_s;

		if (!(enough < below)) /* NaN, too: a line at 0 */
			break;
		low = fmax(enough, (double)l->from_bytes);
		if (low > (double)l->from_bytes)
			break;
		below = low;
	}
	return fmax((double)smallest_bytes, low);
}

/* Up to SIZES of them, a factor of 4 or more apart, largest last. */
static size_t choose_sizes(const struct gf_measure_curve_config *c, double sitting_s,
			   const struct gf_allreduce_cost *curve, size_t sizes[SIZES])
{
	double low = telling_bytes(curve);
	double high = fmin((double)c->limits.max_bytes, (double)largest_bytes);
	size_t last = curve->fit.npoints - 1, count = 0, i;

	/* no further than the line was measured */
	high = fmin(high, (double)curve->fit.size_bytes[last]);
	/* the smaller ones together take less than the largest */
	while (high >= low && 2 * size_s(c, sitting_s, curve, high) > share * c->limits.budget_s)
		high /= 2;
	if (low > high)
		return 0;
	while (count < SIZES && low * pow(4, (double)count) <= high)
		count++;
	for (i = 0; i < count; i++) {
		double part = count > 1 ? (double)i / (double)(count - 1) : 1;

		/* not below `low`, where another line may hold */
		sizes[i] = ((size_t)ceil(low * pow(high / low, part) - 1e-6) + 3) / 4 * 4;
	}
	return count;
}

/*
 * gamma_n at a few sizes. n equal messages at once take startup + gamma_n * per_byte * bytes; one
 * alone takes startup + per_byte * bytes. So
 * gamma_n = 1 + (T_n - T_1) / (per_byte * bytes), whatever both of them spend on meeting and waking
 * up. Sizes whose transfer is shorter than two startups tell nothing about gamma_n and are left
 * out. Sizes for which there is no time are left out, too. A per-byte cost of 0 leaves no
 * contention to find. Collective; the curve is fitted already. sitting_s is the time that a sitting
 * takes besides its messages.
 */
static int measure_contention(const struct gf_measure_curve_config *c,
			      const struct gf_measure_subject *subject, double sitting_s,
			      struct gf_allreduce_cost *curve, struct gf_error *err)
{
	const struct gf_cost_lines lines = gf_allreduce_lines(curve);
	size_t sizes[SIZES], count, i;
	struct gf_contention *table = &curve->contention;
	int rc = 0;

	count = choose_sizes(c, sitting_s, curve, sizes);
	if (count == 0)
		return 0;
	table->entries = gf_xcalloc(count, sizeof(*table->entries));
	for (i = 0; i < count && rc == 0; i++) {
		table->entries[i].size_bytes = sizes[i];
		table->nentries++;
		rc = measure_size(c, subject,
				  gf_cost_line_at(&lines, (double)sizes[i], 1, NULL).per_byte_s,
				  &table->entries[i], err);
	}
	return rc;
}

/* The least time of n messages of that size on the links of a level, relative to the drain of one
 * message. */
static double least_gamma(const struct gf_level_cost *level, double groups, int halves,
			  double per_byte_s, size_t size_bytes, int n)
{
	struct gf_cost_lines lines = gf_level_lines(level);
	/* of a ring's messages, which are parts */
	double beta = gf_cost_line_at(&lines, (double)size_bytes / groups, 1, NULL).per_byte_s;
	double wire = halves * (groups - 1) / groups * beta;

	return fmin(n, gf_contention_gamma(&level->contention, size_bytes, n) * wire / per_byte_s);
}

struct raise {
	const char *level; /* NULL: nothing was raised */
	size_t size_bytes;
	int n;
	double from, to;
};

static void raise_entry(struct gf_contention_entry *e, const struct gf_level_cost *level,
			double groups, int halves, const struct gf_cost_lines *lines,
			struct raise *most)
{
	double per_byte_s = gf_cost_line_at(lines, (double)e->size_bytes, 1, NULL).per_byte_s;

	for (size_t n = 2; n <= e->ngamma; n++) {
		double least =
			least_gamma(level, groups, halves, per_byte_s, e->size_bytes, (int)n);
		double *gamma = &e->gamma[n - 1];

		least = fmax(least, e->gamma[n - 2]);
		if (*gamma >= least)
			continue;
		if (!most->level || least - *gamma > most->to - most->from)
			*most = (struct raise){level->name, e->size_bytes, (int)n, *gamma, least};
		*gamma = least;
	}
}

void gf_measure_contention_floor(const struct gf_network *net, const struct gf_level *levels,
				 size_t nlevels, int local_ranks, struct gf_allreduce_cost *cost,
				 struct gf_text *remarks)
{
	struct gf_cost_lines lines = gf_allreduce_lines(cost);
	struct raise most = {0};
	size_t stride = 1, ranks = 1, i, k;

	for (i = 0; i < nlevels; i++)
		ranks *= levels[i].size;
	for (i = 0; i < nlevels; stride *= levels[i++].size) {
		const struct gf_level_cost *level = gf_network_level(net, levels[i].name);

		/* inside a host there is memory, not a link */
		if (!level || stride < (size_t)local_ranks)
			continue;
		for (k = 0; k < cost->contention.nentries; k++)
			raise_entry(&cost->contention.entries[k], level, (double)(ranks / stride),
				    cost->collective == GF_COLL_WHOLE ? 2 : 1, &lines, &most);
	}
	if (most.level)
		gf_text_addf(remarks,
			     "%s: %d messages of %zu bytes at once seemed to pass level %s faster "
			     "than it goes: gamma %.2f is raised to %.2f\n",
			     cost->algorithm, most.n, most.size_bytes, most.level, most.from,
			     most.to);
}

/* The curve's share of the time; the rest is for contention. */
static const double sweep_share = 0.6;
/* A message that takes so long tells the pace. */
static const double telling_s = 0.02;

int gf_measure_fit(struct gf_allreduce_cost *curve, size_t lines, struct gf_error *err)
{
	struct gf_fit *fit = &curve->fit;
	GF_FREED double *sizes = gf_xcalloc(fit->npoints + 1, sizeof(*sizes));
	struct gf_fit_points points = {sizes, fit->time_s, fit->npoints, fit->spread_s};
	struct gf_cost_line first;
	struct gf_lines_fit f;
	int rc;

	for (size_t i = 0; i < fit->npoints; i++)
		sizes[i] = (double)fit->size_bytes[i];
	rc = gf_fit_lines(&points, lines, &f, err);
	if (rc == 0) {
		free(curve->larger);
		curve->larger = NULL;
		curve->nlarger = 0;
		gf_fit_take_lines(&f, &first, &curve->larger, &curve->nlarger);
		curve->startup_s = first.startup_s;
		curve->per_byte_s = first.per_byte_s;
		fit->r_squared = f.r_squared;
		fit->residual_rms = f.residual_rms;
		fit->residual_max = f.residual_max;
	}
	return rc;
}

/* One message of that size, once. */
static int look_at(const struct gf_measure_subject *subject, size_t bytes, double *time_s,
		   struct gf_error *err)
{
	struct gf_measure_sitting once = {bytes, 1, 1, {0, 1, 1}};
	GF_RELEASED(gf_measure_samples_release) struct gf_measure_samples samples = {0};
	int rc = subject->sit(subject->ctx, &once, &samples, err);

	if (rc == 0)
		*time_s = gf_stat_median(samples.values, samples.count);
	return rc;
}

/* From the smallest size up, as far as time allows. */
static int look(const struct gf_measure_curve_config *c, const struct gf_measure_subject *subject,
		struct gf_measure_pace *pace, struct gf_error *err)
{
	size_t bytes = c->limits.min_bytes / 4 * 4, first = bytes;
	double began = gf_clock_s(), small_s, big_s;
	int rc = look_at(subject, bytes, &small_s, err);

	if (rc)
		return rc;
	pace->sitting_s = gf_clock_s() - began - small_s * (1 + gf_measure_uncounted(small_s));
	rc = gf_measure_slowest(c->comm, &pace->sitting_s, 1, err);
	big_s = small_s;
	while (rc == 0 && big_s < telling_s && bytes < c->limits.max_bytes) {
		bytes = bytes > c->limits.max_bytes / 16 ? (c->limits.max_bytes + 3) / 4 * 4
							 : bytes * 16;
		rc = look_at(subject, bytes, &big_s, err);
	}
	pace->sitting_s = fmax(0, pace->sitting_s);
	pace->startup_s = small_s;
	pace->per_byte_s = bytes > first ? fmax(0, big_s - small_s) / (double)(bytes - first) : 0;
	return rc;
}

/* The points of an empty fit, which takes the sizes. */
static int measure_points(const struct gf_measure_curve_config *c,
			  const struct gf_measure_subject *subject,
			  const struct gf_measure_pace *pace, const struct gf_measure_sweep *sweep,
			  struct gf_fit *fit, struct gf_error *err)
{
	GF_FREED struct gf_measure_samples *samples = gf_xcalloc(sweep->count, sizeof(*samples));
	struct gf_measure_sitting sitting = {.lanes = 1, .budget = sweep->sitting};
	size_t all = sweep->count * (size_t)sweep->rounds, done, i;
	int rc = 0;

	fit->npoints = sweep->count;
	fit->size_bytes = sweep->sizes;
	fit->time_s = gf_xcalloc(sweep->count, sizeof(*fit->time_s));
	fit->spread_s = gf_xcalloc(sweep->count, sizeof(*fit->spread_s));
	for (done = 0; done < all && rc == 0; done++) {
		i = done % sweep->count;
		sitting.bytes = fit->size_bytes[i];
		sitting.messages = gf_measure_chain(pace, sitting.bytes);
		if (c->progress)
			c->progress(c->progress_ctx, sweep_share * (double)done / (double)all);
		rc = subject->sit(subject->ctx, &sitting, &samples[i], err);
	}
	for (i = 0; i < sweep->count; i++) {
		struct gf_measure_samples *s = &samples[i];
		const int chain = gf_measure_chain(pace, fit->size_bytes[i]);

		if (rc == 0) {
			fit->time_s[i] = gf_stat_median(s->values, s->count) / chain;
			fit->spread_s[i] = gf_stat_spread(s->values, s->count) / chain;
		}
		gf_measure_samples_release(s);
	}
	return rc;
}

static void remark_time(const struct gf_measure_limits *l, const struct gf_measure_sweep *sweep,
			const char *name, struct gf_text *remarks)
{
	size_t last = sweep->sizes[sweep->count - 1];

	if (sweep->takes_s > 1.01 * l->budget_s)
		gf_text_addf(remarks,
			     "\t%s: %zu sizes up to %zu bytes take about %.1f s, more than the "
			     "%.1f s of --budget that are left for it\n",
			     name, sweep->count, last, sweep->takes_s, l->budget_s);
	else if (last < l->max_bytes)
		gf_text_addf(remarks,
			     "\t%s: measured up to %zu bytes, not %zu: there is no time for more "
			     "(--budget)\n",
			     name, last, l->max_bytes);
}

int gf_measure_curve(const struct gf_measure_curve_config *c,
		     const struct gf_measure_subject *subject, struct gf_allreduce_cost *curve,
		     struct gf_text *remarks, struct gf_error *err)
{
	struct gf_measure_limits sweep_limits = c->limits;
	struct gf_measure_pace pace = {0};
	struct gf_measure_sweep sweep;
	int rc = look(c, subject, &pace, err);

	if (rc < 0)
		return rc;
	if (c->lanes > 1)
		sweep_limits.budget_s *= sweep_share;
	gf_measure_sweep_choose(&sweep_limits, &pace, &sweep);
	remark_time(&sweep_limits, &sweep, subject->name, remarks);
	rc = measure_points(c, subject, &pace, &sweep, &curve->fit, err);
	rc = rc ?: gf_measure_fit(curve, c->lines, err);
	if (rc == 0 && c->progress)
		c->progress(c->progress_ctx, sweep_share);
	if (rc == 0 && c->lanes > 1)
		rc = measure_contention(c, subject, pace.sitting_s, curve, err);
	if (rc < 0)
		gf_measure_curve_release(curve);
	return rc;
}

void gf_measure_curve_release(struct gf_allreduce_cost *curve)
{
	free(curve->larger);
	free(curve->fit.size_bytes);
	free(curve->fit.time_s);
	free(curve->fit.spread_s);
	for (size_t i = 0; i < curve->contention.nentries; i++)
		free(curve->contention.entries[i].gamma);
	free(curve->contention.entries);
	curve->startup_s = curve->per_byte_s = 0;
	curve->larger = NULL;
	curve->nlarger = 0;
	curve->fit = (struct gf_fit){0};
	curve->contention = (struct gf_contention){0};
}

/* A repeat this long does not depend on how the ranks met. */
static const double long_enough_s = 0.01;
static const size_t long_enough_bytes = (size_t)256 << 10;

struct gf_measure_budget gf_measure_round(const struct gf_measure_budget *whole)
{
	return (struct gf_measure_budget){
		.budget_s = whole->budget_s / GF_MEASURE_ROUNDS,
		.low = (whole->low + GF_MEASURE_ROUNDS - 1) / GF_MEASURE_ROUNDS,
		.high = (whole->high + GF_MEASURE_ROUNDS - 1) / GF_MEASURE_ROUNDS,
	};
}

size_t *gf_measure_sizes(size_t min_bytes, size_t max_bytes, size_t *count)
{
	size_t *sizes = NULL, n = 0, size;

	for (size = min_bytes / 4 * 4; size < max_bytes; size *= 2) {
		sizes = gf_xreallocarray(sizes, n + 2, sizeof(*sizes));
		sizes[n++] = size;
		if (size == 0 || size > max_bytes / 2)
			break;
	}
	sizes = gf_xreallocarray(sizes, n + 1, sizeof(*sizes));
	sizes[n++] = (max_bytes + 3) / 4 * 4;
	*count = n;
	return sizes;
}

/* `count` of them, each the same factor above the one before. */
static size_t *spread(size_t min_bytes, size_t max_bytes, size_t count)
{
	size_t *sizes = gf_xcalloc(count, sizeof(*sizes)), i;
	double ratio = (double)max_bytes / (double)min_bytes;

	for (i = 0; i < count; i++) {
		double part = (double)i / (double)(count - 1);

		sizes[i] = (size_t)((double)min_bytes * pow(ratio, part)) / 4;
		sizes[i] *= 4;
		if (i > 0 && sizes[i] <= sizes[i - 1])
			sizes[i] = sizes[i - 1] + 4;
	}
	return sizes;
}

static double pace_s(const struct gf_measure_pace *pace, size_t bytes)
{
	return pace->startup_s + pace->per_byte_s * (double)bytes;
}

int gf_measure_chain(const struct gf_measure_pace *pace, size_t bytes)
{
	double fit = long_enough_s / pace_s(pace, bytes);
	int most = 1;

	if (bytes <= (size_t)64 << 10)
		most = 16;
	else if (bytes <= (size_t)1 << 20)
		most = 8;
	else if (bytes <= (size_t)16 << 20)
		most = 3;
	return fit >= most ? most : fit < 1 ? 1 : (int)fit;
}

/* The time of a sitting with the fewest repeats. */
static double sitting_s(const struct gf_measure_sweep *s, const struct gf_measure_pace *pace,
			size_t bytes)
{
	double repeat = pace_s(pace, bytes) * gf_measure_chain(pace, bytes);

	return pace->sitting_s + repeat * (gf_measure_uncounted(repeat) + s->sitting.low);
}

static double all_sittings_s(const struct gf_measure_sweep *s, const struct gf_measure_pace *pace)
{
	double sum = 0;

	for (size_t i = 0; i < s->count; i++)
		sum += s->rounds * sitting_s(s, pace, s->sizes[i]);
	return sum;
}

/* Up to that size; sparse: no more of them than are needed. */
static void take_sizes(struct gf_measure_sweep *s, size_t min_bytes, size_t max_bytes, bool sparse)
{
	free(s->sizes);
	s->sizes = gf_measure_sizes(min_bytes, max_bytes, &s->count);
	if (s->count > GF_MEASURE_FEWEST_SIZES && !sparse)
		return;
	free(s->sizes);
	s->count = GF_MEASURE_FEWEST_SIZES;
	s->sizes = spread(min_bytes / 4 * 4, max_bytes, s->count);
}

static void take_rounds(struct gf_measure_sweep *s, const struct gf_measure_limits *l, int rounds)
{
	s->rounds = rounds;
	s->sitting = (struct gf_measure_budget){
		.low = (l->point.low + rounds - 1) / rounds,
		.high = (l->point.high + rounds - 1) / rounds,
	};
}

/* Tries fewer rounds, but not one alone. */
static bool fits(struct gf_measure_sweep *s, const struct gf_measure_limits *l,
		 const struct gf_measure_pace *pace)
{
	for (int rounds = GF_MEASURE_ROUNDS; rounds > 1; rounds--) {
		take_rounds(s, l, rounds);
		s->takes_s = all_sittings_s(s, pace);
		if (s->takes_s <= l->budget_s)
			return true;
	}
	return false;
}

/* Room for the fewest sizes, a factor of 1.5 apart or more, and for a slope that is more than
 * noise. */
static size_t fewest_bytes(const struct gf_measure_limits *l)
{
	size_t least = l->min_bytes * 17;

	if (least < long_enough_bytes)
		least = long_enough_bytes;
	return least < l->max_bytes ? least : l->max_bytes;
}

void gf_measure_sweep_choose(const struct gf_measure_limits *l, const struct gf_measure_pace *pace,
			     struct gf_measure_sweep *s)
{
	size_t least = fewest_bytes(l), high = l->max_bytes;
	double left, sittings;
	bool fit;

	*s = (struct gf_measure_sweep){0};
	take_sizes(s, l->min_bytes, high, false);
	fit = fits(s, l, pace);
	if (!fit && l->whole) {
		take_sizes(s, l->min_bytes, high, true);
		fit = fits(s, l, pace);
	}
	while (!fit && !l->whole && high > least) {
		high = high / 2 > least ? high / 2 : least;
		take_sizes(s, l->min_bytes, high, false);
		fit = fits(s, l, pace);
	}
	if (!fit) {
		take_sizes(s, l->min_bytes, high, true);
		take_rounds(s, l, 1);
		s->takes_s = all_sittings_s(s, pace);
	}
	/* what is left over buys repeats */
	sittings = (double)s->count * s->rounds;
	left = l->budget_s - s->takes_s;
	if (left > 0)
		s->sitting.budget_s = fmin(l->point.budget_s / s->rounds, left / sittings);
	s->takes_s += s->sitting.budget_s * sittings;
}
