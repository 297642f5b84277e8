/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_PREDICT_H
#define GF_TRAIN_PREDICT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "doc/plan.h"
#include "doc/training.h"

/*
 * What a run of the plan is compared with; NULL, with the reason in why ("" if
 * the plan predicts nothing).
 *
 * The plan's own prediction holds for the batch that it was made for. Where the
 * run is another, the step model is run again: for accumulated batches with
 * all but the last in front of the exchange; for a replay with overlap_slowdown
 * 1, since sleeping is not slowed by messages in flight. Such a one is kept in
 * *own, whose messages are the caller's to free.
 */
const struct gf_prediction *
gf_train_prediction(const struct gf_plan *plan,
		    const struct gf_training *training, bool replay,
		    struct gf_prediction *own, struct gf_error *why);

#endif
