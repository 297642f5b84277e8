/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_EXCHANGE_H
#define GF_TRAIN_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "comm/comm.h"
#include "doc/plan.h"
#include "doc/training.h"
#include "engine/engine.h"
#include "engine/pool.h"
#include "gpu/gpu.h"
#include "select/select.h"
#include "train/update.h"

/*
 * A selection (select/select.h) on the engine of the host: the gradient pools,
 * one for each step that may be under way, the engine that moves messages, and
 * the steps of both together.
 *
 * Where gradients lie on a GPU (gf_exchange_device_check), backward writes to
 * the device's one array of them, and gf_exchange_take has what is wanted of
 * each come to the host. What a selection remembers lies there as well: it
 * takes a step up when that has ended, before the next step's gradients are
 * taken.
 *
 * It knows nothing of staleness: the method (train/method.h) decides which step
 * is applied when.
 */
struct gf_exchange_env {
	struct gf_comm *comm;          /* all borrowed */
	const struct gf_plan *plan;    /* bound */
	const struct gf_shape *shapes; /* of the tensors; NULL: a replay */
	size_t depth;                  /* steps under way at once, >= 1 */
	size_t epoch_steps;            /* 0: a replay */
	double momentum;               /* the optimiser's */
	double timeout_s;
	struct gf_gpu *gpu; /* that pools are pinned for; NULL: none */
	/* Where gradients lie on it; NULL: they come to the pools. */
	float *device_grads;
	struct gf_gpu_stream *stream; /* that makes them */
	bool scaled;                  /* as struct gf_select_env */
};

struct gf_exchange {
	struct gf_exchange_env env;
	struct gf_pool *pools; /* depth */
	struct gf_selector select;
	struct gf_engine *engine;
	/* Gradients on a device: the step begun last is in `slot`, none of it
	 * taken yet if `fresh`; what remembers has not taken up the step in
	 * slot uncommitted - 1; 0: nothing to take up. */
	size_t slot, uncommitted;
	bool fresh;
	/* Of what was asked of a device: the first failure, which the next wait
	 * returns. */
	int rc;
	struct gf_error reason;
};

/* May a GPU's gradients be selected, and the update be done, where they lie?
 * -ENOTSUP says why they come to the host whole. */
int gf_exchange_device_check(const struct gf_plan *plan,
			     const struct gf_training *training,
			     struct gf_error *err);

/* Collective: returns after all ranks have agreed. */
int gf_exchange_open(struct gf_exchange *x, const struct gf_exchange_env *env,
		     struct gf_error *err);
/* Accepts one whose open failed. */
void gf_exchange_close(struct gf_exchange *x);

/* Where backward writes, unless gradients lie on a device. gf_engine_ready and
 * _backward_end follow. */
float *gf_exchange_begin(struct gf_exchange *x, size_t step);
/* As struct gf_stage_taker wants them, of gradients on a device: those of a
 * step may be taken when the steps before have ended. */
int gf_exchange_may_take(struct gf_exchange *x, bool wait, bool *now,
			 struct gf_error *err);
int gf_exchange_take(struct gf_exchange *x, struct gf_gpu_stream *s,
		     size_t tensor, struct gf_error *err);
/* The device's state to the host's copy; every step has ended. */
int gf_exchange_fetch(struct gf_exchange *x, struct gf_error *err);
/* Waits for the oldest step under way; *slot is the one it is in. */
int gf_exchange_wait(struct gf_exchange *x, size_t *slot, struct gf_error *err);
/* Waits for one of the plan's messages of the oldest step under way: with
 * `gathered` for all of it, else for the reduce-scatter if it is split. */
int gf_exchange_wait_message(struct gf_exchange *x, size_t message,
			     bool gathered, struct gf_error *err);
/* Times of the plan's messages in the step that was waited for last. */
void gf_exchange_times(const struct gf_exchange *x,
		       struct gf_message_times *times);
/* Updates parameters with the sums of a step that is not bad. A failure is
 * returned by the next wait. */
void gf_exchange_apply(struct gf_exchange *x, size_t slot, struct gf_update *u,
		       double lr);

#endif
