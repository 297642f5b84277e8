/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_OPTIMIZER_BOUNDS_H
#define GF_DOCUMENTS_OPTIMIZER_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "documents/plan.h"

/*
 * What a plan's way to exchange gradients bears of an optimiser's momentum and rate, where dense
 * gradients of the same step bear what suits the model.
 *
 * Rates are compared by how far a gradient moves a weight in the long run, rate / (1 - momentum). A
 * selection that applies late what it kept back, in large pieces, bears less momentum on top, or
 * none (gf_select_plan.less_momentum).
 *
 * A delay bears a share of a suitable rate, by descent on a curvature h with gradients that are D
 * steps old:
 *	w(t+1) = w(t) + m (w(t) - w(t-1)) - r h w(t-D)
 * is stable up to the r h at which a root of z^(D-1) (z - 1)(z - m) + r h leaves the unit circle,
 * at an angle a where the phases add up to pi. That is r / (1 - m) = 1 / h for D = 1, whatever the
 * momentum. With 0.9 it is 38 / h without a delay, and 0.51, 0.35 and 0.26 / h for D = 2, 3 and 4.
 * Nesterov's momentum has (1 + m) w(t-D) - m w(t-D-1) in place of w(t-D): its look ahead makes up
 * for a part of the delay, and it bears 2.5 / h for D = 1. A selection's own momentum
 * (GF_SELECT_MOMENTUM) does not look ahead.
 *
 * None of this depends on the number of ranks. So where a rate is meant for a batch, the rate of
 * that batch bounds that of larger ones.
 */
struct gf_wants {
	double momentum; /* at most; INFINITY: any */
	double share;    /* of a suitable rate / (1 - momentum), (0, 1] */
	double clipped;  /* that share if gradients are clipped, <= share */
	bool nesterov;   /* it bears more if momentum looks ahead */
};

/* For an optimiser of that momentum, [0, 1), as far as it is allowed. Adds the reasons to why
 * (optional), in words that follow "because"; none: the plan bears everything. */
struct gf_wants gf_plan_wants(const struct gf_plan *p, bool nesterov, double momentum,
			      struct gf_text *why);

/* The largest stable r h; momentum in [0, 1). */
double gf_delay_bound(size_t delay, bool nesterov, double momentum);

/* The state that an optimiser of gf-train has per parameter, in bytes, told without the optimisers
 * themselves (trainer/optim), which must agree. -EINVAL: there is none of that name. */
int gf_optimizer_state_bytes(const char *name, double *bytes, struct gf_error *err);

#endif
