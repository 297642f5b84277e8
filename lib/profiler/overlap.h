/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROFILER_OVERLAP_H
#define GF_PROFILER_OVERLAP_H

#include <stdbool.h>

#include "base/error.h"
#include "profiler/contest/device.h"
#include "profiler/compute_step.h"
#include "documents/profile.h"

/*
 * What backward and messages do to each other.
 *
 * overlap_slowdown: how much longer backward takes while messages are in flight, if nothing else is
 * known.
 *
 * In the time model a message that takes d alone takes d during backward, too, and in that time
 * backward advances by d / slowdown. So what counts is the work that backward loses per second of
 * communication as measured alone: with backward longer by `lost` for messages that alone take
 * `busy`, slowdown = 1 / (1 - lost / busy). Where communication itself slows as well (ranks with
 * fewer cores than threads), this charges its delay to backward: the sum is right, the split is the
 * model's.
 *
 * Between hosts the split is measured, too: `compute` is how much longer backward takes in the time
 * in which messages are in flight, and `message` how much longer these take than alone. Messages
 * are in flight before backward begins, so that what a link lets pass after a pause does not count.
 *
 * On a GPU backward is timed by events. If messages go by NCCL, they are enqueued on a lane after
 * forward and run beside backward. Backward then loses the blocks and the memory rate that NCCL
 * uses. Otherwise the host exchanges the messages, and backward loses the time that its launches
 * wait for the host.
 */
struct gf_measure_overlap {
	struct gf_comm *comm;
	/* Messages go by NCCL, if it has that. */
	const struct gf_contest_device *device;
	const struct gf_allreduce_cost *cost; /* the algorithm to load with */
	int lanes;                            /* messages in flight at once; 0: one */
	size_t bytes;                         /* of a message; 0: the gradient's, at most 4 MiB */
	int threads;                          /* that compute, per rank */
	bool callers_memory;                  /* profiler/chain.h */
	double backward_s;                    /* alone, about */
	int repeats;
	double timeout_s;
};

/* All >= 1; compute and message are 0 where they are not measured. */
struct gf_measure_mutual {
	double overlap_slowdown, compute, message;
};

/* Collective; all ranks get the same. */
int gf_measure_overlap(const struct gf_measure_overlap *config, struct gf_measure_step *step,
		       struct gf_measure_mutual *mutual, struct gf_error *err);

/* What small messages tell, each sent when backward has made a gradient. */
struct gf_measure_issued {
	/* What a message costs backward, beside the time in which it is in flight: the time that
	 * they take from it, shared among them. */
	double issue_s;
	/* How much longer one takes, on the rank that is ready last, than when nothing computes. */
	double extra_s;
};

/* Collective; all ranks get the same. Between hosts. */
int gf_measure_issue(const struct gf_measure_overlap *config, struct gf_measure_step *step,
		     struct gf_measure_issued *issued, struct gf_error *err);

/* The formula, limited to what a measurement can tell: [1, 100]. */
double gf_measure_slowdown(double lost_s, double busy_s);

#endif
