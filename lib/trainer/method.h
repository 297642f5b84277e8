/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_METHOD_H
#define GF_TRAINER_METHOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "transport/comm.h"
#include "documents/plan.h"
#include "trainer/optim/optimizer.h"
#include "cuda/gpu.h"
#include "exchange/exchange.h"
#include "trainer/scale.h"
#include "checkpoints/state.h"
#include "checkpoints/run/team.h"
#include "trainer/event_ring.h"

/*
 * A training method is what the plan's axes make together: an exchange (a selection and a
 * staleness, exchange/exchange.h) and an update rule (what gradients do, update.c). The
 * loop knows only this interface.
 *
 * Staleness K (Pipe-SGD): the update at the end of step t applies the gradient of step t + 1 - K,
 * so that its exchange had K - 1 steps' time; where there is none yet, nothing is updated. The
 * first `warmup_steps` are synchronous; after them the pipeline fills again, and no gradient is
 * applied twice. K = 1 is synchronous SGD. The gradients of the last K - 1 steps are never applied.
 *
 * A step, from the compute thread:
 *	gf_method_begin(m, step);
 *	gf_method_memory(m, &grads, &err);	// after the first forward
 *	gf_method_ready(m, tensor) ...		// from backward
 *	gf_method_backward_end(m);
 *	gf_method_exchange(m, &err);		// what this step applies
 *	gf_method_judge(m, &err);		// may it be applied?
 *	gf_method_update(m, lr);		// parameters and optimiser
 * Steps count from 1 over the whole run, also after a resume.
 *
 * LATE. If messages are split (DeAR) and forward asks for tensors one by one, a step ends when its
 * reduce-scatters have ended. A split message's all-gather is waited for, and its result applied,
 * when the next forward needs one of its tensors. So between steps parameters are those of the step
 * before until gf_method_settle. Forward calls gf_method_need for each tensor. What nobody asked
 * for comes with gf_method_memory, as the pool is in use until then.
 *
 * SHARDS. Between steps a rank has its own parts of the optimiser's state, and perhaps of the
 * parameters; gf_method_whole brings the parameters' others. Passes call gf_method_need for each
 * tensor, gf_method_forward_end and, before the last micro-batch, gf_method_early in each of them.
 */
struct gf_method;

struct gf_method_env {
	struct gf_comm *comm;                /* borrowed */
	const struct gf_plan *plan;          /* bound, borrowed */
	float *params;                       /* flat, generation order; NULL: a replay */
	const struct gf_shape *shapes;       /* ntensors; NULL: a replay; borrowed until
					      * gf_method_state */
	size_t epoch_steps;                  /* 0: a replay */
	const struct gf_optim_config *optim; /* NULL: a replay */
	struct gf_loss_scale scale;
	struct gf_optim_watch watch; /* of params, as they are updated */
	struct gf_place place;       /* with nccl the update is there */
	double timeout_s;
	int threads;   /* that compute on the host; 0: none, a replay */
	bool skip_bad; /* a step with a bad gradient: skip it, else end */
	bool asks;     /* forward calls gf_method_need; with shards of parameters also backward */
	size_t accumulate; /* micro-batches of a step; 0: 1 */
};

/* May gradients go from GPU to GPU, and the update be done there? -ENOTSUP says why not. Whether
 * NCCL is there and every rank has a GPU of its own is another question. */
int gf_method_check_gpu(const struct gf_plan *plan, const struct gf_training *training,
			struct gf_error *err);
/* Collective: returns after all ranks have agreed. gf_method_close follows also if this fails. */
int gf_method_open(struct gf_method **m, const struct gf_method_env *env, struct gf_error *err);
/* Accepts NULL. Steps under way are waited for: a rank that left would take the others' partner
 * away. On a broken communicator only the engine's thread ends, and the rest stays. */
void gf_method_close(struct gf_method *m);
/* Adds what must survive a stop, apart from the parameters. */
void gf_method_state(struct gf_method *m, struct gf_state *s);
/* The team with which the method communicates beside gradients. */
struct gf_team gf_method_team(const struct gf_method *m);

/* The step begins, before its first forward. */
void gf_method_begin(struct gf_method *m, size_t step);
/* The first forward is through: the memory that backward writes to, which is the device's if
 * gradients stay there. LATE: takes what nobody asked for. */
int gf_method_memory(struct gf_method *m, float **grads, struct gf_error *err);
/* A micro-batch's forward has ended; on a device, is enqueued. */
void gf_method_forward_end(struct gf_method *m);
/* A gradient that goes out, and one of a micro-batch before the last. */
void gf_method_ready(struct gf_method *m, size_t tensor);
void gf_method_early(struct gf_method *m, size_t tensor);
void gf_method_backward_end(struct gf_method *m);
int gf_method_exchange(struct gf_method *m, struct gf_error *err);
/* Passes over what has come. 1: a gradient is infinite or not a number, which ends the run on all
 * ranks alike; err names the step, and the tensor where it is known. With LATE the update
 * finds them, and a device as it adds up. */
int gf_method_judge(struct gf_method *m, struct gf_error *err);
/* In a replay nothing but the order of things. */
void gf_method_update(struct gf_method *m, double lr);
/* Do passes call gf_method_need? LATE and SHARDS, above. */
bool gf_method_asks(const struct gf_method *m);
/* Why a step looks at its whole gradient before it applies any of it, so that no all-gather may be
 * late; NULL: it does not. */
const char *gf_method_looks_first(double clip_norm, bool scaled, bool skips, bool gpu);
void gf_method_need(void *method, size_t tensor);

/* SHARDS, below nothing without them. All ranks, between steps: parameters are there whole, or what
 * is not kept goes. */
int gf_method_whole(struct gf_method *m, bool whole, struct gf_error *err);
/* The caller has set all parameters, which are whole. */
void gf_method_took(struct gf_method *m);
/* Arrays of the list that are sharded are so written, compared and read. */
void gf_method_shard_state(struct gf_method *m, struct gf_state *s);
/* -EINVAL: the plan's messages are no units of the model, whose parameters are in that order. */
int gf_method_check_model(const struct gf_method *m, const struct gf_model *model,
			  const size_t *order, struct gf_error *err);

/* Waits for what is under way, which changes nothing of the results: the net may be tested. 1: as
 * exchange. */
int gf_method_finish(struct gf_method *m, struct gf_error *err);
/* Waits for what is under way before the state is looked at: the host has it then. */
int gf_method_settle(struct gf_method *m, struct gf_error *err);
/* After it was read: goes on from there, after so many steps. -EINVAL: it cannot be. */
int gf_method_restore(struct gf_method *m, size_t steps, struct gf_error *err);

/* Bytes that this rank has sent since the last call, in messages that have been waited for. Stale
 * gradients count K - 1 steps late. Late messages count if this step's forward or its exchange has
 * waited for them. */
uint64_t gf_method_sent_bytes(struct gf_method *m);
/* The loss scale now, and steps skipped so far. */
struct gf_loss_scale gf_method_scale(const struct gf_method *m);
uint64_t gf_method_skipped(const struct gf_method *m);
/* The durations of a step's parts, by the device's clock. */
struct gf_train_durations {
	double forward_s, backward_s, wait_s, update_s;
};

/* The durations of the previous step on a device, which the host's clock cannot see. NULL: the
 * host's clock is right, or nothing is known yet. */
const struct gf_train_durations *gf_method_durations(const struct gf_method *m);

#endif
