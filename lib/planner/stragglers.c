/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/stragglers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"
#include "cost/stat.h"
#include "sim/step.h"

/* Of a normal distribution. */
#define SPREAD_PER_DEVIATION 1.349

/*
 * A rank's times in a step, from the update before it: when each gradient was
 * there, then when forward and backward ended.
 */
struct study {
	const struct gf_plan *plan;
	const char *file;
	size_t ntimes; /* ntensors + 2 */
	size_t nsteps, nranks;
	double *times;   /* [(step * nranks + rank) * ntimes + i] */
	double *lasts_s; /* [step * nmessages + i]: how long message i took */
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

/* --- what the trace says -------------------------------------------------- */

static int take_step(struct study *s, const struct gf_traced_rank *r,
		     size_t rank, size_t step, struct gf_error *err)
{
	const struct gf_traced_step *before = &r->steps[step];
	const struct gf_traced_step *of = &r->steps[step + 1];
	double *times = times_of(s, step, rank);
	size_t n = s->plan->model->ntensors, i;

	for (i = 0; i < n; i++)
		times[i] = of->ready_s[i] - before->update_start_s;
	times[n] = of->forward_end_s - before->update_start_s;
	times[n + 1] = of->backward_end_s - before->update_start_s;
	for (i = 0; i < s->ntimes; i++)
		if (isnan(times[i]))
			return gf_error_set(
				err, -EINVAL,
				"%s: want forward, backward, update and the "
				"instant at which each tensor is ready in "
				"every step of rank %d: is it a trace that "
				"gf-train made of this plan?",
				s->file, r->pid);
	return 0;
}

/* From the last rank's start to the last rank's end. */
static int take_messages(struct study *s, const struct gf_traced *t,
			 size_t step, struct gf_error *err)
{
	size_t n = s->plan->nmessages, i, rank;

	for (i = 0; i < n; i++) {
		double start_s = -INFINITY, end_s = -INFINITY;

		for (rank = 0; rank < s->nranks; rank++) {
			const struct gf_predicted_message *m =
				&t->ranks[rank].steps[step + 1].messages[i];

			if (isnan(m->end_s))
				return gf_error_set(
					err, -EINVAL,
					"%s: want message %zu in every step of "
					"rank %d, found none: is it a trace "
					"of this plan?",
					s->file, i, t->ranks[rank].pid);
			start_s = fmax(start_s, m->start_s);
			end_s = fmax(end_s, m->end_s);
		}
		s->lasts_s[step * n + i] = fmax(end_s - start_s, 0);
	}
	return 0;
}

static int take(struct study *s, const struct gf_traced *t,
		struct gf_error *err)
{
	size_t rank, step;
	int rc = 0;

	for (step = 0; step < s->nsteps && rc == 0; step++) {
		for (rank = 0; rank < s->nranks && rc == 0; rank++)
			rc = take_step(s, &t->ranks[rank], rank, step, err);
		if (rc == 0)
			rc = take_messages(s, t, step, err);
	}
	return rc;
}

static int check(const struct gf_plan *p, const char *file,
		 const struct gf_traced *t, size_t *nsteps,
		 struct gf_error *err)
{
	size_t i;

	if ((size_t)p->ranks != t->nranks || p->ranks < 2)
		return gf_error_set(err, -EINVAL,
				    "%s: want the trace of all %d ranks of the "
				    "plan, at least 2, found %zu",
				    file, p->ranks, t->nranks);
	*nsteps = t->ranks[0].nsteps;
	for (i = 1; i < t->nranks; i++)
		if (t->ranks[i].nsteps < *nsteps)
			*nsteps = t->ranks[i].nsteps;
	if (*nsteps < 2)
		return gf_error_set(err, -EINVAL,
				    "%s: want at least 2 steps of every rank, "
				    "found %zu",
				    file, *nsteps);
	if (p->staleness > 1)
		return gf_error_set(err, -ENOTSUP,
				    "want a plan without stale gradients, got "
				    "a staleness of %d",
				    p->staleness);
	for (i = 0; i < p->nmessages; i++)
		if (p->messages[i].half == GF_HALF_SPLIT)
			return gf_error_set(err, -ENOTSUP,
					    "want messages that are whole, got "
					    "halves");
	return 0;
}

/* --- steps simulated again ------------------------------------------------ */

/* A step in which all ranks have these times, and messages take so long. */
static double step_s(struct study *s, const double *times,
		     const double *lasts_s)
{
	const struct gf_plan *p = s->plan;
	size_t n = p->model->ntensors, i;
	double forward = times[n], ready = 0;
	struct gf_model_profile model = {.name = p->model->name,
					 .forward_s = forward,
					 .overlap_slowdown = 1,
					 .tensors = s->tensors,
					 .ntensors = n};
	struct gf_sim_input in = {&model, s->messages, p->nmessages, p->lanes};
	struct gf_sim_result r = {.messages = s->predicted};

	for (i = 0; i < n; i++) {
		ready = fmax(ready, times[i] - forward);
		s->tensors[i].ready_s = ready;
	}
	model.backward_s = fmax(ready, backward_s(s, times) - forward);
	for (i = 0; i < p->nmessages; i++)
		s->messages[i] = (struct gf_sim_message){
			.first = p->messages[i].first,
			.last = p->messages[i].last,
			.mode = p->messages[i].mode,
			.release = p->messages[i].release,
			.startup_s = lasts_s[i],
		};
	gf_sim_step(&in, &r);
	return r.iteration_s;
}

/* Rank by rank, each time the latest. */
static void latest(const struct study *s, const double *times, double *out)
{
	size_t i;

	for (i = 0; i < s->ntimes; i++)
		out[i] = fmax(out[i], times[i]);
}

/* Of a step, over ranks. */
static void median_rank(const struct study *s, size_t step, double *out)
{
	size_t i, rank;

	for (i = 0; i < s->ntimes; i++) {
		for (rank = 0; rank < s->nranks; rank++)
			s->values[rank] = times_of(s, step, rank)[i];
		out[i] = gf_stat_median(s->values, s->nranks);
	}
}

/* Of a rank, over steps. */
static void median_step(const struct study *s, size_t rank, double *out)
{
	size_t i, step;

	for (i = 0; i < s->ntimes; i++) {
		for (step = 0; step < s->nsteps; step++)
			s->values[step] = times_of(s, step, rank)[i];
		out[i] = gf_stat_median(s->values, s->nsteps);
	}
}

static double steady_s(struct study *s)
{
	double *all = gf_xcalloc(s->ntimes, sizeof(*all));
	double *own = gf_xcalloc(s->ntimes, sizeof(*own));
	size_t n = s->plan->nmessages, rank, step, i;
	double *lasts_s = gf_xcalloc(n + 1, sizeof(*lasts_s)), iteration_s;

	for (rank = 0; rank < s->nranks; rank++) {
		median_step(s, rank, own);
		latest(s, own, all);
	}
	for (i = 0; i < n; i++) {
		for (step = 0; step < s->nsteps; step++)
			s->values[step] = s->lasts_s[step * n + i];
		lasts_s[i] = gf_stat_median(s->values, s->nsteps);
	}
	iteration_s = step_s(s, all, lasts_s);
	free(all);
	free(own);
	free(lasts_s);
	return iteration_s;
}

/* Adds one step's share to what the ranks cost. */
static void cost(struct study *s, size_t step, struct gf_stragglers *out)
{
	const double *lasts_s = s->lasts_s + step * s->plan->nmessages;
	double *median = gf_xcalloc(s->ntimes, sizeof(*median));
	double *now = gf_xcalloc(s->ntimes, sizeof(*now));
	double share = 1 / (double)s->nsteps, without_s;
	size_t rank;

	median_rank(s, step, median);
	without_s = step_s(s, median, lasts_s);
	out->without_s += without_s * share;
	for (rank = 0; rank < s->nranks; rank++) {
		memcpy(now, median, s->ntimes * sizeof(*now));
		latest(s, times_of(s, step, rank), now);
		out->ranks[rank].cost_s +=
			(step_s(s, now, lasts_s) - without_s) * share;
	}
	for (rank = 0; rank < s->nranks; rank++)
		latest(s, times_of(s, step, rank), now);
	out->iteration_s += step_s(s, now, lasts_s) * share;
	free(median);
	free(now);
}

/* How much longer it computes, and how unevenly. */
static void describe(struct study *s, size_t rank, struct gf_straggler *out)
{
	double *ratios = gf_xcalloc(s->nsteps, sizeof(*ratios)), median_s;
	size_t step, other;

	for (step = 0; step < s->nsteps; step++) {
		for (other = 0; other < s->nranks; other++)
			s->values[other] =
				backward_s(s, times_of(s, step, other));
		median_s = gf_stat_median(s->values, s->nranks);
		ratios[step] = backward_s(s, times_of(s, step, rank)) /
			       fmax(median_s, 1e-12);
	}
	out->factor = gf_stat_median(ratios, s->nsteps);
	for (step = 0; step < s->nsteps; step++)
		s->values[step] = backward_s(s, times_of(s, step, rank));
	median_s = gf_stat_median(s->values, s->nsteps);
	out->noise = gf_stat_spread(s->values, s->nsteps) /
		     SPREAD_PER_DEVIATION / fmax(median_s, 1e-12);
	free(ratios);
}

/* The time from one update to the next. */
static double measured_s(const struct study *s, const struct gf_traced *t)
{
	const struct gf_traced_step *steps = t->ranks[0].steps;

	return (steps[s->nsteps].update_start_s - steps[0].update_start_s) /
	       (double)s->nsteps;
}

static int find(struct study *s, const struct gf_traced *t,
		struct gf_stragglers *out, struct gf_error *err)
{
	size_t i, most = s->nsteps > s->nranks ? s->nsteps : s->nranks;
	size_t n = s->plan->nmessages;
	int rc;

	s->times = gf_xcalloc(s->nsteps * s->nranks * s->ntimes,
			      sizeof(*s->times));
	s->lasts_s = gf_xcalloc(s->nsteps * n + 1, sizeof(*s->lasts_s));
	s->values = gf_xcalloc(most, sizeof(*s->values));
	s->messages = gf_xcalloc(n + 1, sizeof(*s->messages));
	s->predicted = gf_xcalloc(n + 1, sizeof(*s->predicted));
	s->tensors = gf_xcalloc(s->ntimes, sizeof(*s->tensors));
	rc = take(s, t, err);
	if (rc == 0) {
		out->nsteps = s->nsteps;
		out->nranks = s->nranks;
		out->ranks = gf_xcalloc(s->nranks, sizeof(*out->ranks));
		out->measured_s = measured_s(s, t);
		out->steady_s = steady_s(s);
		for (i = 0; i < s->nsteps; i++)
			cost(s, i, out);
	}
	for (i = 0; rc == 0 && i < s->nranks; i++) {
		out->ranks[i].rank = t->ranks[i].pid;
		describe(s, i, &out->ranks[i]);
		if (out->ranks[i].cost_s > out->ranks[out->slowest].cost_s)
			out->slowest = i;
	}
	free(s->times);
	free(s->lasts_s);
	free(s->values);
	free(s->messages);
	free(s->predicted);
	free(s->tensors);
	return rc;
}

int gf_stragglers_find(const struct gf_plan *p, const char *path,
		       struct gf_stragglers *out, struct gf_error *err)
{
	struct study s = {.plan = p,
			  .file = path,
			  .ntimes = p->model->ntensors + 2,
			  .nranks = (size_t)p->ranks};
	struct gf_traced traced = {0};
	char *text = NULL;
	size_t size = 0, nsteps = 0;
	int rc = gf_file_read(path, &text, &size, err);

	memset(out, 0, sizeof(*out));
	if (rc == 0)
		rc = gf_traced_read(text, size, path, p, &traced, err);
	free(text);
	if (rc == 0)
		rc = check(p, path, &traced, &nsteps, err);
	s.nsteps = nsteps - 1;
	if (rc == 0)
		rc = find(&s, &traced, out, err);
	gf_traced_release(&traced);
	return rc;
}

void gf_stragglers_release(struct gf_stragglers *s)
{
	free(s->ranks);
	memset(s, 0, sizeof(*s));
}
