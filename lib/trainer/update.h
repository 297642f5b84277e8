/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_UPDATE_H
#define GF_TRAINER_UPDATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "doc/models/model.h"
#include "doc/plan.h"
#include "trainer/optim/optimizer.h"
#include "compressors/sums.h"
#include "checkpoints/state.h"
#include "cuda/gpu.h"

/*
 * An optimiser's step on a GPU: the update rule and exclusions of one on the host
 * (trainer/optim/optimizer.h), whose arrays of state are the copy that checkpoints are made of. SGD
 * and AdamW come to the same bits; LARS, and clipping, add their norms up in another order, the
 * same on every GPU.
 */
struct gf_train_update {
	struct gf_gpu *gpu; /* borrowed, like the next two */
	struct gf_gpu_stream *stream;
	struct gf_optimizer *host;
	void *slots[GF_OPTIM_SLOTS]; /* the device's */
	uint64_t *steps;             /* the device's count, if the optimiser counts */
	/* of the rule: lars has all of them */
	struct gf_gpu_tensors tensors;
	void *table, *work;
	/* of a norm to clip at: what the gradient is scaled by; else NULL */
	void *clip_work, *factor;
};

/* -ENOTSUP: there is no such update on GPUs; with `pieces` none of some of a gradient. */
int gf_train_update_check(const struct gf_optim_config *config, bool pieces, struct gf_error *err);

/*
 * The update rule: what a gradient does to the parameters, and what the optimiser remembers. How
 * gradients come together is the selection's business; the exchange calls one of the functions
 * below, once it has the sum over ranks. `scale` turns what it has into the mean.
 */
struct gf_update {
	float *params;                 /* borrowed, flat; NULL: a replay, no updates */
	struct gf_optimizer optimizer; /* own; of nothing in a replay */
	const size_t *offsets;         /* of the tensors, ntensors + 1; borrowed */
	const struct gf_plan *plan;    /* for names; borrowed */
	const struct gf_shape *shapes; /* of the tensors; borrowed */
	struct gf_optim_watch watch;   /* of params */
	/* The update that gf_update_sums enqueues if gradients lie on a GPU. Then params and the
	 * optimizer's state are copies. Else zeros. */
	struct gf_train_update device;
	float *device_params; /* borrowed */
};

/* Opens an update with all but the optimizer filled in. */
int gf_update_open(struct gf_update *u, const struct gf_optim_config *config, struct gf_error *err);
void gf_update_close(struct gf_update *u);
/* Called after open: from now on the update runs on the place's stream. */
int gf_update_on(struct gf_update *u, const struct gf_place *place, struct gf_error *err);
/* Wait for the device, if there is one: params and state to the host's copies; state to the
 * device. */
int gf_update_fetch(struct gf_update *u, struct gf_error *err);
int gf_update_send(struct gf_update *u, struct gf_error *err);
void gf_update_state(struct gf_update *u, struct gf_state *s);

/* Before the gf_update_some of a step. */
void gf_update_begin(struct gf_update *u);
/* Updates elements first to first + count - 1, which are whole tensors; grad is the gradient of all
 * elements. */
void gf_update_some(struct gf_update *u, double lr, size_t first, size_t count, const float *grad,
		    float scale);
/* Updates by the sums of a step. With `pieces` it updates only their elements
 * (gf_optimizer_step_pieces): the others keep their velocity, GradientFlow's momentum correction.
 * On a device nothing changes if *skip, a word on the device, is not 0. NULL: the step is never
 * skipped. */
void gf_update_sums(struct gf_update *u, double lr, const struct gf_select_sums *sums, bool pieces,
		    const uint32_t *skip);

#endif
