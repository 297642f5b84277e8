/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_SCALE_H
#define GF_TRAINER_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "documents/plan.h"
#include "documents/training.h"

/*
 * The loss scale (Micikevicius et al. 2018): gradients are multiplied by a power of two before they
 * go out in few bits, so that small gradients do not vanish. The received sums are divided by it. A
 * dynamic scale is halved when a sum overflows, and that step is skipped. The scale is doubled
 * after `growth_steps` good steps. Every rank sees the same sums and so comes to the same scale.
 *
 * Scaling gradients is the same as scaling the loss if compute is f32. A net that computes in f16
 * scales its loss by the same number (gf_net_set_loss_scale), and an overflow in its backward shows
 * in the sum.
 */
struct gf_loss_scale {
	bool used; /* gradients are scaled, and divided by the ranks, before */
	bool dynamic;
	size_t growth_steps;
	double now; /* of the step that is begun next */
	/* A net's loss is scaled before a device has said how the step before ended. So what was
	 * known when that was updated is what the next one is made with, in forward and all of it;
	 * resumed runs, too. */
	bool half;
	double step, next; /* of the step under way, and the one after it */
	uint64_t good;     /* steps since it changed */
};

/* A gradient that overflows f16 unscaled and divided by the ranks is none that a training
 * survives. */
#define GF_LOSS_SCALE_LEAST 1.0

/* Has the plan a codec that overflows where f32 does not? */
bool gf_loss_scale_wanted(const struct gf_plan *plan);
/* Takes the scale that the training wants for this plan; half: the net computes in f16. -EINVAL:
 * its selection scales nothing. */
int gf_loss_scale_init(struct gf_loss_scale *s, const struct gf_training *t,
		       const struct gf_plan *plan, bool half, struct gf_error *err);
/* The scale of the gradients in the step under way. */
double gf_loss_scale_now(const struct gf_loss_scale *s);
/* A step that was made with `scale` came to this. True: it is to be skipped; false for a bad one:
 * no smaller scale can help. */
bool gf_loss_scale_note(struct gf_loss_scale *s, double scale, bool bad);

#endif
