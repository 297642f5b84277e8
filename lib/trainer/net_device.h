/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_NET_DEVICE_H
#define GF_TRAINER_NET_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cuda/gpu.h"
#include "nn/net.h"
#include "trainer/computing.h"

/*
 * The arrays of a net that computes on a GPU (nn/net.h, on_device), and how they get there and
 * back: batches from pinned memory into two buffers in turn, so that one is copied while the other
 * is computed with; gradients and parameters by a stage (below), unless they stay.
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
	/* Passes are captured, and cut after these tensors' gradients (below);
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

/* Waits for the device, also where there is nothing to copy: not inside a step. */
int gf_train_device_copy(struct gf_train_device *d, void *to, const void *from, size_t count,
			 enum gf_gpu_copy kind, struct gf_error *err);

/*
 * Passes as graphs (cuda/gpu.h): what costs the host a launch per kernel costs it one per piece. A
 * pass is cut where a gradient is needed outside, so that messages and copies, which no graph
 * holds, are enqueued in the same order and overlap the rest as without graphs: a piece is
 * launched, then its gradients are told of, then the next piece is.
 *
 * Passes of one key are the same: same addresses, same sizes. The first is enqueued as it is and
 * prepares what a capture may not; the second is captured, piece by piece, and each piece launched;
 * from the third on they are launched alone.
 */
struct gf_train_graphs;

struct gf_train_graphs_config {
	struct gf_gpu *gpu; /* both borrowed */
	struct gf_gpu_stream *stream;
	size_t keys;
	size_t ntensors;
	const bool *cut; /* per tensor: cut after its gradient; copied */
};

/* -ENOTSUP: this device captures nothing. */
int gf_train_graphs_new(const struct gf_train_graphs_config *config, struct gf_train_graphs **g,
			struct gf_error *err);
/* NULL is allowed. After the stream has ended. */
void gf_train_graphs_free(struct gf_train_graphs *g);

/* Passes have changed: what was captured is given up, and captured anew when it is run next. After
 * the stream has ended. */
void gf_train_graphs_forget(struct gf_train_graphs *g);

struct gf_train_pass {
	/* Enqueues the pass, and calls made(made_ctx, tensor) after each gradient; the failure of
	 * either is its own. */
	int (*run)(void *ctx, void (*made)(void *made_ctx, size_t tensor), void *made_ctx,
		   struct gf_error *err);
	/* Enqueues, outside the graphs, the work that follows a gradient. (optional) */
	void (*on_grad)(void *ctx, size_t tensor);
	void *ctx;
};

/* g may be NULL: enqueues the pass as it is. */
int gf_train_graphs_run(struct gf_train_graphs *g, size_t key, const struct gf_train_pass *pass,
			struct gf_error *err);

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
