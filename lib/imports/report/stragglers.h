/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_REPORT_STRAGGLERS_H
#define GF_REPORT_STRAGGLERS_H

#include "imports/job.h"

/*
 * What slow ranks cost a run, by simulating its steps again without them (Lin et al. 2025,
 * "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI).
 *
 * On every rank a step begins where the last message of the step before has ended, for which all
 * ranks have waited; update, loading, forward and backward follow. A message starts when the last
 * rank has made it, and then takes as long as it took on the rank that came last. A rank that is
 * not late does, in every step and message by message, what the median rank does of those that are
 * as early as the first but for noise.
 */
struct gf_straggler {
	int rank;
	double factor; /* by which it computes longer than if it were not late */
	double noise;  /* of its steps: standard deviation / median */
	double cost_s; /* of a step, if it alone were late */
};

struct gf_stragglers {
	/* medians over steps: */
	double iteration_s; /* a step, simulated */
	double without_s;   /* no rank late */
	struct gf_straggler *ranks;
	size_t nranks;
	size_t slowest; /* the index of the one that costs most */
};

/* Of a job whose traces of all ranks are there. The lanes: of its plan, or as many messages as it
 * had under way at once. -EINVAL: it lacks what this needs, with what is missing; -ENOTSUP: a
 * period, gradients that are stale, or messages in halves, of a plan that is not NULL. */
int gf_stragglers_find(const struct gf_import_job *job, const struct gf_plan *p,
		       struct gf_stragglers *out, struct gf_error *err);
void gf_stragglers_release(struct gf_stragglers *s);

#endif
