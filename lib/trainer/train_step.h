/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_TRAIN_STEP_H
#define GF_TRAINER_TRAIN_STEP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trainer/computing.h"
#include "trainer/groups.h"
#include "trainer/method.h"
#include "trainer/event_ring.h"

struct gf_step_outcome {
	double loss; /* mean over this rank's samples */
	size_t correct;
	uint64_t sent_bytes, dense_bytes; /* by this rank, since the last */
	double loss_scale;                /* that it was made with; 0: none */
	size_t skipped;                   /* steps so far whose gradient was not applied */
	double seconds;                   /* by the clock, loading included */
};

/* The parts that steps are made of; the struct is the caller's. */
struct gf_stepper {
	struct gf_compute *compute; /* borrowed */
	struct gf_method *method;
	struct gf_timeline *timeline;
	struct gf_groups *groups; /* NULL: there is no period */
	/* Micro-batches whose mean gradient is exchanged once. More than one want `sum`, of all
	 * elements, for the gradients before the last; NULL: the compute adds them up
	 * (backward_early). */
	size_t accumulate;
	const size_t *counts; /* elements of each of ntensors; as sum */
	float *sum;
};

/* One step at the rate lr, recorded in the timeline. An error leaves the ranks out of step with
 * each other: the run is over. */
int gf_train_step(struct gf_stepper *s, size_t step, double lr, struct gf_step_outcome *out,
		  struct gf_error *err);

#endif
