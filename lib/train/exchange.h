/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_EXCHANGE_H
#define GF_TRAIN_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "comm/comm.h"
#include "doc/plan.h"
#include "doc/training.h"
#include "engine/engine.h"
#include "engine/pool.h"
#include "gpu/gpu.h"
#include "ckpt/state.h"
#include "train/update.h"

/*
 * Which of a step's gradients go out, and what becomes of the rest: the plan's
 * selection. An exchange owns a gradient pool per slot, the engine that moves
 * them, and what its selection remembers (residuals, histories, the chunks
 * chosen). One file each, one entry in exchange_registry.c.
 *
 * WHERE gradients lie: in the pools, or on a GPU (gf_exchange_device_check).
 * There backward writes to the device's one array of them, `take` has what is
 * wanted of each come to the host, and apply leaves the sums to an update that
 * is the device's, too. Pools are not used then. What a selection remembers
 * lies there as well: it takes a step up (`commit`) when that has ended, which
 * is before the next step's gradients are taken.
 *
 * It knows nothing of staleness: up to `depth` steps may be under way, each in
 * a slot; the method (train/method.h) decides which is applied when.
 */
struct gf_exchange_env {
	struct gf_comm *comm;       /* all borrowed */
	const struct gf_plan *plan; /* bound */
	size_t depth;               /* steps under way at once, >= 1 */
	size_t epoch_steps;         /* warm-up by epochs; 0: none here */
	double momentum;            /* the optimiser's */
	double timeout_s;
	struct gf_gpu *gpu; /* that pools are pinned for; NULL: none */
	/* Where gradients lie on it; NULL: they come to the pools. */
	float *device_grads;
	struct gf_gpu_stream *stream; /* that makes them */
	bool scaled; /* sums are of gradients times `scale` over the ranks, and
		      * come divided by it: means */
};

/* The first gradient that is infinite or not a number, the same on all
 * ranks. */
struct gf_exchange_bad {
	bool found;
	size_t tensor, element; /* of the tensor */
};

struct gf_exchange {
	const struct gf_exchange_ops *ops;
	struct gf_exchange_env env;
	struct gf_pool *pools;      /* depth */
	struct gf_work **plan_work; /* depth lists of the plan's messages */
	size_t nplan_work;
	double *scale; /* depth; set before the slot's step begins */
	struct gf_engine *engine;
	void *priv;
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

struct gf_exchange_ops {
	const char *name;        /* of gf_select_names */
	const char *description; /* one line */
	bool pieces; /* what is not exchanged is not updated either */
	/* Is there a reason not to run this plan? (optional) */
	int (*check)(const struct gf_plan *plan, struct gf_error *err);
	/* The selection's state; before the engine and on this rank alone.
	 * Fills `hooks` if it wants any. (optional) */
	int (*open)(struct gf_exchange *x, struct gf_engine_hooks *hooks,
		    struct gf_error *err);
	/* Begins step `step` (from 1) of the engine with its messages.
	 * (optional: the plan's) */
	void (*begin)(struct gf_exchange *x, size_t slot, size_t step);
	/* The messages of that step have come: is there a bad gradient? */
	struct gf_exchange_bad (*inspect)(struct gf_exchange *x, size_t slot);
	/* Applies them. */
	void (*apply)(struct gf_exchange *x, size_t slot, struct gf_update *u,
		      double lr);
	/* (optional) Both for one of the plan's messages alone, whole tensors,
	 * which has come: then messages may be applied one by one. */
	struct gf_exchange_bad (*inspect_message)(struct gf_exchange *x,
						  size_t slot, size_t message);
	void (*apply_message)(struct gf_exchange *x, size_t slot,
			      size_t message, struct gf_update *u, double lr);
	/* Times by the plan's messages, nmessages, of the step that was waited
	 * for last. (optional: they are the engine's) */
	void (*times)(const struct gf_exchange *x,
		      struct gf_message_times *times);
	/* Adds what must survive a stop. (optional) */
	void (*state)(struct gf_exchange *x, struct gf_state *s);
	/* A step that has come and is not applied goes into a checkpoint as the
	 * `age`-th: its values, laid out as the pool; what else apply wants of
	 * it goes into the state. After a resume those values are in the slot's
	 * pool again, and the rest comes from the state. (optional: the pool is
	 * all that apply wants) */
	void (*keep)(struct gf_exchange *x, size_t slot, size_t age,
		     float *values);
	void (*restore)(struct gf_exchange *x, size_t slot, size_t age);
	/* (optional, all four) Gradients may lie on a GPU. Enqueues on `s`,
	 * behind that tensor's gradient, what is wanted of it on the host, of
	 * the step begun last; on `s`, that the device's state takes up the
	 * step in that slot, which has ended and was taken last; and between
	 * steps: state to the host's copy, and back. */
	int (*take)(struct gf_exchange *x, struct gf_gpu_stream *s,
		    size_t tensor, struct gf_error *err);
	int (*commit)(struct gf_exchange *x, struct gf_gpu_stream *s,
		      size_t slot, struct gf_error *err);
	int (*fetch)(struct gf_exchange *x, struct gf_error *err);
	int (*send)(struct gf_exchange *x, struct gf_error *err);
	void (*close)(struct gf_exchange *x); /* (optional) */
};

extern const struct gf_exchange_ops *const gf_exchanges[]; /* NULL-ended */

/* The exchange of a plan's selection. */
const struct gf_exchange_ops *gf_exchange_find(const struct gf_plan *plan);

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
/* Before the sums of a step that has ended and is not bad are laid where its
 * gradients were. What fails is kept. */
void gf_exchange_commit(struct gf_exchange *x, size_t slot);
/* The device's state to the host's copy; every step has ended. */
int gf_exchange_fetch(struct gf_exchange *x, struct gf_error *err);
/* A message's f32 values, all of them. */
void gf_exchange_multiply(const struct gf_work *w, double by);
/* Waits for the oldest step under way; *slot is the one it is in. */
int gf_exchange_wait(struct gf_exchange *x, size_t *slot, struct gf_error *err);
/* Waits for one of the plan's messages of the oldest step under way: with
 * `gathered` for all of it, else for the reduce-scatter if it is split. */
int gf_exchange_wait_message(struct gf_exchange *x, size_t message,
			     bool gathered, struct gf_error *err);
/* The plan's nmessages. */
void gf_exchange_times(const struct gf_exchange *x,
		       struct gf_message_times *times);

/* A check for selections whose messages cannot be split into halves. */
int gf_exchange_check_whole(const struct gf_plan *plan, struct gf_error *err);

/* Of the pool's elements `first` to first + count - 1, whose values those are,
 * the first that is not finite. */
struct gf_exchange_bad gf_exchange_find_bad(const struct gf_pool *pool,
					    const float *values, size_t first,
					    size_t count);

#endif
