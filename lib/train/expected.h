/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_EXPECTED_H
#define GF_TRAIN_EXPECTED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "doc/plan.h"
#include "doc/training.h"

/*
 * The prediction that a run of the plan is compared with. NULL: there is none,
 * and why has the reason ("" if the plan predicts nothing).
 *
 * The plan's own prediction holds for the batch and the number of accumulated
 * batches that it was made for. The step model is run again for another number.
 * A replay has overlap_slowdown 1, since sleeping is not slowed by messages in
 * flight. The new prediction is kept in *own; the caller frees its messages.
 */
const struct gf_prediction *
gf_train_prediction(const struct gf_plan *plan,
		    const struct gf_training *training, bool replay,
		    struct gf_prediction *own, struct gf_error *why);

/* Are the plan's times those of a batch of this training? */
bool gf_train_times_hold(const struct gf_plan *plan,
			 const struct gf_training *training);

/* The step model again on a machine that takes `factor` times as long to
 * compute; the caller frees out->messages. */
int gf_train_predict_at(const struct gf_plan *plan,
			const struct gf_training *training, double factor,
			struct gf_prediction *out, struct gf_error *err);

#endif
