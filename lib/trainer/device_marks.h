/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_DEVICE_MARKS_H
#define GF_TRAINER_DEVICE_MARKS_H

#include <stddef.h>

#include "base/error.h"
#include "cuda/gpu.h"

/*
 * When the parts of a step began and ended on a device: timed events on the stream that computes,
 * of the step that is being enqueued and of the one before.
 */
enum gf_train_mark {
	GF_MARK_BEGUN,
	GF_MARK_FORWARD,
	GF_MARK_BACKWARD,
	GF_MARK_JOINED, /* every message has ended */
	GF_MARK_UPDATED,
	GF_MARKS
};

struct gf_train_marks {
	struct gf_gpu *gpu; /* borrowed */
	struct gf_gpu_stream *stream;
	struct gf_gpu_event *at[2][GF_MARKS]; /* step % 2 */
};

/* The durations of a step's parts, by the device's clock. */
struct gf_train_durations {
	double forward_s, backward_s, wait_s, update_s;
};

/* gpu and stream are the caller's. */
int gf_train_marks_open(struct gf_train_marks *k, struct gf_error *err);
void gf_train_marks_close(struct gf_train_marks *k);
/* Marks how far the stream is in the step. */
int gf_train_mark(struct gf_train_marks *k, size_t step, enum gf_train_mark mark,
		  struct gf_error *err);
/* Reads the durations of a step that has ended. */
int gf_train_marks_read(struct gf_train_marks *k, size_t step, struct gf_train_durations *d,
			struct gf_error *err);

#endif
