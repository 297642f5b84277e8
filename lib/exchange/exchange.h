/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_EXCHANGE_EXCHANGE_H
#define GF_EXCHANGE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ckpt/state.h"
#include "comm/comm.h"
#include "doc/model.h"
#include "doc/plan.h"
#include "engine/engine.h"
#include "exchange/device_flags.h"
#include "exchange/memory.h"
#include "gpu/gpu.h"
#include "select/select.h"

/*
 * A plan's exchange without an optimiser: gradients go in, and their sums over
 * ranks come out. It is a selection (which gradients go, select/select.h), an
 * engine that moves its messages, and `staleness` K pools, since so many steps
 * may be under way. A training method (train/method.h) adds the update.
 *
 * A step, from the thread that computes:
 *	grads = gf_exchange_begin(x, step, scale);	// backward writes here
 *	gf_engine_ready(x->engine, tensor) ...
 *	gf_engine_backward_end(x->engine);
 *	gf_exchange_await(x, x->taken + 1, &err);	// the oldest has come
 *	gf_select_sums(&x->select, slot of x->taken, ...); x->taken++
 * Steps count from 1 over the whole run, also after a resume.
 *
 * CALLER'S MEMORY. With env.dtypes gradients lie where gf_memory_post says, and
 * their means come back there (exchange/memory.h). Then x->memory has them as
 * soon as their messages have come, and there are no sums to ask for.
 *
 * GPUS. With env.nccl gradients go from GPU to GPU and the host is ahead: what
 * a step sends may depend on how the one before has ended. So a step begins
 * without a list; before its first gradient is ready the caller asks what
 * became of the steps taken (gf_exchange_learn) and lists its messages
 * (gf_exchange_list). gf_exchange_join takes the place of gf_exchange_await.
 */
struct gf_exchange_env {
	struct gf_comm *comm;          /* borrowed */
	const struct gf_plan *plan;    /* bound, borrowed */
	const struct gf_shape *shapes; /* ntensors; NULL: a replay; borrowed
					* until gf_exchange_state */
	size_t epoch_steps;            /* 0: a replay */
	double momentum; /* the optimiser's, for selections that have it */
	bool scaled;     /* select/select.h, SCALED */
	double timeout_s;
	int threads; /* that compute on the host; 0: none, a replay */
	const enum gf_dtype *dtypes; /* CALLER'S MEMORY; NULL: the pools;
				      * borrowed during open */
	/* NULL: gradients are made on the host. Else the GPU's, on that
	 * stream: they go from GPU to GPU with nccl, or are selected there and
	 * go by the host, or come to the host whole. */
	struct gf_gpu *gpu;
	const struct gf_nccl_ops *nccl;
	bool selects_there;
	struct gf_gpu_stream *stream;
	bool graphs; /* engine/engine.h; not of CALLER'S MEMORY */
	/* The device's: whole, and over NCCL as often as steps are under way,
	 * each device_stride elements after the one before. */
	float *device_grads;
	size_t device_stride;
};

struct gf_exchange {
	struct gf_exchange_env env;
	struct gf_pool *pools; /* per slot; between GPUs theirs */
	struct gf_selector select;
	struct gf_memory memory;      /* with env.dtypes */
	struct gf_engine *engine;     /* for all else that communicates, too */
	struct gf_device_flags flags; /* between GPUs: which are bad */
	/* Steps of this process and those in flight that it began with: begun,
	 * whose messages were seen to end (by the host), taken by the caller,
	 * and of those, on a GPU, known how they ended. The i-th (from 0) is
	 * in slot (i + shift) % K. */
	size_t begun, arrived, taken, learnt, shift;
	size_t number, listed; /* of the step begun last: counted from 1; as
				* `begun`, when its messages were listed last */
	/* As of gf_exchange_settle: gradients that have come and wait to be
	 * taken, oldest first; K - 1 pools, zeros where there is none. */
	float *flight;
	uint64_t nflight;
	uint64_t *flight_bad; /* per age: is it bad; and its loss scale */
	double *flight_scale;
	size_t restored; /* the first so many steps' badness is known so */
	struct gf_message_times *times; /* per message of the plan */
	int rc; /* of what gives nothing back: the first failure */
	struct gf_error reason;
};

/* Steps under way at once; where the index-th is; elements of a pool. */
static inline size_t gf_exchange_depth(const struct gf_exchange *x)
{
	return (size_t)x->env.plan->staleness;
}
static inline size_t gf_exchange_slot(const struct gf_exchange *x, size_t index)
{
	return (index + x->shift) % gf_exchange_depth(x);
}
static inline size_t gf_exchange_elems(const struct gf_exchange *x)
{
	return x->pools[0].count_elems;
}

/* Collective: returns after all ranks have agreed. */
int gf_exchange_open(struct gf_exchange *x, const struct gf_exchange_env *env,
		     struct gf_error *err);
/* Accepts one whose open failed, and one that is all zero. Steps under way are
 * waited for: a rank that left would take the others' partner away. */
void gf_exchange_close(struct gf_exchange *x);
/* Adds what must survive a stop. */
void gf_exchange_state(struct gf_exchange *x, struct gf_state *s);

/* Returns the memory that backward writes to. */
float *gf_exchange_begin(struct gf_exchange *x, size_t step, double scale);
/* The messages of the step begun last; again: nothing. */
void gf_exchange_list(struct gf_exchange *x, double scale);
/* Waits until the messages of the first `count` steps have ended. */
int gf_exchange_await(struct gf_exchange *x, size_t count,
		      struct gf_error *err);
/* Between GPUs: the stream waits for the step that is to be taken, if one is
 * due. A step of a checkpoint came with it. */
int gf_exchange_join(struct gf_exchange *x, bool due, struct gf_error *err);
/* Between GPUs: was the step that was taken last, and not learnt of yet, bad?
 * If not, what it decided is adopted. Waits for the device. */
int gf_exchange_learn(struct gf_exchange *x, bool *bad, struct gf_error *err);
/* The bad gradient of step `index`, which has come, if any. Host. */
struct gf_select_bad gf_exchange_bad(struct gf_exchange *x, size_t index);
/* The messages' times become those of a step of this process that was waited
 * for; ready_s: per tensor, or NULL. gf_exchange_no_times: none are known. */
void gf_exchange_take_times(struct gf_exchange *x, size_t index,
			    const double *ready_s);
void gf_exchange_no_times(struct gf_exchange *x);

/* The first failure of calls that return nothing is kept. */
void gf_exchange_keep(struct gf_exchange *x, int rc,
		      const struct gf_error *err);
int gf_exchange_kept(const struct gf_exchange *x, struct gf_error *err);

/* Before the state is looked at: waits for what is under way, which changes
 * nothing of the results. */
int gf_exchange_settle(struct gf_exchange *x, struct gf_error *err);
/* After it was read: goes on from there. -EINVAL: it cannot be. */
int gf_exchange_restore(struct gf_exchange *x, struct gf_error *err);

/* in_flight.c, after the pools are open. */
int gf_exchange_flight_open(struct gf_exchange *x, struct gf_error *err);
void gf_exchange_flight_close(struct gf_exchange *x);
void gf_exchange_flight_state(struct gf_exchange *x, struct gf_state *s);
int gf_exchange_flight_keep(struct gf_exchange *x, struct gf_error *err);
int gf_exchange_flight_restore(struct gf_exchange *x, struct gf_error *err);

#endif
