/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/network_parts.h"

#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "cost/stat.h"

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
	struct gf_measure_samples *samples = gf_xcalloc((size_t)c->lanes, sizeof(*samples));
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
	free(samples);
	return rc;
}

static struct gf_cost_line line_at(const struct gf_measure_curve *curve, double bytes)
{
	struct gf_cost_lines lines = gf_measure_curve_lines(curve);

	return gf_cost_line_at(&lines, bytes, 1, NULL);
}

/* One size with the fewest repeats; n at once take n times as long. */
static double size_s(const struct gf_measure_curve_config *c, double sitting_s,
		     const struct gf_measure_curve *curve, double bytes)
{
	struct gf_cost_lines lines = gf_measure_curve_lines(curve);
	double one = gf_cost_lines_s(&lines, bytes);
	int low = gf_measure_round(&c->limits.point).low, n;
	double sum = 0;

	for (n = 1; n <= c->lanes; n++)
		sum += sitting_s + n * one * (low + gf_measure_uncounted(n * one));
	return GF_MEASURE_ROUNDS * sum;
}

/* From how many bytes on a message spends two thirds in its transfer. */
static double telling_bytes(const struct gf_measure_curve *curve)
{
	struct gf_cost_lines lines = gf_measure_curve_lines(curve);
	double low = INFINITY, below = INFINITY;
	size_t i;

	for (i = lines.nlarger + 1; i-- > 0;) {
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
			   const struct gf_measure_curve *curve, size_t sizes[SIZES])
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

		sizes[i] = (size_t)(low * pow(high / low, part)) / 4 * 4;
	}
	return count;
}

int gf_measure_contention(const struct gf_measure_curve_config *c,
			  const struct gf_measure_subject *subject, double sitting_s,
			  struct gf_measure_curve *curve, struct gf_error *err)
{
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
		rc = measure_size(c, subject, line_at(curve, (double)sizes[i]).per_byte_s,
				  &table->entries[i], err);
	}
	return rc;
}

/* The least time of n messages of that size on the links of a level, relative to the drain of one
 * message. */
static double least_gamma(const struct gf_level_cost *level, double groups, double per_byte_s,
			  size_t size_bytes, int n)
{
	struct gf_cost_lines lines = gf_level_lines(level);
	/* of a ring's messages, which are parts */
	double beta = gf_cost_line_at(&lines, (double)size_bytes / groups, 1, NULL).per_byte_s;
	double wire = 2 * (groups - 1) / groups * beta;

	return fmin(n, gf_contention_gamma(&level->contention, size_bytes, n) * wire / per_byte_s);
}

struct raise {
	const char *level; /* NULL: nothing was raised */
	size_t size_bytes;
	int n;
	double from, to;
};

static void raise_entry(struct gf_contention_entry *e, const struct gf_level_cost *level,
			double groups, const struct gf_cost_lines *lines, struct raise *most)
{
	double per_byte_s = gf_cost_line_at(lines, (double)e->size_bytes, 1, NULL).per_byte_s;
	size_t n;

	for (n = 2; n <= e->ngamma; n++) {
		double least = least_gamma(level, groups, per_byte_s, e->size_bytes, (int)n);
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
				    &lines, &most);
	}
	if (most.level)
		gf_text_addf(remarks,
			     "%s: %d messages of %zu bytes at once seemed to pass level %s faster "
			     "than it goes: gamma %.2f is raised to %.2f\n",
			     cost->algorithm, most.n, most.size_bytes, most.level, most.from,
			     most.to);
}
