/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/model_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "cost/stat.h"
#include "measure/chain.h"

/* --- exchanges ------------------------------------------------------------ */

/* A longer gradient does not stay in a cache. During a longer pause other
 * programs take the caches, which counts little in a step of such a pause, but
 * would count in all steps. */
static const size_t exchanged_elems = (size_t)512 << 10, fewest_elems = 1024;
static const double pause_s = 1e-3;

/* What ranks do together in a repeat, and where gradients lie. */
struct together {
	const struct gf_measure_compute *config;
	struct gf_measure_exchange exchange; /* if config->exchanges */
	float *grads, *own; /* grads is `own`, or the exchange's memory */
};

/* One that takes no longer than a pause. */
static int open_exchange(struct gf_measure_exchange *x,
			 struct gf_measure_exchange_config *config,
			 struct gf_error *err)
{
	const struct gf_measure_budget once = {.low = 1, .high = 1};
	struct gf_measure_samples took = {0};
	int rc = gf_measure_exchange_open(x, config, err);
	double share;

	if (rc)
		return rc;
	rc = gf_measure_exchange_measure(x, &once, &took, err);
	share = rc ? 1 : pause_s / took.values[0];
	gf_measure_samples_release(&took);
	if (share >= 1 || config->count_elems <= fewest_elems)
		return rc;
	gf_measure_exchange_close(x);
	config->count_elems = (size_t)fmax((double)fewest_elems,
					   share * (double)config->count_elems);
	return gf_measure_exchange_open(x, config, err);
}

static int open_together(struct together *t,
			 const struct gf_measure_compute *config,
			 const struct gf_measure_step *step,
			 struct gf_error *err)
{
	size_t n = step->offsets[step->ntensors];
	struct gf_measure_exchange_config exchange = {
		.comm = config->comm,
		.algorithm = "ring",
		.count_elems = n < exchanged_elems ? n : exchanged_elems,
		.messages = 1,
		.lanes = 1,
		.compute_threads = config->threads,
		.timeout_s = config->timeout_s,
	};
	int rc = 0;

	*t = (struct together){.config = config};
	if (config->exchanges)
		rc = open_exchange(&t->exchange, &exchange, err);
	if (rc == 0 && config->exchanges && n == exchange.count_elems)
		t->grads = t->exchange.grads;
	else
		t->grads = t->own = gf_xcalloc(n, sizeof(*t->own));
	return rc;
}

static void close_together(struct together *t)
{
	if (t->exchange.exchange)
		gf_measure_exchange_close(&t->exchange);
	free(t->own);
}

/* Before compute, or after it, where an exchange makes the ranks meet. */
static int meet(struct together *t, bool after, struct gf_error *err)
{
	if (t->config->exchanges)
		return after ? gf_measure_exchange_go(&t->exchange, err) : 0;
	return after ? 0 : gf_comm_barrier(t->config->comm, err);
}

/* Every rank meets the others each time, failed or not (*rc), so that no rank
 * is left waiting. Returns whether meeting failed. */
static int measure_together(struct together *t, struct gf_measure_recorder *r,
			    double *rows, int *rc, struct gf_error *err)
{
	const struct gf_measure_compute *config = t->config;
	double all = config->warmup + config->repeats;
	struct gf_error ignored;
	int i, met = 0;

	for (i = -config->warmup; i < config->repeats && met == 0; i++) {
		double *row = rows + (i < 0 ? 0 : (size_t)i * r->width);

		met = meet(t, false, *rc < 0 ? &ignored : err);
		if (*rc == 0 && met == 0)
			*rc = gf_measure_recorder_compute(r, t->grads, row,
							  err);
		if (met == 0)
			met = meet(t, true, *rc < 0 ? &ignored : err);
		if (*rc == 0 && met == 0)
			*rc = gf_measure_recorder_update(r, t->grads, err);
		if (config->progress)
			config->progress(config->progress_ctx,
					 (i + 1 + config->warmup) / all,
					 "steps of the model");
	}
	return met;
}

static int measure(const struct gf_measure_compute *config,
		   struct gf_measure_step *step, double *rows, size_t width,
		   double *repeat_s, struct gf_error *err)
{
	struct together together;
	struct gf_measure_recorder recorder;
	double began_s;
	int met = 0, rc = open_together(&together, config, step, err);

	if (rc == 0) {
		rc = gf_measure_recorder_open(&recorder, step, width, err);
		began_s = gf_clock_s();
		met = measure_together(&together, &recorder, rows, &rc, err);
		*repeat_s = (gf_clock_s() - began_s) /
			    (config->warmup + config->repeats);
		gf_measure_recorder_close(&recorder);
	}
	close_together(&together);
	return met < 0 ? met : gf_comm_agree(config->comm, rc, err);
}

/* From forward's start to backward's. */
static void count_from_backward(double *rows, size_t width, size_t repeats)
{
	size_t i, k;

	for (i = 0; i < repeats; i++, rows += width) {
		rows[GF_COLUMN_BACKWARD] -= rows[GF_COLUMN_FORWARD];
		for (k = GF_COLUMN_TENSOR; k < width; k++)
			rows[k] -= rows[GF_COLUMN_FORWARD];
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

/* By the medians of the sittings. */
static double drift_of(const struct gf_measure_compute_times *t, size_t width)
{
	double *sums = gf_xcalloc(t->nsittings + 1, sizeof(*sums)), drift;
	size_t i;

	for (i = 0; i < t->nsittings; i++) {
		size_t from = t->first[i];
		size_t to = i + 1 < t->nsittings ? t->first[i + 1] : t->nrows;
		const double *rows = t->rows + from * width;

		sums[i] =
			column(rows, width, to - from, GF_COLUMN_FORWARD,
			       NULL) +
			column(rows, width, to - from, GF_COLUMN_BACKWARD,
			       NULL) +
			column(rows, width, to - from, GF_COLUMN_UPDATE, NULL);
	}
	drift = t->nsittings > 1 ? gf_stat_next(sums, t->nsittings) : 0;
	free(sums);
	return fmin(drift, 1);
}

static void make_tensors(const struct gf_measure_step *step,
			 struct gf_model_profile *out)
{
	size_t *order = gf_model_generation_order(step->model);
	size_t i;

	out->tensors = gf_xcalloc(step->ntensors, sizeof(*out->tensors));
	out->ntensors = step->ntensors;
	for (i = 0; i < step->ntensors; i++) {
		const struct gf_param *from = &step->model->params[order[i]];
		struct gf_tensor *t = &out->tensors[i];

		t->name = gf_xstrdup(from->name);
		t->count_elems = step->offsets[i + 1] - step->offsets[i];
		gf_tensor_set_shape(t, from->shape.dims, from->shape.rank);
		t->dtype = GF_F32;
		t->need_s = NAN;
	}
	free(order);
}

static size_t width_of(const struct gf_measure_step *step)
{
	return GF_COLUMN_TENSOR + step->ntensors;
}

void gf_measure_compute_conclude(const struct gf_measure_compute_times *t,
				 const struct gf_measure_step *step,
				 struct gf_model_profile *out,
				 struct gf_measure_compute_spread *spread)
{
	size_t width = width_of(step), n = t->nrows, i;
	double latest = 0;

	if (!out->tensors)
		make_tensors(step, out);
	out->forward_s = column(t->rows, width, n, GF_COLUMN_FORWARD,
				&spread->forward_s);
	out->backward_s = column(t->rows, width, n, GF_COLUMN_BACKWARD,
				 &spread->backward_s);
	out->update_s =
		column(t->rows, width, n, GF_COLUMN_UPDATE, &spread->update_s);
	for (i = 0; i < step->ntensors; i++) {
		/* medians of sequences that do not decrease do not either, but
		 * for the last digit of the interpolation */
		latest = fmax(latest, column(t->rows, width, n,
					     GF_COLUMN_TENSOR + i, NULL));
		out->tensors[i].ready_s = latest;
	}
	out->backward_s = fmax(out->backward_s, latest);
	out->drift = drift_of(t, width);
}

int gf_measure_compute(const struct gf_measure_compute *config,
		       struct gf_measure_step *step,
		       struct gf_measure_compute_times *t, struct gf_error *err)
{
	size_t width = width_of(step), repeats = (size_t)config->repeats;
	double *rows;
	int rc;

	t->rows = gf_xreallocarray(t->rows, (t->nrows + repeats) * width,
				   sizeof(*t->rows));
	rows = t->rows + t->nrows * width;
	memset(rows, 0, repeats * width * sizeof(*rows));
	rc = measure(config, step, rows, width, &t->repeat_s, err);
	if (rc == 0)
		rc = gf_measure_slowest(config->comm, rows, repeats * width,
					err);
	if (rc == 0)
		rc = gf_measure_slowest(config->comm, &t->repeat_s, 1, err);
	if (rc < 0)
		return rc;
	count_from_backward(rows, width, repeats);
	t->first =
		gf_xreallocarray(t->first, t->nsittings + 1, sizeof(*t->first));
	t->first[t->nsittings++] = t->nrows;
	t->nrows += repeats;
	return 0;
}

void gf_measure_compute_release(struct gf_measure_compute_times *t)
{
	free(t->rows);
	free(t->first);
	*t = (struct gf_measure_compute_times){0};
}
