/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "profiler/network_parts.h"
#include "cost/stat.h"

/* The curve's share of the time; the rest is for contention. */
static const double sweep_share = 0.6;
/* A message that takes so long tells the pace. */
static const double telling_s = 0.02;

struct gf_cost_lines gf_measure_curve_lines(const struct gf_measure_curve *curve)
{
	return (struct gf_cost_lines){
		{0, curve->startup_s, curve->per_byte_s, NULL}, curve->larger, curve->nlarger};
}

static void take_lines(struct gf_measure_curve *curve, const struct gf_lines_fit *f)
{
	struct gf_cost_line first = {0, f->lines[0].startup_s, f->lines[0].per_byte_s, NULL};
	size_t i;

	curve->startup_s = first.startup_s;
	curve->per_byte_s = first.per_byte_s;
	for (i = 1; i < f->nlines; i++)
		gf_cost_line_add(&first, &curve->larger, &curve->nlarger,
				 (struct gf_cost_line){(size_t)f->from_bytes[i],
						       f->lines[i].startup_s,
						       f->lines[i].per_byte_s, NULL});
}

int gf_measure_fit(struct gf_measure_curve *curve, size_t lines, struct gf_error *err)
{
	struct gf_fit *fit = &curve->fit;
	double *sizes = gf_xcalloc(fit->npoints + 1, sizeof(*sizes));
	struct gf_fit_points points = {sizes, fit->time_s, fit->npoints};
	struct gf_lines_fit f;
	size_t i;
	int rc;

	for (i = 0; i < fit->npoints; i++)
		sizes[i] = (double)fit->size_bytes[i];
	rc = gf_fit_lines(&points, lines, &f, err);
	if (rc == 0) {
		take_lines(curve, &f);
		fit->r_squared = f.r_squared;
		fit->residual_rms = f.residual_rms;
		fit->residual_max = f.residual_max;
	}
	free(sizes);
	return rc;
}

/* One message of that size, once. */
static int look_at(const struct gf_measure_subject *subject, size_t bytes, double *time_s,
		   struct gf_error *err)
{
	struct gf_measure_sitting once = {bytes, 1, 1, {0, 1, 1}};
	struct gf_measure_samples samples = {0};
	int rc = subject->sit(subject->ctx, &once, &samples, err);

	if (rc == 0)
		*time_s = gf_stat_median(samples.values, samples.count);
	gf_measure_samples_release(&samples);
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

static void summarise(struct gf_fit *fit, size_t i, struct gf_measure_samples *s, int chain)
{
	fit->time_s[i] = gf_stat_median(s->values, s->count) / chain;
	fit->spread_s[i] = gf_stat_spread(s->values, s->count) / chain;
}

/* The points of an empty fit, which takes the sizes. */
static int measure_points(const struct gf_measure_curve_config *c,
			  const struct gf_measure_subject *subject,
			  const struct gf_measure_pace *pace, const struct gf_measure_sweep *sweep,
			  struct gf_fit *fit, struct gf_error *err)
{
	struct gf_measure_samples *samples = gf_xcalloc(sweep->count, sizeof(*samples));
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
		if (rc == 0)
			summarise(fit, i, &samples[i], gf_measure_chain(pace, fit->size_bytes[i]));
		gf_measure_samples_release(&samples[i]);
	}
	free(samples);
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
		     const struct gf_measure_subject *subject, struct gf_measure_curve *curve,
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
	if (rc == 0)
		rc = gf_measure_fit(curve, c->lines, err);
	if (rc == 0 && c->progress)
		c->progress(c->progress_ctx, sweep_share);
	if (rc == 0 && c->lanes > 1)
		rc = gf_measure_contention(c, subject, pace.sitting_s, curve, err);
	if (rc < 0)
		gf_measure_curve_release(curve);
	return rc;
}

void gf_measure_curve_release(struct gf_measure_curve *curve)
{
	size_t i;

	free(curve->larger);
	free(curve->fit.size_bytes);
	free(curve->fit.time_s);
	free(curve->fit.spread_s);
	for (i = 0; i < curve->contention.nentries; i++)
		free(curve->contention.entries[i].gamma);
	free(curve->contention.entries);
	memset(curve, 0, sizeof(*curve));
}
