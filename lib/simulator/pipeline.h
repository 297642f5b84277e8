/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIMULATOR_PIPELINE_H
#define GF_SIMULATOR_PIPELINE_H

#include "simulator/step.h"

/*
 * Stale gradients step by step (Pipe-SGD, Li et al. 2018). On every rank a step is update, forward
 * and backward. It begins when the rank has ended the step before and all ranks have exchanged the
 * gradients of `staleness` steps ago. A message is ready when the last rank has made it. Messages
 * start as simulator/step.h says, after those of the steps before; so an exchange runs beside the
 * steps that follow. It slows all of their compute, and while the last rank computes, this slows
 * every message, whatever step it is of.
 */
struct gf_pipeline {
	const struct gf_sim_input *in; /* borrowed */
	int staleness;
	int ranks;
	size_t steps;              /* so far */
	struct gf_sim_state state; /* its times by gf_pipeline_slot */
	struct gf_sim_lags lags;
	double waited_s;                    /* until the last step could begin: an exchange's end */
	double compute_s;                   /* forward, backward, what issuing messages takes */
	double *ended_s;                    /* per rank: its last step */
	double *done_s;                     /* per rank: the work that forward begins at */
	double update_end_s, forward_end_s; /* rank 0's, in its last step */
	struct gf_sim_start *pending;       /* made or to be made, not yet started */
	size_t npending, next;              /* to start */
	int *late;                          /* ranks that may make a message last */
	int nlate;
};

/* in: without split messages; stays the caller's. staleness >= 1. */
void gf_pipeline_init(struct gf_pipeline *p, const struct gf_sim_input *in, int staleness,
		      int ranks);
void gf_pipeline_release(struct gf_pipeline *p);
/* One step more, in which a rank's compute takes factor[rank] times as long. Returns when the last
 * rank began it. */
double gf_pipeline_step(struct gf_pipeline *p, const double *factor);
/* Where state.start_s and end_s have the messages of a step: until as many steps as `staleness`
 * have followed, the last of which waits for their ends.
 */
size_t gf_pipeline_slot(const struct gf_pipeline *p, size_t step);
/* When the last exchange has ended. No steps after it. */
double gf_pipeline_finish(struct gf_pipeline *p);

/* The time of a step in the long run, when all ranks are alike. */
double gf_pipeline_pace_s(const struct gf_sim_input *in, int staleness);
/* How long any of these messages was active; their starts do not decrease. */
double gf_sim_busy_s(const struct gf_predicted_message *messages, size_t n);

#endif
