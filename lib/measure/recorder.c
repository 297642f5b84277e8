/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/model_times.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/heap.h"
#include "gpu/gpu.h"

static void mark(struct gf_measure_recorder *r, size_t column)
{
	const struct gf_measure_step *s = r->step;

	if (!s->gpu)
		r->row[column] = gf_clock_s() - r->start_s;
	else if (!r->rc)
		r->rc = s->gpu->ops->record(s->gpu, r->events[column],
					    s->stream, &r->reason);
}

static void record(void *ctx, size_t tensor)
{
	mark(ctx, GF_COLUMN_TENSOR + tensor);
}

static int begin(struct gf_measure_recorder *r, struct gf_error *err)
{
	const struct gf_measure_step *s = r->step;

	r->start_s = gf_clock_s();
	return s->gpu ? s->gpu->ops->record(s->gpu, r->begun, s->stream, err)
		      : 0;
}

/* The events of a pass, when all have happened. */
static int read_events(struct gf_measure_recorder *r, struct gf_error *err)
{
	const struct gf_measure_step *s = r->step;
	size_t i;
	int rc = r->rc;

	if (rc)
		*err = r->reason;
	if (rc == 0)
		rc = s->gpu->ops->stream_sync(s->gpu, s->stream, err);
	for (i = 0; i < r->width && rc == 0; i++)
		if (i != GF_COLUMN_UPDATE || s->updates_there)
			rc = s->gpu->ops->event_s(s->gpu, r->begun,
						  r->events[i], &r->row[i],
						  err);
	return rc;
}

int gf_measure_recorder_open(struct gf_measure_recorder *r,
			     struct gf_measure_step *step, size_t width,
			     struct gf_error *err)
{
	const struct gf_gpu_ops *ops;
	size_t i;
	int rc;

	*r = (struct gf_measure_recorder){.step = step, .width = width};
	if (!step->gpu)
		return 0;
	ops = step->gpu->ops;
	r->events = gf_xcalloc(width, sizeof(struct gf_gpu_event *));
	rc = ops->event_new(step->gpu, true, &r->begun, err);
	for (i = 0; i < width && rc == 0; i++)
		rc = ops->event_new(step->gpu, true, &r->events[i], err);
	return rc;
}

void gf_measure_recorder_close(struct gf_measure_recorder *r)
{
	struct gf_gpu *gpu = r->step->gpu;
	size_t i;

	if (!gpu)
		return;
	for (i = 0; i < r->width; i++)
		gpu->ops->event_free(gpu, r->events[i]);
	gpu->ops->graph_free(gpu, r->graph);
	gpu->ops->event_free(gpu, r->begun);
	free(r->events);
}

static int pass(struct gf_measure_recorder *r, float *grads,
		struct gf_error *err)
{
	struct gf_measure_step *step = r->step;
	int rc = begin(r, err);

	if (rc == 0)
		rc = gf_measure_step_forward(step, err);
	mark(r, GF_COLUMN_FORWARD);
	if (rc == 0)
		rc = gf_measure_step_backward(step, grads, record, r, err);
	mark(r, GF_COLUMN_BACKWARD);
	return rc;
}

/* As training does: the first pass prepares what a capture may not, the second
 * is captured, with its events. */
static int capture(struct gf_measure_recorder *r, float *grads,
		   struct gf_error *err)
{
	const struct gf_measure_step *s = r->step;
	struct gf_error ignored;
	int ended, rc = s->gpu->ops->capture_begin(s->gpu, s->stream, err);

	if (rc)
		return rc;
	rc = pass(r, grads, err);
	ended = s->gpu->ops->capture_end(s->gpu, s->stream, &r->graph,
					 rc ? &ignored : err);
	return rc ? rc : ended;
}

/* From the batch to the last gradient. */
int gf_measure_recorder_compute(struct gf_measure_recorder *r, float *grads,
				double *row, struct gf_error *err)
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
	return rc ? rc
		  : s->gpu->ops->graph_launch(s->gpu, s->stream, r->graph, err);
}

int gf_measure_recorder_update(struct gf_measure_recorder *r,
			       const float *grads, struct gf_error *err)
{
	struct gf_measure_step *step = r->step;
	double start_s;
	int rc = 0;

	if (step->updates_there) {
		gf_measure_step_update_there(step);
		mark(r, GF_COLUMN_UPDATE);
	}
	if (step->gpu)
		rc = read_events(r, err);
	if (rc < 0)
		return rc;
	if (step->updates_there) {
		r->row[GF_COLUMN_UPDATE] -= r->row[GF_COLUMN_BACKWARD];
		return 0;
	}
	start_s = gf_clock_s();
	gf_measure_step_update(step, grads);
	r->row[GF_COLUMN_UPDATE] = gf_clock_s() - start_s;
	return 0;
}
