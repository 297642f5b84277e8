/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_REFINE_H
#define GF_PLANNER_REFINE_H

#include "base/text.h"
#include "collectives/codecs/codec.h"
#include "planner/make.h"
#include "simulator/predict.h"

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

/*
 * A model, a network and costs of selections as a run of the plan showed them.
 *
 * Compute and ready times are the measured ones, less what messages in flight slowed them by the
 * plan's own factors, and less what issuing messages took. Where the run also computed without
 * exchange, one factor makes forward and backward of a batch what they took there.
 *
 * An algorithm whose messages, of one codec, ran one at a time in at least three sizes is fitted
 * again; else its costs are multiplied by the median of measured over predicted durations. What a
 * message spent beside backward counts less, by the plan's message_slowdown and startup_extra_s. A
 * codec's cost is in the entry of the algorithm with that codec.
 *
 * With a selection, the network stays as it was, and what messages took beyond their transfers is
 * the selection's: fitted, or the median share of what was known. A selection that cuts messages
 * anew in every step stays as it was, too.
 */
struct gf_refined {
	struct gf_measured measured;
	struct gf_model_profile *model;
	struct gf_network *network; /* NULL: no all-reduce has a known cost */
	struct gf_processing processing;
};

/* From the trace of a run. p: the plan that was run, or NULL (refused). -EINVAL: the trace is not
 * of that plan. */
int gf_refine_trace(const struct gf_plan *p, const char *path, struct gf_refined *out,
		    struct gf_text *notes, struct gf_error *err);
void gf_refined_release(struct gf_refined *r);

/* The plan that was run goes on where the user does not change it: system, axes and codecs, which
 * `codecs` keeps. Borrows from p. */
void gf_request_follow(struct gf_request *r, struct gf_axes *axes, const struct gf_plan *p,
		       const char *codecs[GF_CODECS_MOST + 1]);

/* The differences of the new plan, as lines for the user. */
void gf_refine_compare(const struct gf_plan *before, const struct gf_measured *m,
		       const struct gf_plan *after, struct gf_text *notes);

/* A plan, what a run of it showed, and the plan's prices; all but the traffic is borrowed. */
struct gf_refining {
	const struct gf_plan *plan;
	const struct gf_measured *measured;
	const struct gf_fabric *fabric;
	struct gf_traffic traffic;
	const struct gf_model_profile *model; /* refined already */
};

/* Entries for the algorithms and codecs that the plan used, and the others as they were; notes say
 * what changed. A plan with a selection leaves them all, and *network NULL if there are none. `p`
 * gets what the plan knows, and the cost of its selection anew. */
int gf_refine_costs(const struct gf_refining *r, struct gf_network **network,
		    struct gf_processing *p, struct gf_text *notes, struct gf_error *err);

#endif
