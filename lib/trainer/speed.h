/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_SPEED_H
#define GF_TRAINER_SPEED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "documents/plan.h"
#include "documents/training.h"
#include "trainer/computing.h"

/*
 * The speed of the machine beside that of the profile, apart from the exchange. At the start and at
 * the end of a run, each rank computes forward and backward of a batch a few times and sends
 * nothing. The gradients are discarded, and what a pass changes besides, running statistics, is put
 * back.
 */
struct gf_speed_pass {
	double start_s;   /* gf_clock_s when the passes began */
	double seconds;   /* of one, the median; 0: not measured */
	double slowest_s; /* the slowest rank's seconds, as a profile has them */
};

struct gf_speed {
	struct gf_speed_pass first, last;
	/* The slowest rank's times divided by the profile's, and the mean of the two; 0: unknown.
	 */
	double at_start, at_end, factor;
	/* The plan's prediction for such a machine, where factor is not 0. */
	double iteration_s, compute_s;
};

/* Of the batch that is loaded, between steps. A net on a device is not measured. */
int gf_speed_measure(struct gf_compute *c, size_t count_elems, struct gf_speed_pass *pass,
		     struct gf_error *err);
/* Has the plan times to compare with, and for this batch? */
bool gf_speed_wanted(const struct gf_plan *plan, const struct gf_training *training);
/* Fills in what follows from the passes. */
void gf_speed_compare(const struct gf_plan *plan, const struct gf_training *training,
		      struct gf_speed *m);

/* How long the exchange of an iteration took, divided by what was predicted for it there; 0: next
 * to nothing was predicted. */
double gf_speed_exchange(const struct gf_speed *m, double iteration_s);

/*
 * The prediction that a run of the plan is compared with. NULL: there is none, and why has the
 * reason ("" if the plan predicts nothing).
 *
 * The plan's own prediction holds for the batch and the number of accumulated batches that it was
 * made for. The step model is run again for another number. A replay has overlap_slowdown 1, since
 * sleeping is not slowed by messages in flight. The new prediction is kept in *own; the caller
 * frees its messages.
 */
const struct gf_prediction *gf_train_prediction(const struct gf_plan *plan,
						const struct gf_training *training, bool replay,
						struct gf_prediction *own, struct gf_error *why);

#endif
