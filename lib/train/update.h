/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_UPDATE_H
#define GF_TRAIN_UPDATE_H

#include <stddef.h>

#include "base/error.h"
#include "doc/model.h"
#include "doc/plan.h"
#include "optim/sgd.h"
#include "train/state.h"

/*
 * The update rule: what a gradient does to the parameters, and what the
 * optimiser remembers. How gradients come together is the exchange's business;
 * it calls one of the two below, once it has the sum over ranks. `scale` turns
 * what it has into the mean.
 */
struct gf_update {
	float *params;          /* borrowed, flat; NULL: a replay, no updates */
	float *velocity;        /* likewise; own */
	const size_t *offsets;  /* of the tensors, ntensors + 1; borrowed */
	const struct gf_plan *plan;    /* for names; borrowed */
	const struct gf_shape *shapes; /* of the tensors; borrowed */
};

/* What open takes: all but velocity is filled in. */
int gf_update_open(struct gf_update *u, struct gf_error *err);
void gf_update_close(struct gf_update *u);
void gf_update_state(struct gf_update *u, struct gf_state *s);

/* Every element, as synchronous SGD does. */
void gf_update_all(struct gf_update *u, const struct gf_sgd *sgd,
		   const float *grad, float scale);
/*
 * Elements first to first + count - 1 only, the others keep their velocity
 * (GradientFlow's momentum correction): u = m*u + lr*(scale*grad + d*w),
 * w = w - u. The rate is inside u, so that a velocity which waits is not
 * scaled by a later rate.
 */
void gf_update_part(struct gf_update *u, const struct gf_sgd *sgd, size_t first,
		    size_t count, const float *grad, float scale);

#endif
