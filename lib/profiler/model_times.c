/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/model_times.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "compressors/select.h"
#include "cost/stat.h"
#include "cuda/gpu.h"
#include "profiler/chain.h"
#include "trainer/optim/sgd.h"

/* --- the moments of a pass ---------------------------------------------- */

/*
 * The moments of a step's passes. One repeat is a row: the ends of forward and backward and each
 * gradient's moment, all from the start of forward, so that the slowest rank is found on the same
 * clock; and how long the update takes.
 *
 * Their source is the host's clock, or events that are enqueued between the kernels and read when
 * the pass has ended. Nothing in a pass waits for them.
 */
enum column {
	COLUMN_FORWARD,
	COLUMN_BACKWARD,
	COLUMN_UPDATE,
	COLUMN_TENSOR, /* the first; the others follow */
};

struct recorder {
	struct gf_measure_step *step;
	double start_s;
	struct gf_gpu_event *begun, **events; /* per column; NULL: the clock */
	struct gf_gpu_graph *graph;           /* the pass; NULL: not yet */
	size_t npasses;
	size_t width;
	double *row;
	int rc; /* the first failure within a pass */
	struct gf_error reason;
};

static void mark(struct recorder *r, size_t column)
{
	const struct gf_measure_step *s = r->step;

	if (!s->gpu)
		r->row[column] = gf_clock_s() - r->start_s;
	else if (!r->rc)
		r->rc = s->gpu->ops->record(s->gpu, r->events[column], s->stream, &r->reason);
}

static void record(void *ctx, size_t tensor)
{
	mark(ctx, COLUMN_TENSOR + tensor);
}

/* The events of a pass, when all have happened. */
static int read_events(struct recorder *r, struct gf_error *err)
{
	const struct gf_measure_step *s = r->step;
	int rc = r->rc;

	if (rc)
		*err = r->reason;
	rc = rc ?: s->gpu->ops->stream_sync(s->gpu, s->stream, err);
	for (size_t i = 0; i < r->width && rc == 0; i++)
		if (i != COLUMN_UPDATE || s->updates_there)
			rc = s->gpu->ops->event_s(s->gpu, r->begun, r->events[i], &r->row[i], err);
	return rc;
}

static int recorder_open(struct recorder *r, struct gf_measure_step *step, size_t width,
			 struct gf_error *err)
{
	const struct gf_gpu_ops *ops;
	int rc;

	*r = (struct recorder){.step = step, .width = width};
	if (!step->gpu)
		return 0;
	ops = step->gpu->ops;
	r->events = gf_xcalloc(width, sizeof(struct gf_gpu_event *));
	rc = ops->event_new(step->gpu, true, &r->begun, err);
	for (size_t i = 0; i < width && rc == 0; i++)
		rc = ops->event_new(step->gpu, true, &r->events[i], err);
	return rc;
}

static void recorder_close(struct recorder *r)
{
	struct gf_gpu *gpu = r->step->gpu;

	if (!gpu)
		return;
	for (size_t i = 0; i < r->width; i++)
		gpu->ops->event_free(gpu, r->events[i]);
	gpu->ops->graph_free(gpu, r->graph);
	gpu->ops->event_free(gpu, r->begun);
	free(r->events);
}

static int pass(struct recorder *r, float *grads, struct gf_error *err)
{
	struct gf_measure_step *step = r->step;
	int rc = 0;

	r->start_s = gf_clock_s();
	if (step->gpu)
		rc = step->gpu->ops->record(step->gpu, r->begun, step->stream, err);
	rc = rc ?: gf_measure_step_forward(step, err);
	mark(r, COLUMN_FORWARD);
	rc = rc ?: gf_measure_step_backward(step, grads, record, r, err);
	mark(r, COLUMN_BACKWARD);
	return rc;
}

/* As training does: the first pass prepares what a capture may not, the second is captured, with
 * its events. */
static int capture(struct recorder *r, float *grads, struct gf_error *err)
{
	const struct gf_measure_step *s = r->step;
	struct gf_error ignored;
	int ended, rc = s->gpu->ops->capture_begin(s->gpu, s->stream, err);

	if (rc)
		return rc;
	rc = pass(r, grads, err);
	ended = s->gpu->ops->capture_end(s->gpu, s->stream, &r->graph, rc ? &ignored : err);
	return rc ?: ended;
}

/* From the batch to the last gradient; grads: the host's. */
static int recorder_compute(struct recorder *r, float *grads, double *row, struct gf_error *err)
{
	const struct gf_measure_step *s = r->step;
	int rc = gf_measure_step_load(r->step, err);

	r->row = row;
	if (rc)
		return rc;
	if (!s->gpu || !s->gpu->ops->capture_begin || r->npasses++ == 0)
		return pass(r, grads, err);
	if (!r->graph)
		rc = capture(r, grads, err);
	return rc ?: s->gpu->ops->graph_launch(s->gpu, s->stream, r->graph, err);
}

/* Enqueued, where updates are on the device. */
static void update_there(struct gf_measure_step *s)
{
	const struct gf_sgd_step step = {
		.lr = (float)gf_sgd_between_passes.lr,
		.momentum = (float)gf_sgd_between_passes.momentum,
		.scale = 1,
	};

	s->gpu->kernels->sgd_f32(s->stream, &step, NULL, s->on_device.grads, s->on_device.params,
				 s->on_device.velocity, s->offsets[s->ntensors]);
}

/* The update, into the same row, which is then whole. */
static int recorder_update(struct recorder *r, const float *grads, struct gf_error *err)
{
	struct gf_measure_step *step = r->step;
	double start_s;
	int rc = 0;

	if (step->updates_there) {
		update_there(step);
		mark(r, COLUMN_UPDATE);
	}
	if (step->gpu)
		rc = read_events(r, err);
	if (rc < 0)
		return rc;
	if (step->updates_there) {
		r->row[COLUMN_UPDATE] -= r->row[COLUMN_BACKWARD];
		return 0;
	}
	start_s = gf_clock_s();
	/* as training looks at what has come */
	(void)gf_finite_prefix(grads, step->offsets[step->ntensors]);
	gf_sgd_update(&gf_sgd_between_passes, 1, grads, step->params, step->velocity,
		      step->offsets[step->ntensors]);
	r->row[COLUMN_UPDATE] = gf_clock_s() - start_s;
	return 0;
}

/* --- exchanges ------------------------------------------------------------ */

/* A longer gradient does not stay in a cache. During a longer pause other programs take the caches,
 * which counts little in a step of such a pause, but would count in all steps. */
static const size_t exchanged_elems = (size_t)512 << 10, fewest_elems = 1024;
static const double pause_s = 1e-3;

/* What ranks do together in a repeat, and where gradients lie. */
struct together {
	const struct gf_measure_compute *config;
	struct gf_measure_exchange exchange; /* if config->exchanges */
	float *grads, *own;                  /* grads is `own`, or the exchange's memory */
};

/* One that takes no longer than a pause. */
static int open_exchange(struct gf_measure_exchange *x, struct gf_measure_exchange_config *config,
			 struct gf_error *err)
{
	const struct gf_measure_budget once = {.low = 1, .high = 1};
	GF_RELEASED(gf_measure_samples_release) struct gf_measure_samples took = {0};
	int rc = gf_measure_exchange_open(x, config, err);
	double share;

	if (rc)
		return rc;
	rc = gf_measure_exchange_measure(x, &once, &took, err);
	share = rc ? 1 : pause_s / took.values[0];
	if (share >= 1 || config->count_elems <= fewest_elems)
		return rc;
	gf_measure_exchange_close(x);
	config->count_elems =
		(size_t)fmax((double)fewest_elems, share * (double)config->count_elems);
	return gf_measure_exchange_open(x, config, err);
}

static int open_together(struct together *t, const struct gf_measure_compute *config,
			 const struct gf_measure_step *step, struct gf_error *err)
{
	size_t n = step->offsets[step->ntensors];
	struct gf_measure_exchange_config exchange = {
		.comm = config->comm,
		.by = &(const struct gf_allreduce_cost){.algorithm = "ring"},
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

/* Before compute, or after it, where an exchange makes the ranks meet. */
static int meet(struct together *t, bool after, struct gf_error *err)
{
	if (t->config->exchanges)
		return after ? gf_measure_exchange_go(&t->exchange, err) : 0;
	return after ? 0 : gf_comm_barrier(t->config->comm, err);
}

/* --- repeats ------------------------------------------------------------ */

/* Every rank meets the others each time, failed or not (*rc), so that no rank is left waiting.
 * Returns whether meeting failed. */
static int measure_together(struct together *t, struct recorder *r, double *rows, int *rc,
			    struct gf_error *err)
{
	const struct gf_measure_compute *config = t->config;
	double all = config->warmup + config->repeats;
	struct gf_error ignored;
	int i, met = 0;

	for (i = -config->warmup; i < config->repeats && met == 0; i++) {
		double *row = rows + (i < 0 ? 0 : (size_t)i * r->width);

		met = meet(t, false, *rc < 0 ? &ignored : err);
		if (*rc == 0 && met == 0)
			*rc = recorder_compute(r, t->grads, row, err);
		if (met == 0)
			met = meet(t, true, *rc < 0 ? &ignored : err);
		if (*rc == 0 && met == 0)
			*rc = recorder_update(r, t->grads, err);
		if (config->progress)
			config->progress(config->progress_ctx, (i + 1 + config->warmup) / all,
					 "steps of the model");
	}
	return met;
}

static int measure(const struct gf_measure_compute *config, struct gf_measure_step *step,
		   double *rows, size_t width, double *repeat_s, struct gf_error *err)
{
	struct together together;
	struct recorder recorder;
	double began_s;
	int met = 0, rc = open_together(&together, config, step, err);

	if (rc == 0) {
		rc = recorder_open(&recorder, step, width, err);
		began_s = gf_clock_s();
		met = measure_together(&together, &recorder, rows, &rc, err);
		*repeat_s = (gf_clock_s() - began_s) / (config->warmup + config->repeats);
		recorder_close(&recorder);
	}
	if (together.exchange.exchange)
		gf_measure_exchange_close(&together.exchange);
	free(together.own);
	return met < 0 ? met : gf_comm_agree(config->comm, rc, err);
}

/* From forward's start to backward's. */
static void count_from_backward(double *rows, size_t width, size_t repeats)
{
	for (size_t i = 0; i < repeats; i++, rows += width) {
		rows[COLUMN_BACKWARD] -= rows[COLUMN_FORWARD];
		for (size_t k = COLUMN_TENSOR; k < width; k++)
			rows[k] -= rows[COLUMN_FORWARD];
	}
}

static double column(const double *rows, size_t width, size_t repeats, size_t index, double *spread)
{
	GF_FREED double *values = gf_xcalloc(repeats, sizeof(*values));

	for (size_t i = 0; i < repeats; i++)
		values[i] = rows[i * width + index];
	if (spread)
		*spread = gf_stat_spread(values, repeats);
	return gf_stat_median(values, repeats);
}

/* By the medians of the sittings. */
static double drift_of(const struct gf_measure_compute_times *t, size_t width)
{
	GF_FREED double *sums = gf_xcalloc(t->nsittings + 1, sizeof(*sums));

	for (size_t i = 0; i < t->nsittings; i++) {
		size_t from = t->first[i];
		size_t to = i + 1 < t->nsittings ? t->first[i + 1] : t->nrows;
		const double *rows = t->rows + from * width;

		sums[i] = column(rows, width, to - from, COLUMN_FORWARD, NULL) +
			  column(rows, width, to - from, COLUMN_BACKWARD, NULL) +
			  column(rows, width, to - from, COLUMN_UPDATE, NULL);
	}
	return t->nsittings > 1 ? fmin(gf_stat_next(sums, t->nsittings), 1) : 0;
}

/* Of a net, what it has for its layers. */
static void keep(const struct gf_measure_step *step, struct gf_model_profile *out)
{
	GF_FREED double *bytes = gf_xcalloc(step->model->nlayers, sizeof(*bytes));

	for (size_t l = 0; l < step->model->nlayers; l++) {
		struct gf_net_memory m = gf_net_layer_memory(step->net, l);

		bytes[l] = (double)(m.weights_bytes + m.activations_bytes + m.gradients_bytes);
	}
	gf_model_keep(step->model, bytes, out);
}

static void make_tensors(const struct gf_measure_step *step, struct gf_model_profile *out)
{
	GF_FREED size_t *order = gf_model_generation_order(step->model);

	out->tensors = gf_xcalloc(step->ntensors, sizeof(*out->tensors));
	out->ntensors = step->ntensors;
	for (size_t i = 0; i < step->ntensors; i++) {
		const struct gf_param *from = &step->model->params[order[i]];
		struct gf_tensor *t = &out->tensors[i];

		t->name = gf_xstrdup(from->name);
		t->count_elems = step->offsets[i + 1] - step->offsets[i];
		gf_tensor_set_shape(t, from->shape.dims, from->shape.rank);
		t->dtype = GF_F32;
		t->need_s = NAN;
	}
	keep(step, out);
}

static size_t width_of(const struct gf_measure_step *step)
{
	return COLUMN_TENSOR + step->ntensors;
}

void gf_measure_compute_conclude(const struct gf_measure_compute_times *t,
				 const struct gf_measure_step *step, struct gf_model_profile *out,
				 struct gf_measure_compute_spread *spread)
{
	size_t width = width_of(step), n = t->nrows, i;
	double latest = 0;

	if (!out->tensors)
		make_tensors(step, out);
	out->forward_s = column(t->rows, width, n, COLUMN_FORWARD, &spread->forward_s);
	out->backward_s = column(t->rows, width, n, COLUMN_BACKWARD, &spread->backward_s);
	out->update_s = column(t->rows, width, n, COLUMN_UPDATE, &spread->update_s);
	for (i = 0; i < step->ntensors; i++) {
		/* medians of sequences that do not decrease do not either, but for the last digit
		 * of the interpolation */
		latest = fmax(latest, column(t->rows, width, n, COLUMN_TENSOR + i, NULL));
		out->tensors[i].ready_s = latest;
	}
	out->backward_s = fmax(out->backward_s, latest);
	out->drift = drift_of(t, width);
}

int gf_measure_compute(const struct gf_measure_compute *config, struct gf_measure_step *step,
		       struct gf_measure_compute_times *t, struct gf_error *err)
{
	size_t width = width_of(step), repeats = (size_t)config->repeats;
	double *rows;
	int rc;

	t->rows = gf_xreallocarray(t->rows, (t->nrows + repeats) * width, sizeof(*t->rows));
	rows = t->rows + t->nrows * width;
	memset(rows, 0, repeats * width * sizeof(*rows));
	rc = measure(config, step, rows, width, &t->repeat_s, err);
	rc = rc ?: gf_measure_slowest(config->comm, rows, repeats * width, err);
	rc = rc ?: gf_measure_slowest(config->comm, &t->repeat_s, 1, err);
	if (rc < 0)
		return rc;
	count_from_backward(rows, width, repeats);
	t->first = gf_xreallocarray(t->first, t->nsittings + 1, sizeof(*t->first));
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
