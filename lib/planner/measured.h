/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_MEASURED_H
#define GF_PLANNER_MEASURED_H

#include <stddef.h>

#include "base/error.h"
#include "doc/plan.h"

/*
 * The times of a plan's run, read from the Chrome trace that gf-train (or gf-sim) wrote. They are
 * medians over steps of the slowest rank's time in each; the first step is left out if there are
 * more. Times count from the start of forward. In forward, ranks may wait for messages of the step
 * before (slices of category late): forward_s is without these waits, forward_end_s with them.
 */
struct gf_measured {
	size_t nsteps;  /* that the medians are of */
	double alone_s; /* forward and backward of a batch without exchange, the slowest rank's
			 * mean; 0: the trace does not say */
	double forward_s, forward_end_s, backward_end_s, update_s, iteration_s;
	double *ready_s;                       /* per tensor */
	struct gf_predicted_message *messages; /* per message */
};

/* -EINVAL: no trace of this plan, with what is missing. */
int gf_measured_read(const char *text, size_t size, const char *file, const struct gf_plan *p,
		     struct gf_measured *m, struct gf_error *err);
void gf_measured_release(struct gf_measured *m);

#endif
