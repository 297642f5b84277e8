/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_COMPUTING_H
#define GF_TRAINER_COMPUTING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "data/augment.h"
#include "data/dataset.h"
#include "documents/models/model.h"
#include "documents/plan.h"
#include "documents/profile.h"
#include "nn/net.h"
#include "trainer/optim/optimizer.h"

/*
 * The source of a step's gradients: a net that computes, or a replay that sleeps for the net's time
 * in a profile. The loop cannot tell.
 */
struct gf_compute {
	const struct gf_compute_ops *ops;
	void *priv;
	/* Called by both passes before they read a tensor, unless they compute on a device. The
	 * caller that wants these calls sets it. */
	void (*on_need)(void *ctx, size_t tensor);
	void *need_ctx;
};

struct gf_compute_ops {
	/* Fetches the samples of micro-batch `part` (from 0) of step `step` (from 1), the first of
	 * them before the step's clock starts: like gf-profile's, a step's time is without it. */
	int (*load)(struct gf_compute *c, size_t step, size_t part, struct gf_error *err);
	/* The loss scale of the passes that follow, whose gradients come without it; a step's
	 * before its first forward. (optional) */
	int (*scale)(struct gf_compute *c, double scale, struct gf_error *err);
	/* Forward and loss of this rank's batch; on a device they are merely begun. */
	int (*forward)(struct gf_compute *c, struct gf_error *err);
	/* Returns when all gradients lie in `grads`; of a net whose gradients stay on the device,
	 * when that is enqueued. */
	int (*backward)(struct gf_compute *c, float *grads,
			void (*on_grad)(void *ctx, size_t tensor), void *ctx, struct gf_error *err);
	/* Backward of a micro-batch before the step's last, with the `grads` of the last: gradients
	 * are added up where they are made, and backward then gives the mean of all. (optional: the
	 * caller adds up what backward gives) */
	int (*backward_early)(struct gf_compute *c, float *grads, struct gf_error *err);
	/* After it: the mean loss, and how many labels were told correctly. */
	int (*result)(struct gf_compute *c, double *loss, size_t *correct, struct gf_error *err);
	/* After backward: seconds that the last forward took. (optional: as long as the call) */
	double (*forward_s)(const struct gf_compute *c);
	/* The parameters have been updated. (optional) */
	int (*updated)(struct gf_compute *c, struct gf_error *err);
	/* After a failure: no thread of it reads samples any more. Its memory, which a device or a
	 * transport may yet use, stays. (optional) */
	void (*abandon)(struct gf_compute *c);
	void (*close)(struct gf_compute *c);
};

/* --- a net ---------------------------------------------------------------- */

struct gf_train_net_config {
	const struct gf_model *model; /* all borrowed */
	const struct gf_backend *backend;
	const struct gf_dataset *data;
	struct gf_augment augment;
	size_t loaders;     /* threads that fetch samples; 0: the usual */
	float *params;      /* in whole pages if there is a gpu */
	struct gf_gpu *gpu; /* of a backend on_device, and where it computes */
	struct gf_gpu_stream *stream;
	int threads;             /* of a net on the host; 0: OpenMP's choice */
	enum gf_dtype precision; /* that it computes in */
	bool in_place;           /* nn/net.h */
	double timeout_s;        /* for the gpu to end a pass */
	bool stays;              /* on the device: gradients, and the update of params */
	size_t pools;            /* of gradients that stay (trainer/net_device.h) */
	const bool *cut; /* on the device: of a captured pass, per tensor (trainer/net_device.h);
			  * NULL: none is */
	bool half;       /* that is f16, and wants the loss scale */
	size_t batch, accumulate; /* micro-batches of `batch` in a step */
	size_t test_samples;      /* data/loader.h */
	int ranks, rank; /* a rank after the last serves: it computes nothing, and its gradients,
			  * which nobody adds, are ready */
	uint64_t seed;
};

int gf_compute_net(const struct gf_train_net_config *config, struct gf_compute *c,
		   struct gf_error *err);

/* Running statistics of batch norm, this rank's own; *count may be 0. The host's: of a net on a
 * device they are as of the last fetch. */
float *gf_compute_running(struct gf_compute *c, size_t *count);
/* Between steps: what a device has changed beside gradients comes to the host, whose parameters it
 * has read then, so that they may be written; what was read into the host's arrays, parameters too,
 * goes to the device. */
int gf_compute_fetch(struct gf_compute *c, struct gf_error *err);
int gf_compute_send(struct gf_compute *c, struct gf_error *err);
/* The device's, all 0 on the host: parameters, the first pool of gradients, and the elements from
 * each pool to the next, a whole number of cache lines. */
struct gf_train_arrays {
	float *params, *grads;
	size_t stride;
};
struct gf_train_arrays gf_compute_arrays(const struct gf_compute *c);
/* The net's, by now. */
struct gf_net_memory gf_compute_memory(const struct gf_compute *c);
/* What of that is in the passes of tests alone, bytes; 0: a device's, which share it. */
size_t gf_compute_test_bytes(const struct gf_compute *c);
/* The watch that updates of params report to; an empty one if no report is needed. */
struct gf_optim_watch gf_compute_watch(struct gf_compute *c);

/* A test: the sum of the losses, and labels told correctly. */
struct gf_score {
	double loss;
	uint64_t correct;
};

/* This rank's share of the test part with the given running statistics. */
int gf_compute_test(struct gf_compute *c, const float *running, struct gf_score *score,
		    struct gf_error *err);

/* --- a replay --------------------------------------------------------------
 */

/* The times of the plan's model; batch for the record only. A server's gradients are ready at
 * once. */
void gf_compute_replay(const struct gf_plan *plan, bool serves, struct gf_compute *c);

#endif
