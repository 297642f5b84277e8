/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROFILER_MODEL_TIMES_H
#define GF_PROFILER_MODEL_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rng.h"
#include "cuda/gpu.h"
#include "documents/models/model.h"
#include "documents/profile.h"
#include "nn/net.h"
#include "transport/comm.h"

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
		void *params, *input, *grads, *velocity, *labels;
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

/*
 * The model half of a profile: when backward has made each gradient.
 *
 * All ranks compute at the same time, as in training, and start each repeat together. A message can
 * start when the last rank is ready, so the time of a repeat is the slowest rank's, tensor by
 * tensor; the profile holds the medians of those over the repeats of all sittings. A machine's
 * speed changes from second to second, so sittings apart from each other tell more than one.
 */
struct gf_measure_compute {
	struct gf_comm *comm; /* one rank: nothing is exchanged */
	int warmup, repeats;  /* of a sitting; repeats >= 1 */
	/* Gradients are on the host, and ranks exchange them before the update, as in training.
	 * Compute is slower after that: it has waited, and another thread has touched its
	 * memory. */
	bool exchanges;
	int threads;      /* that compute, per rank */
	double timeout_s; /* of exchanges without progress; 0: none */
	/* (optional) told after each repeat, for a progress bar */
	void (*progress)(void *ctx, double fraction, const char *what);
	void *progress_ctx;
};

/* Of all sittings; the same on all ranks. Zero-initialise. */
struct gf_measure_compute_times {
	double *rows; /* one per repeat */
	size_t nrows;
	size_t *first; /* nsittings: their first rows */
	size_t nsittings;
	double repeat_s; /* of the last sitting: all of a repeat, about */
};
void gf_measure_compute_release(struct gf_measure_compute_times *t);

/* Interquartile ranges over the repeats. */
struct gf_measure_compute_spread {
	double forward_s, backward_s, update_s;
};

/* Collective: one sitting, whose repeats are added. All ranks return alike. */
int gf_measure_compute(const struct gf_measure_compute *config, struct gf_measure_step *step,
		       struct gf_measure_compute_times *t, struct gf_error *err);
/* Fills forward_s, backward_s, update_s, drift and the tensors (allocated if there are none, in
 * generation order) of a profile; need_s of new ones is unknown. There has been a sitting. */
void gf_measure_compute_conclude(const struct gf_measure_compute_times *t,
				 const struct gf_measure_step *step, struct gf_model_profile *out,
				 struct gf_measure_compute_spread *spread);

#endif
