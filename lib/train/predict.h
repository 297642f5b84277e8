/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_PREDICT_H
#define GF_TRAIN_PREDICT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "doc/plan.h"

/*
 * What a run of the plan is compared with; NULL, with the reason in why ("" if
 * the plan predicts nothing).
 *
 * The plan's own prediction holds for the batch that it was made for. For a
 * replay the step model is run again with overlap_slowdown 1, everything else
 * being the plan's: sleeping is not slowed by messages in flight. That one is
 * kept in *own, whose messages are the caller's to free.
 */
const struct gf_prediction *gf_train_prediction(const struct gf_plan *plan,
						size_t batch, bool replay,
						struct gf_prediction *own,
						struct gf_error *why);

#endif
