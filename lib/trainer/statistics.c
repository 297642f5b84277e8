/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/statistics.h"

#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "trainer/optim/optimizer.h"

#define EVERY 10
#define ELEMS ((size_t)GF_GRADIENT_PEAK_ELEMS)

/* A tensor's sums over the steps that were looked at. */
struct seen {
	size_t at;                    /* in the arrays of samples */
	size_t begin;                 /* in all gradients */
	size_t elems;                 /* that are kept of a step */
	double squares, zeros, peaks; /* of this rank's */
	/* Squares of the exact means, of the largest of them, and of what those applied are off. */
	double means, mean_peaks, errors;
};

struct gf_statistics {
	const struct gf_model_profile *model;
	struct seen *seen;
	float *own, *mean, *came;
	size_t nsamples;
	size_t step; /* 0: this one is not looked at */
	size_t steps, compared;
	bool has_come;
};

struct gf_statistics *gf_statistics_new(const struct gf_model_profile *model)
{
	struct gf_statistics *s = gf_xcalloc(1, sizeof(*s));
	size_t begin = 0;

	s->model = model;
	s->seen = gf_xcalloc(model->ntensors, sizeof(*s->seen));
	for (size_t i = 0; i < model->ntensors; i++) {
		const size_t count = model->tensors[i].count_elems;

		s->seen[i].at = s->nsamples;
		s->seen[i].begin = begin;
		s->seen[i].elems = count < ELEMS ? count : ELEMS;
		s->nsamples += s->seen[i].elems;
		begin += count;
	}
	s->own = gf_xcalloc(s->nsamples, sizeof(*s->own));
	s->mean = gf_xcalloc(s->nsamples, sizeof(*s->mean));
	s->came = gf_xcalloc(s->nsamples, sizeof(*s->came));
	return s;
}

void gf_statistics_free(struct gf_statistics *s)
{
	if (!s)
		return;
	free(s->seen);
	free(s->own);
	free(s->mean);
	free(s->came);
	free(s);
}

void gf_statistics_begin(struct gf_statistics *s, size_t step)
{
	if (!s)
		return;
	s->step = step % EVERY ? 0 : step;
	s->has_come = false;
}

/* The first element that is kept in this step: each looks at the next whole block. */
static size_t first_of(const struct gf_statistics *s, size_t tensor)
{
	const size_t blocks = s->model->tensors[tensor].count_elems / ELEMS;

	return s->seen[tensor].begin + (blocks ? s->step / EVERY % blocks * ELEMS : 0);
}

void gf_statistics_take(struct gf_statistics *s, size_t tensor, const float *gradients)
{
	if (s && s->step)
		memcpy(s->own + s->seen[tensor].at, gradients + first_of(s, tensor),
		       s->seen[tensor].elems * sizeof(*s->own));
}

void gf_statistics_came(struct gf_statistics *s, const struct gf_select_sums *sums)
{
	if (!s || !s->step)
		return;
	s->has_come = true;
	for (size_t t = 0; t < s->model->ntensors; t++)
		for (size_t i = 0; i < s->seen[t].elems; i++)
			s->came[s->seen[t].at + i] =
				sums->pieces->grad[first_of(s, t) + i] * sums->share;
}

static void add(const struct gf_statistics *s, struct seen *seen)
{
	double most = 0, mean_most = 0;

	for (size_t i = seen->at; i < seen->at + seen->elems; i++) {
		const double own = s->own[i], mean = s->mean[i], off = s->came[i] - mean;

		seen->squares += own * own;
		seen->zeros += own == 0;
		seen->means += mean * mean;
		seen->errors += s->has_come ? off * off : 0;
		most = fmax(most, fabs(own));
		mean_most = fmax(mean_most, fabs(mean));
	}
	seen->peaks += most * most;
	seen->mean_peaks += mean_most * mean_most;
}

int gf_statistics_meet(struct gf_statistics *s, struct gf_team *team, struct gf_error *err)
{
	int rc;

	if (!s || !s->step)
		return 0;
	rc = gf_team_mean(team, s->own, s->mean, s->nsamples, err);
	if (rc)
		return rc;
	/* a step that is skipped has such gradients */
	for (size_t i = 0; i < s->nsamples; i++)
		if (!isfinite(s->mean[i]))
			return 0;
	s->steps++;
	s->compared += s->has_come;
	for (size_t t = 0; t < s->model->ntensors; t++)
		add(s, &s->seen[t]);
	return 0;
}

/* Of `count` elements in all; sums: squares, zeros and peaks, the mean over ranks. */
static struct gf_gradient gradient(const struct seen *seen, const float *sums, double count,
				   double ranks)
{
	const double elems = (double)seen->elems, square = sums[0], mean = seen->means;
	struct gf_gradient g = {.zeros = sums[1] / count};

	if (!(square > 0))
		return g;
	g.rms = sqrt(square / count);
	g.peak = sqrt(elems * (sums[2] / square + (mean > 0 ? seen->mean_peaks / mean : 0)) / 2);
	if (ranks > 1)
		g.correlation = fmin(fmax((ranks * mean / square - 1) / (ranks - 1), -1), 1);
	return g;
}

/* The error of the means, and of the tensor that is off the most. */
static void compare(const struct gf_statistics *s, struct gf_statistics_result *r)
{
	double errors = 0, means = 0;

	for (size_t t = 0; t < s->model->ntensors; t++) {
		const struct seen *seen = &s->seen[t];
		const double weight =
			(double)s->model->tensors[t].count_elems / (double)seen->elems;
		const double off = seen->means > 0 ? sqrt(seen->errors / seen->means) : 0;

		errors += weight * seen->errors;
		means += weight * seen->means;
		if (off > r->most) {
			r->most = off;
			r->tensor = t;
		}
	}
	r->error = means > 0 ? sqrt(errors / means) : 0;
}

int gf_statistics_conclude(struct gf_statistics *s, struct gf_team *team,
			   struct gf_statistics_result *r, struct gf_error *err)
{
	const int ranks = team->workers ? team->workers : team->comm->ranks;
	const size_t n = s ? s->model->ntensors : 0;
	GF_FREED float *sums = NULL;
	int rc;

	*r = (struct gf_statistics_result){0};
	if (!s || !s->steps)
		return 0;
	sums = gf_xcalloc(3 * n, sizeof(*sums));
	for (size_t t = 0; t < n; t++) {
		sums[3 * t] = (float)s->seen[t].squares;
		sums[3 * t + 1] = (float)s->seen[t].zeros;
		sums[3 * t + 2] = (float)s->seen[t].peaks;
	}
	rc = gf_team_mean(team, sums, sums, 3 * n, err);
	if (rc)
		return rc;
	r->gradients = gf_xcalloc(n, sizeof(*r->gradients));
	for (size_t t = 0; t < n; t++)
		r->gradients[t] = gradient(&s->seen[t], &sums[3 * t],
					   (double)(s->steps * s->seen[t].elems), ranks);
	if (s->compared == s->steps)
		compare(s, r);
	return 0;
}
