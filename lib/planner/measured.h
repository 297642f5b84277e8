/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_MEASURED_H
#define GF_PLANNER_MEASURED_H

#include <stddef.h>

#include "base/error.h"
#include "doc/plan.h"

/*
 * What a run of a plan took, read from the Chrome trace that gf-train (or
 * gf-sim) wrote: medians over steps, the first left out where there are more,
 * of the slowest rank's time in each. Times count from the start of forward.
 * In forward, ranks may wait for what messages of the step before bring (slices
 * of category late): forward_s is without, forward_end_s with these waits.
 */
struct gf_measured {
	size_t nsteps; /* that the medians are of */
	double forward_s, forward_end_s, backward_end_s, update_s, iteration_s;
	double *ready_s;                       /* per tensor */
	struct gf_predicted_message *messages; /* per message */
};

/* -EINVAL: no trace of this plan, with what is missing. */
int gf_measured_read(const char *text, size_t size, const char *file,
		     const struct gf_plan *p, struct gf_measured *m,
		     struct gf_error *err);
void gf_measured_release(struct gf_measured *m);

#endif
