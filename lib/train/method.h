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
#include "train/device_marks.h"
#include "train/exchange.h"
#include "train/scale.h"
#include "ckpt/state.h"
#include "train/team.h"
#include "train/timeline.h"
#include "train/update.h"

/*
 * A training method is what the plan's axes make together: a selection (which
 * gradients go, select/select.h), a staleness (which step's are applied) and
 * an update rule (what they do, train/update.h). This is the pipeline of steps
 * between the other two; the loop knows only this interface.
 *
 * Staleness K (Pipe-SGD): the update at the end of step t applies the gradient
 * of step t + 1 - K, so that its exchange had K - 1 steps' time; where there is
 * none yet, nothing is updated. The first `warmup_steps` are synchronous;
 * behind them the pipeline fills again, and no gradient is applied twice. K = 1
 * is synchronous SGD. The gradients of the last K - 1 steps are never applied.
 *
 * A step, from the compute thread:
 *	grads = gf_method_begin(m, step);	// where backward writes
 *	gf_method_ready(m, tensor) ...		// from backward
 *	gf_method_backward_end(m);
 *	gf_method_exchange(m, step, &err);	// what this step applies
 *	gf_method_update(m, step, lr);		// parameters and optimiser
 * Steps count from 1 over the whole run, also behind a resume.
 *
 * LATE. Where messages are split (DeAR) and forward asks for tensors one by
 * one, a step ends when its reduce-scatters have; a split message's all-gather
 * is waited for, and what it brings is applied, when the next forward needs one
 * of its tensors. So between steps parameters are those of the step before
 * until gf_method_settle. In front of the step above, in that order:
 *	gf_method_need(m, tensor) ...		// from forward
 *	gf_method_take_rest(m, &err);		// what nobody asked for
 * and gf_method_begin comes behind these, as the pool is in use until then.
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
	struct gf_gpu *gpu;          /* that computes; NULL: none */
	/* Gradients go from GPU to GPU, and the update is computed there;
	 * NULL: on the host, from whose memory the gpu copies. */
	const struct gf_nccl_ops *nccl;
	struct gf_gpu_stream *stream;
	/* Gradients that go by the host are selected on the GPU, where the
	 * update is, too (gf_exchange_device_check): what is made of them there
	 * goes to gf_method_take. */
	bool selects_there;
	/* with either the device's, of all params; device_grads whole, and over
	 * NCCL as often as steps are under way, each device_stride elements
	 * behind the one before */
	float *device_params, *device_grads;
	size_t device_stride;
	double timeout_s;
	bool skip_bad; /* a step with a bad gradient: skip it, else end */
	bool asks;     /* forward calls gf_method_need */
};

/* Of messages that are applied late (method_late.c). */
struct gf_method_late {
	bool used;
	bool pending; /* a step's messages are */
	size_t step;  /* that one, and its rate */
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

struct gf_method {
	const struct gf_method_ops *ops;
	struct gf_method_env env;
	struct gf_update updater;
	struct gf_engine
		*engine; /* for everything else that communicates, too */
	void *priv;      /* of a device */
	struct gf_exchange exchange; /* of the host */
	/* Steps of this process and those in flight that it began with: begun,
	 * whose messages were seen to end (the host's), and applied; over NCCL
	 * that is enqueued. The i-th (from 0) is in slot (i + shift) % K. */
	size_t begun, arrived, applied, shift;
	bool due;   /* this step's update applies a gradient */
	size_t age; /* so many steps ago it was made */
	bool skip;  /* but not that one, which is bad */
	struct gf_loss_scale scale;
	/* As of gf_method_settle: gradients that have come and wait to be
	 * applied, oldest first; K - 1 pools, zeros where there is none. */
	float *flight;
	uint64_t nflight;
	uint64_t *flight_bad; /* per age: is it bad; and its loss scale */
	double *flight_scale;
	size_t restored;  /* the first so many steps' badness is known so */
	uint64_t skipped; /* steps so far */
	struct gf_message_times *times;
	uint64_t told_bytes; /* sent, and told of */
	struct gf_method_late late;
};

/* Where gradients come together: on the host, or on GPUs. */
struct gf_method_ops {
	const char *name;
	int (*open)(struct gf_method *m, struct gf_error *err);
	float *(*begin)(struct gf_method *m, size_t step);
	/* (optional) the step's forward passes are enqueued */
	void (*forward_end)(struct gf_method *m);
	void (*ready)(struct gf_method *m, size_t tensor);
	void (*backward_end)(struct gf_method *m);
	int (*exchange)(struct gf_method *m, size_t step, struct gf_error *err);
	void (*update)(struct gf_method *m, size_t step, double lr);
	uint64_t (*sent_bytes)(struct gf_method *m);
	const struct gf_message_times *(*times)(const struct gf_method *m);
	/* After exchange: of the step before, or NULL: not known. (optional) */
	const struct gf_device_durations *(*durations)(
		const struct gf_method *m);
	struct gf_engine_totals (*totals)(const struct gf_method *m);
	uint64_t (*dense_bytes)(const struct gf_method *m);
	double (*handling_s)(const struct gf_method *m);
	void (*count_from)(struct gf_method *m, size_t steps);
	/* (optional) */
	void (*state)(struct gf_method *m, struct gf_state *s);
	int (*settle)(struct gf_method *m, struct gf_error *err);
	int (*restore)(struct gf_method *m, struct gf_error *err);
	void (*close)(struct gf_method *m);
};

extern const struct gf_method_ops gf_method_host, gf_method_device;

/* Refuses a plan that no method here does: -ENOTSUP says what is missing. */
int gf_method_check(const struct gf_plan *plan, struct gf_error *err);
/* What checkpoints and logs call it: the selection's name. */
const char *gf_method_name(const struct gf_plan *plan);

/* Collective: returns after all ranks have agreed. */
int gf_method_open(struct gf_method *m, const struct gf_method_env *env,
		   struct gf_error *err);
/* Of a method that selects on a GPU, as struct gf_stage_taker wants them. */
int gf_method_take(void *method, struct gf_gpu_stream *s, size_t tensor,
		   struct gf_error *err);
int gf_method_may_take(void *method, bool wait, bool *now,
		       struct gf_error *err);
/* LATE, above; a method that is not late has nothing to do. */
void gf_method_need(void *method, size_t tensor);
int gf_method_take_rest(struct gf_method *m, struct gf_error *err);
/* Adds what must survive a stop, apart from the parameters. */
void gf_method_state(struct gf_method *m, struct gf_state *s);
/* What it communicates with beside gradients. */
struct gf_team gf_method_team(const struct gf_method *m);
/* Accepts one whose open failed, and one that is all zero. */
void gf_method_close(struct gf_method *m);

/* Where backward writes: the device's memory if gradients stay there. */
static inline float *gf_method_begin(struct gf_method *m, size_t step)
{
	return m->ops->begin(m, step);
}
static inline void gf_method_forward_end(struct gf_method *m)
{
	if (m->ops->forward_end)
		m->ops->forward_end(m);
}
static inline void gf_method_ready(struct gf_method *m, size_t tensor)
{
	m->ops->ready(m, tensor);
}
static inline void gf_method_backward_end(struct gf_method *m)
{
	m->ops->backward_end(m);
}
/* 1: a gradient is infinite or not a number, which ends the run on all ranks
 * alike; err names the step, and the tensor where it is known. */
static inline int gf_method_exchange(struct gf_method *m, size_t step,
				     struct gf_error *err)
{
	return m->ops->exchange(m, step, err);
}
/* In a replay nothing but the order of things. */
static inline void gf_method_update(struct gf_method *m, size_t step, double lr)
{
	m->ops->update(m, step, lr);
}
/* Bytes that this rank has sent, since it was last asked, in messages that have
 * been waited for: of stale gradients K - 1 steps late, and of late messages
 * what this step's forward has waited for and this step's exchange. */
static inline uint64_t gf_method_sent_bytes(struct gf_method *m)
{
	return m->ops->sent_bytes(m);
}
/* Times of the messages that the last exchange waited for, by the plan's
 * nmessages; NAN if there was nothing to wait for; borrowed. */
static inline const struct gf_message_times *
gf_method_times(const struct gf_method *m)
{
	return m->ops->times(m);
}
/* What the step before took on a device, to which the host's clock says
 * nothing; NULL: the host's is right, or nothing is known yet. */
static inline const struct gf_device_durations *
gf_method_durations(const struct gf_method *m)
{
	return m->ops->durations ? m->ops->durations(m) : NULL;
}
/* As gf_engine_totals, _dense_bytes, _handling_s and _count_from. */
static inline struct gf_engine_totals
gf_method_totals(const struct gf_method *m)
{
	return m->ops->totals(m);
}
static inline uint64_t gf_method_dense_bytes(const struct gf_method *m)
{
	return m->ops->dense_bytes(m);
}
static inline double gf_method_handling_s(const struct gf_method *m)
{
	return m->ops->handling_s(m);
}
static inline void gf_method_count_from(struct gf_method *m, size_t steps)
{
	m->ops->count_from(m, steps);
}
/* Before the state is looked at: waits for what is under way, which changes
 * nothing of the results. 1: as exchange. */
static inline int gf_method_settle(struct gf_method *m, struct gf_error *err)
{
	return m->ops->settle(m, err);
}
/* After it was read: goes on from there. -EINVAL: it cannot be. */
static inline int gf_method_restore(struct gf_method *m, struct gf_error *err)
{
	return m->ops->restore(m, err);
}

#endif
