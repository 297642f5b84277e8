/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_METHOD_H
#define GF_TRAIN_METHOD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "comm/comm.h"
#include "doc/plan.h"
#include "optim/sgd.h"
#include "rt/engine.h"
#include "train/state.h"

/*
 * A method decides which gradients go out and when they are applied: what the
 * plan's selection and pipeline say. It owns the gradient pool, the engine
 * that moves it, the optimiser's state, and whatever else it must remember
 * (residuals, histories, gradients in flight). One file each, one entry in
 * registry.c; the loop knows only this interface.
 *
 * A step, from the compute thread:
 *	grads = begin(m, step);		// where backward writes
 *	ready(m, tensor) ...		// from backward, in generation order
 *	backward_end(m);
 *	exchange(m, step, &err);	// until what this step applies is there
 *	update(m, step, &sgd);		// parameters and optimiser state
 * Steps count from 1 over the whole run, also behind a resume.
 */
struct gf_method_env {
	struct gf_comm *comm;       /* borrowed */
	const struct gf_plan *plan; /* bound, borrowed */
	float *params;              /* flat, generation order; NULL: a replay */
	const struct gf_shape *shapes; /* ntensors; NULL: a replay */
	double timeout_s;
};

struct gf_method {
	const struct gf_method_ops *ops;
	struct gf_engine *engine; /* for everything else that communicates */
	void *priv;
};

struct gf_method_ops {
	const char *name;
	const char *description; /* one line */
	/* Is this what the plan asks for? */
	bool (*serves)(const struct gf_plan *plan);
	/* Collective: returns after all ranks have agreed. */
	int (*open)(const struct gf_method_env *env, struct gf_method *m,
		    struct gf_error *err);
	float *(*begin)(struct gf_method *m, size_t step);
	void (*ready)(struct gf_method *m, size_t tensor);
	void (*backward_end)(struct gf_method *m);
	int (*exchange)(struct gf_method *m, size_t step, struct gf_error *err);
	void (*update)(struct gf_method *m, size_t step,
		       const struct gf_sgd *sgd);
	/* Times of the messages that the last exchange waited for: the plan's
	 * nmessages, borrowed. */
	const struct gf_message_times *(*times)(const struct gf_method *m);
	/* Adds what must survive a stop, apart from the parameters. */
	void (*state)(struct gf_method *m, struct gf_state *s);
	/* Accepts a method whose open failed. */
	void (*close)(struct gf_method *m);
};

extern const struct gf_method_ops *const gf_methods[]; /* NULL-terminated */

/* The method that a plan asks for; -ENOTSUP says what is missing. */
int gf_method_find(const struct gf_plan *plan, const struct gf_method_ops **ops,
		   struct gf_error *err);

#endif
