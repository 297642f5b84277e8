/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_RECORDER_H
#define GF_MEASURE_RECORDER_H

#include "measure/compute_step.h"

/*
 * The moments of a step's passes (private to model_times.c). One repeat is a
 * row: the ends of forward and backward and each gradient's moment, all from
 * the start of forward, so that the slowest rank is found on the same clock;
 * and how long the update takes.
 *
 * Their source is the host's clock, or events that are enqueued between the
 * kernels and read when the pass has ended. Nothing in a pass waits for them.
 */
enum gf_measure_column {
	GF_COLUMN_FORWARD,
	GF_COLUMN_BACKWARD,
	GF_COLUMN_UPDATE,
	GF_COLUMN_TENSOR, /* the first; the others follow */
};

struct gf_measure_recorder {
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

int gf_measure_recorder_open(struct gf_measure_recorder *r,
			     struct gf_measure_step *step, size_t width,
			     struct gf_error *err);
void gf_measure_recorder_close(struct gf_measure_recorder *r);

/* From the batch to the last gradient; grads: the host's. */
int gf_measure_recorder_compute(struct gf_measure_recorder *r, float *grads,
				double *row, struct gf_error *err);
/* The update, into the same row, which is then whole. */
int gf_measure_recorder_update(struct gf_measure_recorder *r,
			       const float *grads, struct gf_error *err);

#endif
