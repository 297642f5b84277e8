/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_STEP_H
#define GF_TRAIN_STEP_H

#include <stddef.h>

#include "base/error.h"
#include "train/compute.h"
#include "train/method.h"
#include "train/timeline.h"

struct gf_step_outcome {
	double loss; /* mean over this rank's batch */
	size_t correct;
};

/* One step, recorded in `t`. An error leaves the ranks out of step with each
 * other: the run is over. */
int gf_train_step(struct gf_compute *c, struct gf_method *m,
		  const struct gf_sgd *sgd, struct gf_timeline *t, size_t step,
		  struct gf_step_outcome *out, struct gf_error *err);

#endif
