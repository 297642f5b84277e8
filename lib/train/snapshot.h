/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_SNAPSHOT_H
#define GF_TRAIN_SNAPSHOT_H

#include <stddef.h>

#include "base/error.h"
#include "train/state.h"
#include "train/team.h"

/*
 * State to and from checkpoint sets (ckpt/set.h). All calls are collective:
 * every rank returns the same.
 */

/* What a run must have in common with the one it goes on from. */
struct gf_run_identity {
	const char *model;  /* name */
	const char *method; /* gf_method_name */
	const char *optimizer;
	size_t batch;      /* per rank */
	size_t accumulate; /* such batches in a step */
	size_t staleness;
	size_t samples; /* of the training part */
	size_t seed;
	const char *training; /* the whole document, kept for people */
};

/* The set of step `step`; on failure those that were there are untouched. */
int gf_snapshot_write(struct gf_team *team, const char *dir, size_t step,
		      const struct gf_run_identity *id,
		      const struct gf_state *state, struct gf_error *err);

/* Refuses a folder that already holds sets, which are another run's. */
int gf_snapshot_claim(struct gf_team *team, const char *dir,
		      struct gf_error *err);

/* The newest complete set into `state`; *step is the one it was made after. */
int gf_snapshot_read(struct gf_team *team, const char *dir, size_t *step,
		     const struct gf_run_identity *id,
		     const struct gf_state *state, struct gf_error *err);

/* Are the shared arrays the same, bit for bit, on all ranks? 1 if not, with
 * the first rank and array that differ from rank 0's in err. */
int gf_snapshot_compare(struct gf_team *team, size_t step,
			const struct gf_state *state, struct gf_error *err);

#endif
