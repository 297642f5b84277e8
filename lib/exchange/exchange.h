/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/exchange: the one door to the runtime: a plan's exchange, step by
 * step, in its own memory or a caller's. */
#ifndef GF_EXCHANGE_EXCHANGE_H
#define GF_EXCHANGE_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "ckpt/state.h"
#include "comm/comm.h"
#include "doc/model.h"
#include "doc/plan.h"
#include "work/work.h"
#include "gpu/gpu.h"
#include "select/sums.h"

/*
 * A plan's exchange without an optimiser: gradients go in, and their sums over
 * ranks come out. It is the one door to what lies behind it: a selection (which
 * gradients go, select/select.h), an engine that moves their messages, and
 * `staleness` K pools, since so many steps may be under way. Training
 * (train/method.h) adds the update, and libgradflow (embed) callers' memory.
 *
 * A step, from the thread that computes:
 *	grads = gf_exchange_begin(x, step, scale);	// backward writes here
 *	gf_exchange_ready(x, &tensor, 1) ...
 *	gf_exchange_backward_end(x);
 *	if (gf_exchange_is_due(x, full)) {		// the oldest step
 *		gf_exchange_wait(x, true, &err);
 *		gf_exchange_sums(x, &sums, &err);
 *		gf_exchange_adopt(x);			// if they are applied
 *		gf_exchange_take(x);
 *	}
 * Steps count from 1 over the whole run, also after a resume.
 *
 * CALLER'S MEMORY. With env.dtypes gradients lie where gf_exchange_post says,
 * and their means come back there as soon as their messages have come
 * (exchange/callers_memory.h). gf_exchange_take_all ends the step.
 *
 * GPUS. With place.nccl gradients go from GPU to GPU and the host is ahead:
 * what a step sends may depend on how the one before has ended. So a step
 * begins without a list; before its first gradient is ready the caller asks
 * what became of the steps taken (gf_exchange_learn) and lists its messages
 * (gf_exchange_list). gf_exchange_wait lets the stream wait, not the host.
 */
struct gf_exchange;

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
	struct gf_place place;       /* no graphs in CALLER'S MEMORY */
};

/* -ENOTSUP: such a plan is not run with gradients on the host; or from GPU to
 * GPU. */
int gf_exchange_check_plan(const struct gf_plan *plan, struct gf_error *err);
int gf_exchange_check_gpu(const struct gf_plan *plan, struct gf_error *err);
/* CALLER'S MEMORY: a message that no codec is wanted for, and whose tensors are
 * all of one type of 16 bits, travels in that type. Before the plan is used. */
void gf_exchange_set_codecs(struct gf_plan *plan, const enum gf_dtype *dtypes);

/* Collective: returns after all ranks have agreed. On failure *x is NULL. */
int gf_exchange_open(struct gf_exchange **x, const struct gf_exchange_env *env,
		     struct gf_error *err);
/* Accepts NULL. Steps under way are waited for: a rank that left would take the
 * others' partner away. */
void gf_exchange_close(struct gf_exchange *x);
/* In its place where ranks are lost: its thread ends, and the communicator is
 * the caller's again. Its memory stays, since the transport may write to it. */
void gf_exchange_abandon(struct gf_exchange *x);
/* The caller's own failure, which becomes every rank's. */
void gf_exchange_fail(struct gf_exchange *x, int rc,
		      const struct gf_error *why);

/* --- a step --------------------------------------------------------------- */

/* The step that begins next has `count` of the plan's messages, from the
 * first-th on; the sums of other tensors stay what they were. Of dense
 * gradients in pools, by the host, with a staleness of 1. */
void gf_exchange_part(struct gf_exchange *x, size_t first, size_t count);
/* Collective: prepares for such parts, as opening does for all messages. */
int gf_exchange_expect_part(struct gf_exchange *x, size_t first, size_t count,
			    struct gf_error *err);
/* Returns the memory that backward writes to. */
float *gf_exchange_begin(struct gf_exchange *x, size_t step, double scale);
/* The messages of the step begun last; again: nothing. */
void gf_exchange_list(struct gf_exchange *x, double scale);
/* CALLER'S MEMORY: the tensor's gradient lies there until its mean has come;
 * before the tensor is ready, once in a step. */
void gf_exchange_post(struct gf_exchange *x, size_t tensor, void *data);
/* gf_engine_await_at_once */
void gf_exchange_await_at_once(struct gf_exchange *x);
void gf_exchange_ready(struct gf_exchange *x, const size_t *tensors, size_t n);
/* Tensors that are not ready by now have no gradient. */
void gf_exchange_backward_end(struct gf_exchange *x);

/* Is a step to be taken now? With `full` as many as the staleness allows are
 * under way first. */
bool gf_exchange_is_due(const struct gf_exchange *x, bool full);
/* Waits for the oldest step, if it is due; `due` false: only fails if something
 * has failed. */
int gf_exchange_wait(struct gf_exchange *x, bool due, struct gf_error *err);
/* Waits for one of the plan's messages of the only step under way: `whole`, or
 * else its reduce-scatter if it is split. Host. */
int gf_exchange_wait_message(struct gf_exchange *x, size_t message, bool whole,
			     struct gf_error *err);
/* Host: for all steps. */
int gf_exchange_wait_all(struct gf_exchange *x, struct gf_error *err);

/* The oldest step, which is due. */
struct gf_exchange_oldest {
	size_t age;           /* steps begun since */
	double scale;         /* that it was made with */
	const uint32_t *flag; /* between GPUs: the device's word for bad */
};
struct gf_exchange_oldest gf_exchange_oldest(const struct gf_exchange *x);
/* Its first gradient that is not finite. Host. */
struct gf_select_bad gf_exchange_bad(struct gf_exchange *x);
/* What came of it; it holds for the steps that begin from now on. */
int gf_exchange_sums(struct gf_exchange *x, struct gf_select_sums *sums,
		     struct gf_error *err);
void gf_exchange_adopt(struct gf_exchange *x);
/* What came of one of the plan's messages in the only step under way: elements
 * first to first + count - 1 of its gradients. */
struct gf_exchange_sums_of {
	const float *grads; /* all of the step's */
	size_t first, count;
	struct gf_select_bad bad; /* of them */
};
struct gf_exchange_sums_of gf_exchange_message(const struct gf_exchange *x,
					       size_t message);
/* The caller is done with it. Between GPUs, after the device's word is on its
 * way to the host. */
int gf_exchange_take(struct gf_exchange *x, struct gf_error *err);
/* CALLER'S MEMORY: waits for all of the step, and takes it. */
int gf_exchange_take_all(struct gf_exchange *x, struct gf_error *err);
/* Between GPUs: has a step been taken of which the host does not know how it
 * ended? Then *bad says it, and what a good one decided is adopted. Waits for
 * the device. 1: there was none. */
int gf_exchange_learn(struct gf_exchange *x, bool *bad, struct gf_error *err);

/* The first failure of calls that return nothing is kept. */
void gf_exchange_keep(struct gf_exchange *x, int rc,
		      const struct gf_error *err);
int gf_exchange_kept(const struct gf_exchange *x, struct gf_error *err);
/* What is kept, or has failed behind the door. */
int gf_exchange_check(struct gf_exchange *x, struct gf_error *err);

/* --- CALLER'S MEMORY ------------------------------------------------------ */

/* Has the tensor's mean come back in this step? From any thread. */
bool gf_exchange_is_back(const struct gf_exchange *x, size_t tensor);
/* Waits for it. Host. */
int gf_exchange_wait_tensor(struct gf_exchange *x, size_t tensor,
			    struct gf_error *err);
/* The last tensor of the plan that the mean waits for. */
size_t gf_exchange_needs(const struct gf_exchange *x, size_t tensor);
/* Called for a tensor whose mean is back (0), or never will be (a negative
 * errno), on the thread that moves messages. */
void gf_exchange_on_back(struct gf_exchange *x,
			 void (*fn)(void *ctx, size_t tensor, int status),
			 void *ctx);
uint64_t gf_exchange_copied_bytes(const struct gf_exchange *x);

/* --- what is known of it -------------------------------------------------- */

/* Steps begun, with those that came with a checkpoint. */
size_t gf_exchange_begun(const struct gf_exchange *x);
/* Offsets of the tensors in a pool, ntensors + 1. */
const size_t *gf_exchange_offsets(const struct gf_exchange *x);
/* May messages' sums be taken one by one? */
bool gf_exchange_by_message(const struct gf_exchange *x);
/* Do a step's messages depend on how the one before has ended? */
bool gf_exchange_decides(const struct gf_exchange *x);

/* Per message of the plan, of the step that was waited for last; NAN: not
 * known. gf_exchange_times_taken: now those of the step that was taken last,
 * and its age; false: they are not known. gf_exchange_no_times: none are. */
const struct gf_message_times *gf_exchange_times(const struct gf_exchange *x);
bool gf_exchange_times_taken(struct gf_exchange *x, size_t *age);
void gf_exchange_no_times(struct gf_exchange *x);

struct gf_totals gf_exchange_totals(struct gf_exchange *x);
/* Both kinds of its seconds together, also within a step; from any thread. */
double gf_exchange_handling_s(const struct gf_exchange *x);
/* So many steps were done by an earlier run: messages' texts count on. */
void gf_exchange_count_from(struct gf_exchange *x, size_t steps);

/* As gf_engine_call and gf_engine_agree, and gf_engine_missing after a
 * failure. */
int gf_exchange_call(struct gf_exchange *x,
		     int (*fn)(struct gf_comm *comm, void *ctx,
			       struct gf_error *err),
		     void *ctx, struct gf_error *err);
int gf_exchange_agree(struct gf_exchange *x, int rc, struct gf_error *err);
int gf_exchange_missing(struct gf_exchange *x, bool *missing);
/* For code that measures; borrowed. The pool: of slot 0. */
struct gf_engine *gf_exchange_engine(struct gf_exchange *x);
float *gf_exchange_pool(struct gf_exchange *x);

/* --- what survives a stop ------------------------------------------------- */

/* Adds what must survive. */
void gf_exchange_state(struct gf_exchange *x, struct gf_state *s);
/* Before the state is looked at: waits for what is under way, which changes
 * nothing of the results. */
int gf_exchange_settle(struct gf_exchange *x, struct gf_error *err);
/* After it was read: goes on from there. -EINVAL: it cannot be. */
int gf_exchange_restore(struct gf_exchange *x, struct gf_error *err);

#endif
