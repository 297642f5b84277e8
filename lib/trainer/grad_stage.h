/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_GRAD_STAGE_H
#define GF_TRAINER_GRAD_STAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cuda/gpu.h"

/*
 * The way of gradients from a GPU to the host, where the engine
 *(runtime/engine/engine.h) exchanges them, and of parameters back. Several
 *ranks may use one GPU so.
 *
 * Each gradient is copied as soon as its kernels have ended, on a stream of its
 * own, so that the copies overlap the rest of backward and the messages that
 * are already under way. Parameters go up piece by piece while the update of
 * the next pieces is computed. Long copies are cut, so that those of other
 * ranks and of inputs come in between.
 *
 *	gf_stage_down(s, tensor, &err) ...	// its kernels are enqueued
 *	gf_stage_flush(s, &err);		// backward is
 *	while (gf_stage_arrived(s, &tensor, &err) == 1) ...
 *	gf_stage_up(s, first, count, &err) ...	// these are updated
 *	gf_stage_join(s, &err);			// the compute stream waits
 *
 * Down never waits on the host; arrived does, for gradients alone. An update
 * may write the host's parameters when all gradients of a later pass have
 * arrived: then nothing reads them any more. One thread.
 */
struct gf_grad_stage;

struct gf_stage_config {
	struct gf_gpu *gpu; /* all borrowed */
	struct gf_gpu_stream *compute;
	const size_t *offsets; /* ntensors + 1; copied */
	size_t ntensors;
	float *grads, *params; /* the device's */
	const float *host_params;
	size_t piece_bytes; /* 0: a good size */
	double timeout_s;   /* for a gradient to arrive; 0: no limit */
};

int gf_stage_new(const struct gf_stage_config *config, struct gf_grad_stage **s,
		 struct gf_error *err);
/* NULL is allowed. Work that is enqueued ends first. */
void gf_stage_free(struct gf_grad_stage *s);

/* The host memory that the following gradients go to. */
void gf_stage_to(struct gf_grad_stage *s, float *host_grads);
int gf_stage_down(struct gf_grad_stage *s, size_t tensor, struct gf_error *err);
int gf_stage_flush(struct gf_grad_stage *s, struct gf_error *err);
/* 1: the next one, in the order of down, lies on the host; 0: all have come; or a negative errno:
 * -ETIMEDOUT. */
int gf_stage_arrived(struct gf_grad_stage *s, size_t *tensor, struct gf_error *err);
/* gf_stage_arrived without waiting: 0 also if the next one has not come yet. */
int gf_stage_look(struct gf_grad_stage *s, size_t *tensor, struct gf_error *err);

/* Parameters first to first + count - 1 have new values. Neighbours are gathered until they are
 * worth a copy. */
int gf_stage_up(struct gf_grad_stage *s, size_t first, size_t count, struct gf_error *err);
/* Uploads the gathered parameters; work that is enqueued on the compute stream from now on sees all
 * of them. */
int gf_stage_join(struct gf_grad_stage *s, struct gf_error *err);

#endif
