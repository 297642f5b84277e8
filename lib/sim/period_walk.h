/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_PERIOD_WALK_H
#define GF_SIM_PERIOD_WALK_H

#include "base/rng.h"
#include "sim/period_time.h"

/*
 * Groups that are not alike, period after period. Each takes its own steps. An
 * outer exchange starts when the last group has reached the step that begins
 * it, and `delay` steps later each group waits for its end. So a group that is
 * late may catch up in the steps beside an exchange, before others wait for it.
 * While the exchange runs, a group's steps are slower as sim/period_time.h has
 * it: groups that are alike take gf_sim_period's times.
 *
 * Steps are drawn from a run of the group's kind by itself: GF_WALK_BLOCK steps
 * as they followed each other there, from a random one on. Of more blocks than
 * GF_WALK_DRAWN, so many are drawn, and the distance of their sum from the mean
 * grows with the root of the number.
 */
enum { GF_WALK_BLOCK = 16, GF_WALK_DRAWN = 16 };

struct gf_group_kind {
	size_t groups;         /* of this kind; > 0 */
	const double *steps_s; /* of the run; borrowed */
	size_t nsteps;         /* > 0 */
	/* a step without jitter, and its model as slow as the group is */
	struct gf_sim_result step;
	struct gf_model_profile *model;
};

struct gf_period_walk {
	const struct gf_period *period;    /* borrowed */
	const struct gf_group_kind *kinds; /* borrowed */
	size_t nkinds;
	double **sums_s; /* per kind: of its first 0 to nsteps steps */
	double *now_s;   /* per group, kind by kind */
	struct gf_rng rng;
};

void gf_period_walk_init(struct gf_period_walk *w,
			 const struct gf_period *period,
			 const struct gf_group_kind *kinds, size_t nkinds,
			 uint64_t seed);
void gf_period_walk_release(struct gf_period_walk *w);
/* A period more, whose outer exchanges take these times. Returns when the last
 * group has ended it. */
double gf_period_walk_on(struct gf_period_walk *w,
			 const struct gf_outer_time *fragments);

#endif
