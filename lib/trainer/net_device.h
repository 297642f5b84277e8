/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_NET_DEVICE_H
#define GF_TRAINER_NET_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trainer/grad_stage.h"
#include "cuda/gpu.h"
#include "nn/net.h"
#include "trainer/computing.h"

/*
 * The arrays of a net that computes on a GPU (nn/net.h, on_device), and how they get there and
 * back: batches from pinned memory into two buffers in turn, so that one is copied while the other
 * is computed with; gradients and parameters by a stage (trainer/grad_stage.h), unless they stay.
 */
struct gf_train_device;

struct gf_train_device_config {
	struct gf_gpu *gpu; /* all borrowed */
	struct gf_gpu_stream *stream;
	const struct gf_model *model;
	float *params;         /* the host's, in whole pages */
	size_t values, labels; /* of the largest batch */
	double timeout_s;
	bool stays;        /* gradients do not go by the host, */
	size_t pools;      /* but lie in so many pools in turn; else 1 */
	size_t accumulate; /* micro-batches whose mean gradient goes */
	/* Passes are captured, and cut after these tensors' gradients (trainer/device_graphs.h);
	 * NULL: enqueued anew each time. */
	const bool *cut;
};

int gf_train_device_new(const struct gf_train_device_config *config, struct gf_train_device **d,
			struct gf_error *err);
/* NULL is allowed. Enqueued work ends first. */
void gf_train_device_free(struct gf_train_device *d);

/* Pinned memory for the largest batch, the device's own. */
#define GF_NET_DEVICE_ROOMS 2
struct gf_train_device_room {
	float *values;
	int32_t *labels;
};
struct gf_train_device_room gf_train_device_room(const struct gf_train_device *d, size_t i);

/* A batch, in one of the rooms, for the next pass. The passes over the batch before are enqueued;
 * it is copied beside them. On return *values and *labels are the device's; the room is the
 * caller's again once the batch is copied. */
struct gf_train_device_batch {
	const float *values;
	const int32_t *labels;
	size_t nvalues, nlabels;
};
int gf_train_device_input(struct gf_train_device *d, struct gf_train_device_batch *batch,
			  struct gf_error *err);

/* Waits until the batch that was input last is copied. */
int gf_train_device_copied(struct gf_train_device *d, struct gf_error *err);

struct gf_train_arrays gf_train_device_arrays(const struct gf_train_device *d);
/* The backend's forward, and the loss, of the batch that was input last. */
struct gf_train_device_pass {
	const struct gf_backend *backend;
	struct gf_net *net;
	struct gf_train_device_batch on; /* as input gave it back */
	size_t batch;                    /* samples */
	bool training;                   /* a backward follows, of */
	size_t part;                     /* this micro-batch */
};
int gf_train_device_forward(struct gf_train_device *d, const struct gf_train_device_pass *pass,
			    struct gf_error *err);
/* Passes that were captured are captured anew. Waits for the device. */
int gf_train_device_forget(struct gf_train_device *d, struct gf_error *err);
/* Backward of a pass whose micro-batch is not the last. `grads`: the step's, as of the last. */
int gf_train_device_early(struct gf_train_device *d, float *grads, struct gf_error *err);
/* Backward of the last micro-batch. Calls on_grad when the mean of all is in the host's `grads`. If
 * gradients stay, it does so when the mean is enqueued to be in `grads`, one of the pools. */
int gf_train_device_backward(struct gf_train_device *d, float *grads,
			     void (*on_grad)(void *ctx, size_t tensor), void *ctx,
			     struct gf_error *err);
/* Seconds that the last forward took on the device; after its backward. */
double gf_train_device_forward_s(const struct gf_train_device *d);

/* As struct gf_optim_watch wants it; the context is a gf_train_device. What fails shows in join. */
void gf_train_device_changed(void *d, size_t first, size_t count);
int gf_train_device_join(struct gf_train_device *d, struct gf_error *err);

/* Waits for the device: not inside a step. */
int gf_train_device_copy(struct gf_train_device *d, void *to, const void *from, size_t count,
			 enum gf_gpu_copy kind, struct gf_error *err);

#endif
