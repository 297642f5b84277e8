/* SPDX-License-Identifier: BSD-3-Clause */
#include "imports/report/report.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "cost/stat.h"
#include "simulator/step.h"
#include "simulator/uncertainty.h"

/* Of a normal distribution. */
#define SPREAD_PER_DEVIATION 1.349

/*
 * A rank's times in a step, from the end of the step before: when each message was ready, then when
 * forward and backward ended.
 */
struct study {
	size_t nmessages, ntimes; /* nmessages + 2 */
	size_t nsteps, nranks;
	int lanes;
	double *times;   /* [(step * nranks + rank) * ntimes + i] */
	double *lasts_s; /* [step * nmessages + i]: how long message i took */
	double *noise_s; /* [i]: of a rank's time i, the standard deviation */
	/* room for one simulation */
	double *values; /* for medians: steps or ranks */
	struct gf_sim_message *messages;
	struct gf_predicted_message *predicted;
	struct gf_tensor *tensors;
};

static double *times_of(const struct study *s, size_t step, size_t rank)
{
	return s->times + (step * s->nranks + rank) * s->ntimes;
}

static double backward_s(const struct study *s, const double *times)
{
	return times[s->ntimes - 1];
}

/* --- what the traces say -------------------------------------------------- */

GF_ORDER(by_sequence, struct gf_import_job_message, GF_BY(x->sequence, y->sequence))

/* When all messages of the step had ended. */
static double end_s(const struct gf_import_job_rank *r, size_t step)
{
	const struct gf_import_job_step *s = &r->steps[step];
	double latest_s = -INFINITY;

	for (size_t i = 0; i < s->count; i++)
		latest_s = fmax(latest_s, r->messages[s->first + i].end_s);
	return latest_s;
}

/* The rank's steps that others have, too; `step + 1` of them is the study's step `step`. */
static int take_step(struct study *s, const struct gf_import_job_rank *r, size_t rank, size_t step,
		     struct gf_import_job_message *sorted, struct gf_error *err)
{
	const size_t before = r->nsteps - s->nsteps - 1 + step;
	const struct gf_import_job_step *of = &r->steps[before + 1];
	const double from_s = end_s(r, before);
	double *times = times_of(s, step, rank);
	size_t i;

	if (of[-1].count != s->nmessages)
		of--;
	if (of->count != s->nmessages)
		return gf_error_set(err, -EINVAL,
				    "want %zu messages in every step, found %zu in one of rank %d",
				    s->nmessages, of->count, r->rank);
	memcpy(sorted, &r->messages[of->first], of->count * sizeof(*sorted));
	qsort(sorted, of->count, sizeof(*sorted), by_sequence);
	for (i = 0; i < s->nmessages; i++)
		if (sorted[i].ranks && sorted[i].ranks != (int)s->nranks)
			return gf_error_set(err, -ENOTSUP,
					    "want messages of all %zu ranks, found one of %d",
					    s->nranks, sorted[i].ranks);
	for (i = 0; i < s->nmessages; i++) {
		double *lasts_s = &s->lasts_s[step * s->nmessages + i];

		times[i] = sorted[i].ready_s - from_s;
		*lasts_s = rank ? fmin(*lasts_s, sorted[i].end_s - sorted[i].start_s)
				: sorted[i].end_s - sorted[i].start_s;
	}
	times[i++] = of->forward_end_s - from_s;
	times[i] = of->backward_end_s - from_s;
	for (i = 0; i < s->ntimes; i++)
		if (isnan(times[i]))
			return gf_error_set(err, -EINVAL,
					    "want forward, backward and the instant at which each "
					    "message is ready in every step of rank %d",
					    r->rank);
	return 0;
}

static int take(struct study *s, const struct gf_import_job *job, struct gf_error *err)
{
	GF_FREED struct gf_import_job_message *sorted =
		gf_xcalloc(s->nmessages + 1, sizeof(*sorted));
	int rc = 0;

	for (size_t step = 0; step < s->nsteps && rc == 0; step++)
		for (size_t rank = 0; rank < s->nranks && rc == 0; rank++)
			rc = take_step(s, &job->ranks[rank], rank, step, sorted, err);
	return rc;
}

/* As many messages as a rank had under way at once, of so many in a row: no plan has as many
 * lanes. */
enum { IN_A_ROW = 64 };

static int lanes_of(const struct gf_import_job_rank *r)
{
	int most = 1, open;
	size_t i, k;

	for (i = 0; i < r->nmessages; i++) {
		for (open = 1, k = i; k-- > 0 && i - k < IN_A_ROW;)
			open += r->messages[k].end_s > r->messages[i].start_s;
		most = open > most ? open : most;
	}
	return most;
}

static int check(const struct gf_import_job *job, const struct gf_plan *p, struct study *s,
		 struct gf_error *err)
{
	if (job->nranks < 2 || (p && (size_t)p->ranks != job->nranks))
		return gf_error_set(err, -EINVAL,
				    "want the traces of all %d ranks%s, at least 2, found %zu",
				    p ? p->ranks : 2, p ? " of the plan" : "", job->nranks);
	s->nranks = job->nranks;
	s->nsteps = gf_import_job_steps(job);
	if (s->nsteps < 2)
		return gf_error_set(err, -EINVAL, "want at least 2 steps of every rank, found %zu",
				    s->nsteps);
	s->nsteps--;
	s->nmessages = job->ranks[0].steps[job->ranks[0].nsteps - s->nsteps - 1].count;
	if (s->nmessages == 0)
		return gf_error_set(err, -EINVAL, "want messages in every step, found none");
	s->ntimes = s->nmessages + 2;
	s->lanes = p ? p->lanes : lanes_of(&job->ranks[0]);
	if (p && !gf_period_has(&p->period, GF_PERIOD_EVERY))
		return gf_error_set(err, -ENOTSUP,
				    "want a plan without a period, whose groups do not wait for "
				    "each other, got %s",
				    gf_period_name(&p->period));
	if (p && p->staleness > 1)
		return gf_error_set(err, -ENOTSUP,
				    "want a plan without stale gradients, got a staleness of %d",
				    p->staleness);
	if (p && gf_plan_splits(p))
		return gf_error_set(err, -ENOTSUP, "want messages that are whole, got halves");
	return 0;
}

/* --- steps simulated again ------------------------------------------------ */

/* A step in which all ranks have these times, and messages take so long. */
static double step_s(struct study *s, const double *times, const double *lasts_s)
{
	size_t n = s->nmessages, i;
	double forward = times[n], ready = 0;
	struct gf_model_profile model = {
		.forward_s = forward, .overlap_slowdown = 1, .tensors = s->tensors, .ntensors = n};
	struct gf_sim_input in = {&model, s->messages, n, s->lanes, 0};
	struct gf_sim_result r = {.messages = s->predicted};

	for (i = 0; i < n; i++) {
		ready = fmax(ready, times[i] - forward);
		s->tensors[i].ready_s = ready;
		s->messages[i] = (struct gf_sim_message){
			.first = i,
			.last = i,
			.mode = s->lanes > 1 ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL,
			.startup_s = lasts_s[i],
		};
	}
	model.backward_s = fmax(ready, backward_s(s, times) - forward);
	gf_sim_step(&in, &r);
	return r.iteration_s;
}

/* Rank by rank, each time the latest. */
static void latest(const struct study *s, const double *times, double *out)
{
	for (size_t i = 0; i < s->ntimes; i++)
		out[i] = fmax(out[i], times[i]);
}

/* Time i of a rank; valid until the next call. */
static double *over_steps(const struct study *s, size_t rank, size_t i)
{
	for (size_t step = 0; step < s->nsteps; step++)
		s->values[step] = times_of(s, step, rank)[i];
	return s->values;
}

/* So many deviations hold the ranks of any job that differ by noise alone. */
static const double deviations = 6;

static void find_noise(struct study *s)
{
	GF_FREED double *of_ranks = gf_xcalloc(s->nranks, sizeof(*of_ranks));

	for (size_t i = 0; i < s->ntimes; i++) {
		for (size_t rank = 0; rank < s->nranks; rank++)
			of_ranks[rank] = gf_stat_spread(over_steps(s, rank, i), s->nsteps) /
					 SPREAD_PER_DEVIATION;
		s->noise_s[i] = gf_stat_median(of_ranks, s->nranks);
	}
}

/* A step of the ranks that are not late: the median of the times that are as early as the first but
 * for noise; of two, the first. */
static void prompt_rank(const struct study *s, size_t step, double *out)
{
	size_t i, rank, n;
	double within_s;

	for (i = 0; i < s->ntimes; i++) {
		for (rank = 0; rank < s->nranks; rank++)
			s->values[rank] = times_of(s, step, rank)[i];
		within_s = gf_stat_quantile(s->values, s->nranks, 0);
		within_s += deviations * s->noise_s[i] + GF_UNCERTAINTY_TIMES * fabs(within_s);
		for (n = 1; n < s->nranks && s->values[n] <= within_s; n++)
			;
		out[i] = s->values[(n - 1) / 2];
	}
}

/* Of one step, prompt and as it was, the time of compute when prompt, and what each rank costs. */
enum { WITHOUT, AS_IT_WAS, COMPUTE, COSTS };

static void look_at(struct study *s, size_t step, double *out)
{
	const double *lasts_s = s->lasts_s + step * s->nmessages;
	GF_FREED double *prompt = gf_xcalloc(2 * s->ntimes, sizeof(*prompt));
	double *now = prompt + s->ntimes;

	prompt_rank(s, step, prompt);
	out[WITHOUT] = step_s(s, prompt, lasts_s);
	out[COMPUTE] = backward_s(s, prompt);
	for (size_t rank = 0; rank < s->nranks; rank++) {
		memcpy(now, prompt, s->ntimes * sizeof(*now));
		latest(s, times_of(s, step, rank), now);
		out[COSTS + rank] = step_s(s, now, lasts_s) - out[WITHOUT];
	}
	for (size_t rank = 0; rank < s->nranks; rank++)
		latest(s, times_of(s, step, rank), now);
	out[AS_IT_WAS] = step_s(s, now, lasts_s);
}

/* Over steps. */
static double median_of(const struct study *s, const double *seen, size_t i)
{
	for (size_t step = 0; step < s->nsteps; step++)
		s->values[step] = seen[step * (COSTS + s->nranks) + i];
	return gf_stat_median(s->values, s->nsteps);
}

static void describe(const struct study *s, const double *seen, size_t rank,
		     struct gf_straggler *out)
{
	double *own_s = over_steps(s, rank, s->ntimes - 1);

	out->noise = gf_stat_spread(own_s, s->nsteps) / SPREAD_PER_DEVIATION /
		     fmax(gf_stat_median(own_s, s->nsteps), 1e-12);
	over_steps(s, rank, s->ntimes - 1);
	for (size_t step = 0; step < s->nsteps; step++)
		own_s[step] /= fmax(seen[step * (COSTS + s->nranks) + COMPUTE], 1e-12);
	out->factor = gf_stat_median(own_s, s->nsteps);
	out->cost_s = median_of(s, seen, COSTS + rank);
}

static void conclude(struct study *s, const struct gf_import_job *job, struct gf_stragglers *out)
{
	const size_t n = COSTS + s->nranks;
	GF_FREED double *seen = gf_xcalloc(s->nsteps * n, sizeof(*seen));

	find_noise(s);
	for (size_t i = 0; i < s->nsteps; i++)
		look_at(s, i, seen + i * n);
	out->without_s = median_of(s, seen, WITHOUT);
	out->iteration_s = median_of(s, seen, AS_IT_WAS);
	out->nranks = s->nranks;
	out->ranks = gf_xcalloc(s->nranks, sizeof(*out->ranks));
	for (size_t i = 0; i < s->nranks; i++) {
		out->ranks[i].rank = job->ranks[i].rank;
		describe(s, seen, i, &out->ranks[i]);
		if (out->ranks[i].cost_s > out->ranks[out->slowest].cost_s)
			out->slowest = i;
	}
}

int gf_stragglers_find(const struct gf_import_job *job, const struct gf_plan *p,
		       struct gf_stragglers *out, struct gf_error *err)
{
	struct study s = {0};
	size_t most, n;
	int rc = check(job, p, &s, err);

	memset(out, 0, sizeof(*out));
	if (rc < 0)
		return rc;
	n = s.nmessages;
	most = s.nsteps > s.nranks ? s.nsteps : s.nranks;
	s.times = gf_xcalloc(s.nsteps * s.nranks * s.ntimes, sizeof(*s.times));
	s.lasts_s = gf_xcalloc(s.nsteps * n, sizeof(*s.lasts_s));
	s.noise_s = gf_xcalloc(s.ntimes, sizeof(*s.noise_s));
	s.values = gf_xcalloc(most, sizeof(*s.values));
	s.messages = gf_xcalloc(n, sizeof(*s.messages));
	s.predicted = gf_xcalloc(n, sizeof(*s.predicted));
	s.tensors = gf_xcalloc(n, sizeof(*s.tensors));
	rc = take(&s, job, err);
	if (rc == 0)
		conclude(&s, job, out);
	free(s.times);
	free(s.lasts_s);
	free(s.noise_s);
	free(s.values);
	free(s.messages);
	free(s.predicted);
	free(s.tensors);
	return rc;
}

void gf_stragglers_release(struct gf_stragglers *s)
{
	free(s->ranks);
	memset(s, 0, sizeof(*s));
}
