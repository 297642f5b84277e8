/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/whatif/jitter.h"

#include <float.h>
#include <math.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/rng.h"
#include "simulator/pipeline.h"

/*
 * Newton's method on the lower half, where probabilities keep their digits, from the tail's
 * asymptote x = -sqrt(-2 ln p). The distribution is log-concave there: Newton on its logarithm
 * converges from any start.
 */
static double lower_half(double p)
{
	double x = -sqrt(fmax(-2 * log(2 * p), 0));

	for (int i = 0; i < 60; i++) {
		double c = 0.5 * erfc(-x / sqrt(2)); /* no cancellation in the left tail */
		double density = exp(-x * x / 2) / sqrt(2 * M_PI);
		double step = (log(c) - log(p)) * c / density;

		x -= step;
		if (fabs(step) <= 1e-15 * fmax(1, fabs(x)))
			break;
	}
	return x;
}

double gf_normal_largest(double u, double n)
{
	double below, above; /* of one deviate at the largest's quantile u */

	u = fmin(fmax(u, DBL_MIN), 1 - DBL_EPSILON / 2);
	below = exp(log(u) / n);
	above = -expm1(log(u) / n);
	return below <= 0.5 ? lower_half(below) : -lower_half(above);
}

/* More steps in flight than a picture of two steps can show. */
#define DRAWN_STALENESS 8
/* Steps of a pipeline before those that count. */
#define FILL_STEPS 64

/* The slowest rank of one run. */
static double draw(const struct gf_what_if *w, int ranks, struct gf_rng *rng)
{
	size_t others = (size_t)ranks - w->nslow, i;
	double most = 0, u = gf_rng_uniform(rng);

	if (others > 0)
		most = fmax(0, 1 + w->jitter * gf_normal_largest(u, (double)others));
	for (i = 0; i < w->nslow; i++)
		most = fmax(most, w->slow[i].factor * fmax(0, 1 + w->jitter * gf_rng_normal(rng)));
	return most;
}

/* One of the runs. */
struct sample {
	double time_s; /* first: `ascending` */
	double factor; /* the slowest rank's */
	size_t run;
};

/* Of samples, or of times alone. */
GF_ORDER(ascending, double, GF_BY(*x, *y))

/* The run that a share q of the sorted runs do not exceed. */
static size_t percentile(size_t n, double q)
{
	const size_t at = (size_t)ceil(q * (double)n);

	return at > 0 ? at - 1 : 0;
}

/* Sets least_s to mean_s, and sorts the times. */
static void spread(struct gf_outcome *o, double *times_s, size_t n)
{
	double sum = 0;

	qsort(times_s, n, sizeof(*times_s), ascending);
	for (size_t i = 0; i < n; i++)
		sum += times_s[i];
	o->mean_s = sum / (double)n;
	o->least_s = times_s[0];
	o->p50_s = times_s[percentile(n, 0.5)];
	o->p90_s = times_s[percentile(n, 0.9)];
	o->p99_s = times_s[percentile(n, 0.99)];
	o->most_s = times_s[n - 1];
}

GF_ORDER(by_factor, struct sample, GF_BY(x->factor, y->factor))

/* The messages without jitter; the caller frees. */
static struct gf_sim_message *keep_messages(const struct gf_traffic *t)
{
	return gf_xmemdup(t->messages, t->nmessages * sizeof(*t->messages));
}

/* With what delays a run, whichever ran before. Each half of a split message has half of its. */
static void delay_startups(struct gf_traffic *t, const struct gf_sim_message *kept,
			   const struct gf_what_if *w, uint64_t run)
{
	struct gf_rng rng;
	double late_s;

	if (!(w->network_jitter_s > 0))
		return;
	gf_rng_init(&rng, w->seed, 1 + run);
	for (size_t i = 0; i < t->nmessages; i++) {
		late_s = -w->network_jitter_s * log1p(-gf_rng_uniform(&rng));
		t->messages[i].startup_s = kept[i].startup_s + late_s;
		if (kept[i].half == GF_HALF_SPLIT)
			t->messages[i].gather_startup_s = kept[i].gather_startup_s + late_s / 2;
	}
}

/* Iterations by themselves, by the slowest rank's factor: known at both ends. More than `dear`
 * messages times lanes times runs take minutes, so between two runs that agree with the one halfway
 * the others are read off the line. */
struct alone {
	struct gf_variant *v;
	struct sample *samples; /* by factor */
	bool dear;
};
static const double dear = 3e8, agree = 1e-5;

static int run_one(struct alone *a, size_t i, struct gf_error *err)
{
	struct gf_sim_result r = {0};
	int rc = gf_variant_run(a->v, a->samples[i].factor, &r, err);

	a->samples[i].time_s = r.iteration_s;
	return rc;
}

static double between(const struct sample *low, const struct sample *high, double factor)
{
	double width = high->factor - low->factor;
	double share = width > 0 ? (factor - low->factor) / width : 0;

	return low->time_s + share * (high->time_s - low->time_s);
}

static int run_between(struct alone *a, size_t low, size_t high, struct gf_error *err)
{
	size_t middle = low + (high - low) / 2, i;
	struct sample *s = a->samples;
	double line_s = between(&s[low], &s[high], s[middle].factor);
	int rc;

	if (high - low < 2)
		return 0;
	rc = run_one(a, middle, err);
	if (rc == 0 && a->dear && fabs(s[middle].time_s - line_s) <= agree * line_s) {
		for (i = low + 1; i < high; i++)
			if (i != middle)
				s[i].time_s = between(&s[i < middle ? low : middle],
						      &s[i < middle ? middle : high], s[i].factor);
		return 0;
	}
	rc = rc ?: run_between(a, low, middle, err);
	return rc ?: run_between(a, middle, high, err);
}

/* Nothing is between two runs whose messages have other delays. The variant is left at the median
 * run's. */
static int run_delayed(struct alone *a, const struct gf_what_if *w, size_t runs,
		       struct gf_error *err)
{
	struct gf_traffic *t = &a->v->traffic;
	GF_FREED struct gf_sim_message *kept = keep_messages(t);
	int rc = 0;

	for (size_t i = 0; i < runs && rc == 0; i++) {
		delay_startups(t, kept, w, i);
		rc = run_one(a, i, err);
	}
	if (rc == 0) {
		qsort(a->samples, runs, sizeof(*a->samples), ascending);
		delay_startups(t, kept, w, a->samples[percentile(runs, 0.5)].run);
	}
	return rc;
}

/* Every iteration by itself. */
static int run_alone(struct gf_variant *v, const struct gf_what_if *w, struct sample *times,
		     size_t runs, struct gf_error *err)
{
	double messages = (double)v->traffic.nmessages;
	struct alone a = {v, times, messages * fmin(messages, v->plan.lanes) * (double)runs > dear};
	struct gf_rng rng;
	int rc;

	gf_rng_init(&rng, w->seed, 0);
	for (size_t i = 0; i < runs; i++) {
		times[i].factor = w->jitter > 0 ? draw(w, v->plan.ranks, &rng)
						: gf_what_if_slowest(w, v->plan.ranks);
		times[i].run = i;
	}
	if (w->network_jitter_s > 0)
		return run_delayed(&a, w, runs, err);
	qsort(times, runs, sizeof(*times), by_factor);
	rc = run_one(&a, 0, err);
	if (rc == 0 && runs > 1)
		rc = run_one(&a, runs - 1, err);
	return rc ?: run_between(&a, 0, runs - 1, err);
}

/* Every rank's factor, step after step. */
struct factors {
	const struct gf_what_if *w;
	int ranks;
	struct gf_rng rng;
	double *slow, *now; /* per rank */
};

static void factors_init(struct factors *f, const struct gf_what_if *w, int ranks)
{
	*f = (struct factors){
		.w = w,
		.ranks = ranks,
		.slow = gf_xcalloc((size_t)ranks, sizeof(*f->slow)),
		.now = gf_xcalloc((size_t)ranks, sizeof(*f->now)),
	};
	for (size_t i = 0; i < (size_t)ranks; i++)
		f->slow[i] = 1;
	for (size_t i = 0; i < w->nslow; i++)
		f->slow[w->slow[i].rank] = w->slow[i].factor;
	gf_rng_init(&f->rng, w->seed, 0);
}

static void factors_release(struct factors *f)
{
	free(f->slow);
	free(f->now);
}

/* Those of the next step, borrowed until the one after. */
static const double *next_factors(void *ctx)
{
	struct factors *f = ctx;

	for (int rank = 0; rank < f->ranks; rank++)
		f->now[rank] = f->slow[rank] * fmax(0, 1 + f->w->jitter * gf_rng_normal(&f->rng));
	return f->now;
}

/* A rank that is late in one step may make up for it in the next. */
static void run_steps(struct gf_variant *v, const struct gf_what_if *w, struct gf_pipeline *p,
		      struct sample *times, size_t runs)
{
	GF_FREED struct gf_sim_message *kept = keep_messages(&v->traffic);
	double before_s = 0;
	GF_RELEASED(factors_release) struct factors f = {0};

	factors_init(&f, w, v->plan.ranks);
	for (size_t i = 0; i <= FILL_STEPS + runs; i++) {
		double begun_s;

		delay_startups(&v->traffic, kept, w, i);
		begun_s = gf_pipeline_step(p, next_factors(&f));
		if (i > FILL_STEPS)
			times[i - FILL_STEPS - 1] = (struct sample){.time_s = begun_s - before_s,
								    .run = i - FILL_STEPS - 1};
		before_s = begun_s;
	}
}

static int run_pipeline(struct gf_variant *v, const struct gf_what_if *w, struct sample *times,
			size_t runs, struct gf_error *err)
{
	struct gf_sim_input in = gf_plan_input(&v->plan, &v->traffic);
	/* no exchange is waited for that so many steps do not reach */
	double steps = fmin(v->plan.staleness, (double)(FILL_STEPS + runs + 1));
	struct gf_sim_result alike = {0};
	GF_RELEASED(gf_pipeline_release) struct gf_pipeline p = {0};
	int rc = gf_variant_run(v, 1, &alike, err);

	if (rc < 0)
		return rc;
	gf_pipeline_init(&p, &in, (int)steps, v->plan.ranks);
	run_steps(v, w, &p, times, runs);
	return 0;
}

int gf_jitter_run(struct gf_variant *v, const struct gf_what_if *w, struct gf_outcome *out,
		  double *factor, struct gf_error *err)
{
	const bool varies = gf_what_if_varies(w);
	size_t runs = varies && w->runs > 1 ? w->runs : 1, i;
	GF_FREED struct sample *times = gf_xcalloc(runs, sizeof(*times));
	GF_FREED double *times_s = gf_xcalloc(runs, sizeof(*times_s));
	int rc = varies && v->plan.staleness > 1 ? run_pipeline(v, w, times, runs, err)
						 : run_alone(v, w, times, runs, err);

	for (i = 0; i < runs; i++)
		times_s[times[i].run] = times[i].time_s;
	if (rc == 0 && varies) {
		qsort(times, runs, sizeof(*times), ascending);
		spread(out, times_s, runs);
	}
	*factor = times[varies ? percentile(runs, 0.5) : 0].factor;
	return rc;
}

static const double *no_factors(void *ctx)
{
	return ctx;
}

void gf_jitter_draw(struct gf_variant *v, const struct gf_what_if *w, struct gf_gantt *t)
{
	struct gf_sim_input in = gf_plan_input(&v->plan, &v->traffic);
	int staleness = (int)fmin(v->plan.staleness, DRAWN_STALENESS);
	double alike = 1;
	GF_RELEASED(gf_pipeline_release) struct gf_pipeline p = {0};
	GF_RELEASED(factors_release) struct factors f = {0};

	gf_variant_scale(v, gf_what_if_varies(w) ? 1 : gf_what_if_slowest(w, v->plan.ranks));
	gf_pipeline_init(&p, &in, staleness, gf_what_if_varies(w) ? v->plan.ranks : 1);
	factors_init(&f, w, v->plan.ranks);
	if (gf_what_if_varies(w))
		gf_gantt_pipeline(t, &p, next_factors, &f);
	else
		gf_gantt_pipeline(t, &p, no_factors, &alike);
}
