/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIMULATOR_STEP_LISTING_H
#define GF_SIMULATOR_STEP_LISTING_H

#include "base/text.h"
#include "documents/trace.h"
#include "simulator/replay/replay_plan.h"
#include "simulator/whatif/whatif.h"

/*
 * A replay told step by step: the iteration, every message with its times in the replay and in the
 * step model, every step of every rank; of a long program a row for each stage of a message and
 * kind of step. `by` is the algorithm of a step's stage. The one call of mpi or nccl is shown as
 * the ring that it is taken for.
 */
void gf_steps_table(const struct gf_plan *p, const struct gf_replayed *r, size_t window,
		    struct gf_text *out);

/* One simulated iteration as a Chrome trace, drawn as gf-train draws measured ones: compute is on
 * thread 0. Message slices with {message, first, last, bytes} are on the lanes' threads. An instant
 * marks when each tensor is ready. r: its replay, whose ranks follow with a process each, with
 * sends, receives and local steps as slices; or NULL. The caller frees. */
char *gf_outcome_trace_text(const struct gf_plan *p, const struct gf_outcome *o,
			    const struct gf_replayed *r);

/* One step with where and when, and what carries it out. */
struct gf_listed_step {
	size_t message, step;
	int rank;
	const char *by; /* the algorithm of its stage, else of its message */
	const struct gf_step *is;
	double bytes;
	struct gf_replay_times at;
};
/* Step i of one rank's program for one message. */
struct gf_listed_step gf_listed_step(const struct gf_plan *p, const struct gf_replayed *r,
				     size_t message, int rank, size_t i);

#endif
