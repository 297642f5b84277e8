/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_METHOD_H
#define GF_TRAIN_METHOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "comm/comm.h"
#include "doc/plan.h"
#include "optim/optimizer.h"
#include "gpu/gpu.h"
#include "exchange/exchange.h"
#include "train/device_marks.h"
#include "train/scale.h"
#include "ckpt/state.h"
#include "run/team.h"
#include "train/event_ring.h"
#include "train/update.h"

/*
 * A training method is what the plan's axes make together: an exchange (a
 * selection and a staleness, exchange/exchange.h) and an update rule (what
 * gradients do, train/update.h). The loop knows only this interface.
 *
 * Staleness K (Pipe-SGD): the update at the end of step t applies the gradient
 * of step t + 1 - K, so that its exchange had K - 1 steps' time; where there is
 * none yet, nothing is updated. The first `warmup_steps` are synchronous;
 * after them the pipeline fills again, and no gradient is applied twice. K = 1
 * is synchronous SGD. The gradients of the last K - 1 steps are never applied.
 *
 * A step, from the compute thread:
 *	grads = gf_method_begin(m, step);	// where backward writes
 *	gf_method_ready(m, tensor) ...		// from backward
 *	gf_method_backward_end(m);
 *	gf_method_exchange(m, step, &err);	// what this step applies
 *	gf_method_update(m, lr);		// parameters and optimiser
 * Steps count from 1 over the whole run, also after a resume.
 *
 * LATE. If messages are split (DeAR) and forward asks for tensors one by one, a
 * step ends when its reduce-scatters have ended. A split message's all-gather
 * is waited for, and its result applied, when the next forward needs one of its
 * tensors. So between steps parameters are those of the step before until
 * gf_method_settle. In front of the step above, in that order:
 *	gf_method_need(m, tensor) ...		// from forward
 *	gf_method_take_rest(m, &err);		// what nobody asked for
 * and gf_method_begin comes after these, as the pool is in use until then.
 */
struct gf_method_env {
	struct gf_comm *comm;       /* borrowed */
	const struct gf_plan *plan; /* bound, borrowed */
	float *params;              /* flat, generation order; NULL: a replay */
	const struct gf_shape *shapes; /* ntensors; NULL: a replay; borrowed
					* until gf_method_state */
	size_t epoch_steps;            /* 0: a replay */
	const struct gf_optim_config *optim; /* NULL: a replay */
	struct gf_loss_scale scale;
	struct gf_optim_watch watch; /* of params, as they are updated */
	struct gf_place place;       /* with nccl the update is there */
	double timeout_s;
	int threads;   /* that compute on the host; 0: none, a replay */
	bool skip_bad; /* a step with a bad gradient: skip it, else end */
	bool asks;     /* forward calls gf_method_need */
};

/* Messages that are applied late (late.c). */
struct gf_method_late {
	bool used;
	bool pending; /* a step's messages are */
	bool updated; /* a step was, at this rate */
	double lr;
	size_t *message; /* per tensor: which one it is in */
	bool *applied;   /* per message */
	int rc;          /* the first failure since forward began */
	struct gf_error err;
	/* of this step's forward: waiting, and what of it was not data that
	 * moved */
	double waited_s, handling_s;
	struct gf_step_wait *waits; /* per message */
};

/* The host is a step ahead of a GPU that updates by itself (method.c). */
struct gf_method_ahead;

struct gf_method {
	struct gf_method_env env;
	struct gf_exchange *exchange;
	struct gf_update updater;
	struct gf_method_ahead *ahead;    /* NULL: gradients go by the host */
	struct gf_exchange_step *made;    /* the step that is computed */
	struct gf_exchange_step *applied; /* by its update; NULL: none is */
	bool skip;                        /* but not that one, which is bad */
	size_t timed; /* the times of messages are this step's; 0: none */
	int rc;       /* of what gives nothing back: the first failure */
	struct gf_error reason;
	struct gf_loss_scale scale;
	uint64_t skipped;    /* steps so far */
	uint64_t told_bytes; /* sent, and told of */
	struct gf_method_late late;
};

/* Refuses a plan that no method here does: -ENOTSUP says what is missing. */
int gf_method_check(const struct gf_plan *plan, struct gf_error *err);
/* May gradients go from GPU to GPU, and the update be done there? -ENOTSUP says
 * why not. Whether NCCL is there and every rank has a GPU of its own is another
 * question. */
int gf_method_check_gpu(const struct gf_plan *plan,
			const struct gf_training *training,
			struct gf_error *err);
/* The method's name in checkpoints and logs: the selection's name. */
const char *gf_method_name(const struct gf_plan *plan);

/* Collective: returns after all ranks have agreed. */
int gf_method_open(struct gf_method *m, const struct gf_method_env *env,
		   struct gf_error *err);
/* Accepts one whose open failed, and one that is all zero. Steps under way are
 * waited for: a rank that left would take the others' partner away. On a broken
 * communicator only the engine's thread ends, and the rest stays. */
void gf_method_close(struct gf_method *m);
/* Adds what must survive a stop, apart from the parameters. */
void gf_method_state(struct gf_method *m, struct gf_state *s);
/* The team with which the method communicates beside gradients. */
struct gf_team gf_method_team(const struct gf_method *m);

/* Returns the memory that backward writes to: the device's if gradients stay
 * there. */
float *gf_method_begin(struct gf_method *m, size_t step);
/* The step's forward passes are enqueued. */
void gf_method_forward_end(struct gf_method *m);
void gf_method_ready(struct gf_method *m, size_t tensor);
void gf_method_backward_end(struct gf_method *m);
/* 1: a gradient is infinite or not a number, which ends the run on all ranks
 * alike; err names the step, and the tensor where it is known. */
int gf_method_exchange(struct gf_method *m, size_t step, struct gf_error *err);
/* In a replay nothing but the order of things. */
void gf_method_update(struct gf_method *m, double lr);
/* LATE, above; a method that is not late has nothing to do. */
void gf_method_need(void *method, size_t tensor);
int gf_method_take_rest(struct gf_method *m, struct gf_error *err);

/* Waits for what is under way, which changes nothing of the results: the net
 * may be tested. 1: as exchange. */
int gf_method_finish(struct gf_method *m, struct gf_error *err);
/* Waits for what is under way before the state is looked at: the host has it
 * then. */
int gf_method_settle(struct gf_method *m, struct gf_error *err);
/* After it was read: goes on from there, after so many steps. -EINVAL: it
 * cannot be. */
int gf_method_restore(struct gf_method *m, size_t steps, struct gf_error *err);

/* Bytes that this rank has sent since the last call, in messages that have been
 * waited for. Stale gradients count K - 1 steps late. Late messages count if
 * this step's forward or its exchange has waited for them. */
uint64_t gf_method_sent_bytes(struct gf_method *m);
/* The durations of the previous step on a device, which the host's clock cannot
 * see. NULL: the host's clock is right, or nothing is known yet. */
const struct gf_train_durations *gf_method_durations(const struct gf_method *m);

#endif
