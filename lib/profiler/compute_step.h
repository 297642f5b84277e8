/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROFILER_COMPUTE_STEP_H
#define GF_PROFILER_COMPUTE_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rng.h"
#include "cuda/gpu.h"
#include "documents/models/model.h"
#include "nn/net.h"

/*
 * The compute part of a training step, made of the same pieces as gf-train's: samples, forward,
 * loss and backward. An SGD update of all tensors follows where gf-train has one. The samples are
 * random numbers of the model's shape; how long dense layers take does not depend on their values.
 */
struct gf_measure_step {
	const struct gf_model *model;
	const struct gf_backend *backend;
	size_t batch;
	struct gf_net *net;
	struct gf_rng rng;
	size_t batch_elems;
	size_t vocabulary; /* samples are numbers below it; 0: in [0, 1) */
	float *params, *velocity, *input;
	int32_t *labels;
	/* For a backend on a device (nn/net.h): the device that it computes on, and its arrays in
	 * place of those above. */
	struct gf_gpu *gpu;
	struct gf_gpu_stream *stream;
	bool updates_there;
	struct gf_measure_step_arrays {
		float *params, *input, *grads, *velocity;
		int32_t *labels;
	} on_device;
	size_t *offsets; /* ntensors + 1, in elements, generation order */
	size_t ntensors;
};

struct gf_measure_step_config {
	const struct gf_model *model; /* all borrowed */
	const struct gf_backend *backend;
	size_t batch;
	int threads; /* of the host; 0: OpenMP's environment's */
	enum gf_dtype precision;
	struct gf_gpu *gpu; /* for a backend on a device */
	bool updates_there; /* by NCCL gradients never leave it */
};

/* -ENOTSUP, -EINVAL: the backend cannot compute the model. */
int gf_measure_step_open(struct gf_measure_step *s, const struct gf_measure_step_config *config,
			 struct gf_error *err);
void gf_measure_step_close(struct gf_measure_step *s);

/* Fetches samples: what gf-train does before a step's clock starts. */
int gf_measure_step_load(struct gf_measure_step *s, struct gf_error *err);
/* Forward and loss. */
int gf_measure_step_forward(struct gf_measure_step *s, struct gf_error *err);
/* grads: the host's; on a device they stay there. */
int gf_measure_step_backward(struct gf_measure_step *s, float *grads,
			     void (*on_grad)(void *ctx, size_t tensor), void *ctx,
			     struct gf_error *err);

#endif
