/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_METHOD_H
#define GF_TRAIN_METHOD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "comm/comm.h"
#include "doc/plan.h"
#include "optim/optimizer.h"
#include "train/exchange.h"
#include "train/state.h"
#include "train/update.h"

/*
 * A training method is what the plan's axes make together: an exchange (which
 * gradients go, train/exchange.h), a staleness (which step's are applied) and
 * an update rule (what they do, train/update.h). This is the pipeline of steps
 * between the other two; the loop knows only this interface.
 *
 * A step, from the compute thread:
 *	grads = gf_method_begin(m, step);	// where backward writes
 *	gf_method_ready(m, tensor) ...		// from backward
 *	gf_method_backward_end(m);
 *	gf_method_exchange(m, step, &err);	// what this step applies
 *	gf_method_update(m, step, lr);		// parameters and optimiser
 * Steps count from 1 over the whole run, also behind a resume.
 */
struct gf_method_env {
	struct gf_comm *comm;       /* borrowed */
	const struct gf_plan *plan; /* bound, borrowed */
	float *params;              /* flat, generation order; NULL: a replay */
	const struct gf_shape *shapes; /* ntensors; NULL: a replay; borrowed
					* until gf_method_state */
	size_t epoch_steps;            /* 0: a replay */
	const struct gf_optim_config *optim; /* NULL: a replay */
	double timeout_s;
	bool skip_bad; /* a step with a bad gradient: skip it, else end */
};

struct gf_method {
	struct gf_method_env env;
	struct gf_exchange exchange;
	struct gf_update updater;
	struct gf_engine *engine; /* for everything else that communicates */
	size_t slot;              /* of what update applies */
	bool skip;                /* it is not to be applied */
	size_t skipped;           /* steps so far */
	struct gf_message_times *times;
	bool opened;
};

/* Refuses a plan that no method here does: -ENOTSUP says what is missing. */
int gf_method_check(const struct gf_plan *plan, struct gf_error *err);
/* What checkpoints and logs call it: the selection's name. */
const char *gf_method_name(const struct gf_plan *plan);

/* Collective: returns after all ranks have agreed. */
int gf_method_open(struct gf_method *m, const struct gf_method_env *env,
		   struct gf_error *err);
float *gf_method_begin(struct gf_method *m, size_t step);
void gf_method_ready(struct gf_method *m, size_t tensor);
void gf_method_backward_end(struct gf_method *m);
/* 1: a gradient is infinite or not a number, which ends the run on all ranks
 * alike; err names the tensor and the step. */
int gf_method_exchange(struct gf_method *m, size_t step, struct gf_error *err);
void gf_method_update(struct gf_method *m, size_t step, double lr);
/* Times of the messages that the last exchange waited for, by the plan's
 * nmessages; borrowed. */
const struct gf_message_times *gf_method_times(const struct gf_method *m);
/* Adds what must survive a stop, apart from the parameters. */
void gf_method_state(struct gf_method *m, struct gf_state *s);
/* Accepts one whose open failed, and one that is all zero. */
void gf_method_close(struct gf_method *m);

#endif
