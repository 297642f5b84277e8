/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/compute.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/heap.h"
#include "bench/stat.h"

/*
 * One repeat is a row: the ends of forward and backward and each gradient's
 * moment, all from the start of forward, so that the slowest rank is found on
 * the same clock; and how long the update takes.
 */
enum { FORWARD, BACKWARD, UPDATE, FIRST_TENSOR };

struct recorder {
	double start_s;
	double *ready_s;
};

static void record(void *ctx, size_t tensor)
{
	struct recorder *r = ctx;

	r->ready_s[tensor] = gf_clock_s() - r->start_s;
}

static int repeat(struct gf_bench_step *step, float *grads, double *row,
		  struct gf_error *err)
{
	struct recorder recorder = {.ready_s = row + FIRST_TENSOR};
	int rc;

	gf_bench_step_load(step);
	recorder.start_s = gf_clock_s();
	rc = gf_bench_step_forward(step, err);
	row[FORWARD] = gf_clock_s() - recorder.start_s;
	if (rc == 0)
		rc = gf_bench_step_backward(step, grads, record, &recorder,
					    err);
	row[BACKWARD] = gf_clock_s() - recorder.start_s;
	if (rc < 0)
		return rc;
	gf_bench_step_update(step, grads);
	row[UPDATE] = gf_clock_s() - recorder.start_s - row[BACKWARD];
	return 0;
}

/* Every rank takes every barrier, failed or not: nobody is left waiting. */
static int measure(const struct gf_bench_compute *config,
		   struct gf_bench_step *step, double *rows, size_t width,
		   struct gf_error *err)
{
	float *grads =
		gf_xcalloc(step->offsets[step->ntensors], sizeof(*grads));
	int i, rc = 0, met = 0;

	for (i = -config->warmup; i < config->repeats && met == 0; i++) {
		double *row = rows + (i < 0 ? 0 : (size_t)i * width);

		met = gf_comm_barrier(config->comm, rc < 0 ? NULL : err);
		if (rc == 0 && met == 0)
			rc = repeat(step, grads, row, err);
	}
	free(grads);
	if (met < 0)
		return met;
	return gf_comm_agree(config->comm, rc, err);
}

/* Makes rows the element-wise maximum over ranks. */
static int slowest_rank(struct gf_comm *comm, double *rows, size_t count,
			struct gf_error *err)
{
	double *all = gf_xcalloc((size_t)comm->ranks * count, sizeof(*all));
	size_t r, i;
	int rc = gf_comm_allgather(comm, rows, count * sizeof(*rows), all, err);

	for (r = 0; rc == 0 && r < (size_t)comm->ranks; r++)
		for (i = 0; i < count; i++)
			rows[i] = fmax(rows[i], all[r * count + i]);
	free(all);
	return rc;
}

/* From forward's start to backward's. */
static void count_from_backward(double *rows, size_t width, size_t repeats)
{
	size_t i, k;

	for (i = 0; i < repeats; i++, rows += width) {
		rows[BACKWARD] -= rows[FORWARD];
		for (k = FIRST_TENSOR; k < width; k++)
			rows[k] -= rows[FORWARD];
	}
}

static double column(const double *rows, size_t width, size_t repeats,
		     size_t index, double *spread)
{
	double *values = gf_xcalloc(repeats, sizeof(*values)), median;
	size_t i;

	for (i = 0; i < repeats; i++)
		values[i] = rows[i * width + index];
	median = gf_stat_median(values, repeats);
	if (spread)
		*spread = gf_stat_spread(values, repeats);
	free(values);
	return median;
}

static void fill_tensors(const struct gf_bench_step *step, const double *rows,
			 size_t width, size_t repeats,
			 struct gf_model_profile *out)
{
	size_t *order = gf_model_generation_order(step->model);
	double latest = 0;
	size_t i;

	out->tensors = gf_xcalloc(step->ntensors, sizeof(*out->tensors));
	out->ntensors = step->ntensors;
	for (i = 0; i < step->ntensors; i++) {
		struct gf_tensor *t = &out->tensors[i];

		t->name = gf_xstrdup(step->model->params[order[i]].name);
		t->count_elems = step->offsets[i + 1] - step->offsets[i];
		t->dtype = GF_F32;
		/* medians of sequences that do not decrease do not either, but
		 * for the last digit of the interpolation */
		latest = fmax(latest, column(rows, width, repeats,
					     FIRST_TENSOR + i, NULL));
		t->ready_s = latest;
		t->need_s = NAN;
	}
	out->backward_s = fmax(out->backward_s, latest);
	free(order);
}

int gf_bench_compute(const struct gf_bench_compute *config,
		     struct gf_bench_step *step, struct gf_model_profile *out,
		     struct gf_bench_compute_spread *spread,
		     struct gf_error *err)
{
	size_t width = FIRST_TENSOR + step->ntensors;
	size_t repeats = (size_t)config->repeats;
	double *rows = gf_xcalloc(repeats * width, sizeof(*rows));
	int rc = measure(config, step, rows, width, err);

	if (rc == 0)
		rc = slowest_rank(config->comm, rows, repeats * width, err);
	if (rc == 0) {
		count_from_backward(rows, width, repeats);
		out->forward_s = column(rows, width, repeats, FORWARD,
					&spread->forward_s);
		out->backward_s = column(rows, width, repeats, BACKWARD,
					 &spread->backward_s);
		out->update_s =
			column(rows, width, repeats, UPDATE, &spread->update_s);
		fill_tensors(step, rows, width, repeats, out);
	}
	free(rows);
	return rc;
}
