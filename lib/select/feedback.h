/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECT_FEEDBACK_H
#define GF_SELECT_FEEDBACK_H

#include <stddef.h>

#include "base/error.h"
#include "ckpt/state.h"

/*
 * Error feedback (Seide et al. 2014; Karimireddy et al. 2019): what a step did
 * not send is a residual, which is added to the gradients of the next step.
 *
 * In a step, for elements [first, first + count) of the pool:
 *	gf_feedback_add		gradients += residual
 *	... the selection takes out of the gradients what it sends ...
 *	gf_feedback_commit	residual = gradients, gradients = 0
 * Until the commit the residual is that of the step before, so that a step
 * whose gradients are not finite leaves it alone.
 */
struct gf_feedback {
	float *residual; /* laid out as the pool */
	size_t count_elems;
};

/* -ENOMEM. */
int gf_feedback_open(struct gf_feedback *f, size_t count_elems,
		     struct gf_error *err);
void gf_feedback_close(struct gf_feedback *f);
/* Adds the residual to a checkpoint's arrays. */
void gf_feedback_state(struct gf_feedback *f, struct gf_state *list,
		       const char *name);

/* data: the pool's memory. */
void gf_feedback_add(const struct gf_feedback *f, float *data, size_t first,
		     size_t count);
void gf_feedback_commit(struct gf_feedback *f, float *data, size_t first,
			size_t count);

#endif
