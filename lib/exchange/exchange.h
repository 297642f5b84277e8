/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/exchange: the one door to the runtime: a plan's exchange, step by step, in its own memory or
 * a caller's. */
#ifndef GF_EXCHANGE_EXCHANGE_H
#define GF_EXCHANGE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "checkpoints/state.h"
#include "collectives/layout.h"
#include "transport/comm.h"
#include "documents/models/model.h"
#include "documents/plan.h"
#include "runtime/work.h"
#include "cuda/gpu.h"
#include "compressors/sums.h"

/*
 * A plan's exchange without an optimiser: gradients go in, and their sums over ranks come out. It
 * is the one door to what lies behind it: a selection (which gradients go, compressors/select.h),
 * an engine that moves their messages, and `staleness` K pools, since so many steps may be under
 * way. Training (trainer/method.h) adds the update, and libgradflow callers' memory.
 *
 * A caller holds a step twice: while its gradients are made, and when it is the oldest that is
 * under way. All calls come from the thread that computes.
 *	step = gf_exchange_begin(x, number, scale, 0);	// fills step->grads
 *	gf_exchange_ready(step, &tensor, 1) ...
 *	gf_exchange_backward_end(step);
 *	gf_exchange_next(x, full, &step, &err);		// waits for the oldest
 *	if (step) {					// and it is due
 *		gf_exchange_sums(step, GF_EXCHANGE_WHOLE, &sums, &bad, &err);
 *		gf_exchange_take(step, applied, &err);
 *	}
 * Steps count from 1 over the whole run, also after a resume.
 *
 * CALLER'S MEMORY. With env.dtypes gradients lie where gf_exchange_post says, and their means come
 * back there as soon as their messages have come (exchange/callers_memory.h).
 *
 * GPUS. With place.nccl gradients go from GPU to GPU and the host is ahead: what a step sends may
 * depend on how the one before has ended. So the messages of a step in pools are listed when its
 * first tensor is ready. Before that the caller asks what became of the steps taken
 * (gf_exchange_learn), and may set step->scale. gf_exchange_next lets the stream wait, not the
 * host.
 */
struct gf_exchange;
struct gf_shards;

struct gf_exchange_step {
	struct gf_exchange *of;
	size_t number;  /* of the run */
	double scale;   /* that its gradients are multiplied by */
	float *grads;   /* the memory that backward writes to */
	uint32_t *flag; /* between GPUs: the device's word for bad */
	bool bad;       /* of one that came with a checkpoint */
};

/* Of gf_exchange_sums: all of the plan's messages. */
#define GF_EXCHANGE_WHOLE SIZE_MAX

struct gf_exchange_env {
	struct gf_comm *comm;          /* borrowed */
	const struct gf_plan *plan;    /* bound, borrowed */
	const struct gf_shape *shapes; /* ntensors; NULL: a replay; borrowed until
					* gf_exchange_state */
	size_t epoch_steps;            /* 0: a replay */
	double momentum;               /* the optimiser's, for selections that have it */
	bool scaled;                   /* compressors/select.h, SCALED */
	double timeout_s;
	int threads;          /* that compute on the host; 0: none, a replay */
	bool awaited_at_once; /* runtime/engine/engine.h */
	/* Each step sends one fragment of this period, which the plan's messages are made for:
	 * dense gradients in pools, by the host, with a staleness of 1. Sums of other tensors stay
	 * what they were. NULL: each step sends all messages. Borrowed. */
	const struct gf_period *period;
	/* CALLER'S MEMORY; NULL: the pools. Borrowed during open. */
	const enum gf_dtype *dtypes;
	/* It is called for a tensor whose mean is back (0), or never will be (a negative errno), on
	 * the thread that moves messages. (optional) */
	void (*on_back)(void *ctx, size_t tensor, int status);
	void *on_back_ctx;
	struct gf_place place; /* no graphs in CALLER'S MEMORY */
	/* Of a plan that has them; borrowed. A step then gathers parameters, too, from its
	 * beginning on, in the caller's memory. */
	struct gf_shards *shards;
	/* Messages are begun one by one, as halves; see below. */
	bool halves;
};

/* The function tells whether a plan can be run: with gradients on the host, or else from GPU to
 * GPU. -ENOTSUP says why not. */
int gf_exchange_check_plan(const struct gf_plan *plan, bool between_gpus, struct gf_error *err);
/* CALLER'S MEMORY: a message that no codec is wanted for, and whose tensors are all of one type of
 * 16 bits, travels in that type. The plan is not in use. */
void gf_exchange_set_codecs(struct gf_plan *plan, const enum gf_dtype *dtypes);

/* Collective: the call returns after all ranks have agreed. On failure *x is NULL. */
int gf_exchange_open(struct gf_exchange **x, const struct gf_exchange_env *env,
		     struct gf_error *err);
/* The function accepts NULL. It waits for steps under way: a rank that left would take the others'
 * partner away. */
void gf_exchange_close(struct gf_exchange *x);
/* Where ranks are lost this comes in place of closing, or before it: the exchange's thread ends,
 * and the communicator is the caller's again. The memory stays, since the transport may write to
 * it. NULL is accepted. */
void gf_exchange_abandon(struct gf_exchange *x);

/* --- a step --------------------------------------------------------------- */

/* The run's step `number` begins, with the messages of that fragment of env.period, or all. The
 * caller holds it until the end of backward. */
struct gf_exchange_step *gf_exchange_begin(struct gf_exchange *x, size_t number, double scale,
					   size_t fragment);
/* CALLER'S MEMORY: the tensor's gradient lies there until its mean has come. The call comes before
 * the tensor is ready, once in a step. */
void gf_exchange_post(struct gf_exchange_step *step, size_t tensor, void *data);
/* The gradients of these tensors are there; or, after the tensors' numbers, these stages of shards
 * have begun (runtime/shard_list.h). */
void gf_exchange_ready(struct gf_exchange_step *step, const size_t *tensors, size_t n);
/* Tensors that are not ready by now have no gradient. */
void gf_exchange_backward_end(struct gf_exchange_step *step);

/* The caller gets the oldest step under way, whose messages have come; NULL: none is due. With
 * `full`, a step is due when as many as the staleness allows are under way, else at once. A failure
 * is told also if none is due. */
int gf_exchange_next(struct gf_exchange *x, bool full, struct gf_exchange_step **step,
		     struct gf_error *err);
/* Host: the call waits for one of the plan's messages in the only step under way: for all of it,
 * or, not `whole`, for its reduce-scatter if it is split.
 */
int gf_exchange_wait(struct gf_exchange_step *step, size_t message, bool whole,
		     struct gf_error *err);
/* With shards: the message in that place of their list, likewise. */
int gf_exchange_wait_work(struct gf_exchange_step *step, size_t place, struct gf_error *err);
/* What came of the step, or of one of the plan's messages where selections are GF_SELECT_LOSSLESS
 * (documents/selections/selection.h): the sums, which hold for the steps that begin from now on,
 * and the first gradient that is not finite. Either may be NULL. `bad` is the host's: between GPUs
 * the step's flag says it. The sums are good until the next call. */
int gf_exchange_sums(struct gf_exchange_step *step, size_t message, struct gf_select_sums *sums,
		     struct gf_select_bad *bad, struct gf_error *err);
/* The caller is done with the oldest step. What the step decided holds from now on if its sums were
 * `applied`; between GPUs the device's word decides that, and goes to the host. */
int gf_exchange_take(struct gf_exchange_step *step, bool applied, struct gf_error *err);
/* Between GPUs: has a step been taken of which the host does not know how it ended? Then the call
 * waits for the device, *bad says it, and what a good step decided is adopted. 1: there was none,
 * or, not `always`, the messages of the next step do not depend on it. */
int gf_exchange_learn(struct gf_exchange *x, bool always, bool *bad, struct gf_error *err);

/* --- halves --------------------------------------------------------------- */

/* Of one of the plan's tensors, by its message's way. Elements of f32, f16 or bf16. */
struct gf_exchange_half {
	size_t tensor;
	enum gf_coll_half half; /* not the whole */
	void *data;
	size_t count;
	enum gf_dtype dtype;
	struct gf_layout owners; /* borrowed; none: even parts */
	double divisor;          /* of sums; 0: the ranks */
};

/* -ENOTSUP says why a plan's messages do not go as halves; the plan's ways are settled. */
int gf_exchange_check_halves(const struct gf_plan *plan, struct gf_error *err);
/* With env.halves, in place of steps; from the thread that computes. Ranks begin the same halves in
 * the same order. Memory is in use until the half has been waited for. *number counts from 1.
 * GF_HALVES_DEPTH of them may be under way (exchange/posted_halves.h): then the call waits for the
 * oldest. */
int gf_exchange_begin_half(struct gf_exchange *x, const struct gf_exchange_half *half,
			   uint64_t *number, struct gf_error *err);
/* Until that half and all before it have ended. */
int gf_exchange_wait_half(struct gf_exchange *x, uint64_t number, struct gf_error *err);

/* --- what is known of it -------------------------------------------------- */

/* CALLER'S MEMORY: has the tensor's mean come back in this step? Any thread may ask. */
bool gf_exchange_is_back(const struct gf_exchange *x, size_t tensor);
/* Per message of the plan, and with shards then twice more, for gathers in forward and in backward:
 * the times in the step that was waited for last, or, between GPUs, learnt
 * of last. NAN: they are not known. */
const struct gf_message_times *gf_exchange_times(const struct gf_exchange *x);
struct gf_totals gf_exchange_totals(const struct gf_exchange *x);

/* The caller's own failure rc becomes every rank's, and is returned. Without one (0) the call
 * returns what has failed behind the door. */
int gf_exchange_failed(struct gf_exchange *x, int rc, struct gf_error *err);
/* After a failure the function says for each rank whether it is missing, as gf_engine_missing. */
int gf_exchange_missing(struct gf_exchange *x, bool *missing);
/* All ranks run fn between steps, on the thread that talks to other ranks, as gf_engine_call. */
int gf_exchange_call(struct gf_exchange *x,
		     int (*fn)(struct gf_comm *comm, void *ctx, struct gf_error *err), void *ctx,
		     struct gf_error *err);
/* Code that measures borrows the engine. The pool is that of the first slot; all have its
 * offsets. */
struct gf_engine *gf_exchange_engine(struct gf_exchange *x);
const struct gf_pool *gf_exchange_pool(const struct gf_exchange *x);

/* --- what survives a stop ------------------------------------------------- */

/* The function adds what must survive. */
void gf_exchange_state(struct gf_exchange *x, struct gf_state *s);
/* Before the state is looked at, the call waits for what is under way, which changes nothing of the
 * results. */
int gf_exchange_settle(struct gf_exchange *x, struct gf_error *err);
/* After the state was read, the exchange goes on from there, after so many steps of an earlier run.
 * -EINVAL: it cannot. */
int gf_exchange_restore(struct gf_exchange *x, size_t steps, struct gf_error *err);

#endif
