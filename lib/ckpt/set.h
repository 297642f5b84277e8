/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CKPT_SET_H
#define GF_CKPT_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * A checkpoint is a set of files, one per rank, that appears whole or not at
 * all, in a folder that every rank sees:
 *
 *	DIR/step-N/rank-R.safetensors
 *
 * Rank 0 begins; all ranks write their part into DIR/step-N.tmp and sync it;
 * when all have agreed that they succeeded, rank 0 publishes: it renames the
 * folder and removes what is older than the set before, and what a run that
 * went on from an earlier step, or counts steps anew, left of later ones. Until
 * then the sets that were there are untouched. The caller does the agreeing:
 *nothing here communicates.
 *
 * Only files named rank-*.safetensors are ever removed, and only folders that
 * are empty after that.
 */

/* Can folders be made in DIR, or DIR itself? Leaves everything as it was. */
int gf_ckpt_try(const char *dir, struct gf_error *err);

/* Makes DIR and DIR/step-N.tmp, and removes what an earlier run left
 * unfinished. Rank 0, before the others write. */
int gf_ckpt_begin(const char *dir, size_t step, struct gf_error *err);

/* The file of one rank, in the unfinished or in the published set; the caller
 * frees. */
char *gf_ckpt_part(const char *dir, size_t step, int rank, bool unfinished);

/* Rank 0, when all ranks have written: the set is there, and the newest. */
int gf_ckpt_publish(const char *dir, size_t step, int ranks,
		    struct gf_error *err);

/* Rank 0, when one has failed: removes the unfinished set. */
void gf_ckpt_discard(const char *dir, size_t step);

/*
 * The newest complete set: one that was published, whose rank 0 says by how
 * many ranks it was written (metadata "ranks") and which has a file of each.
 * -ENOENT if there is none.
 */
int gf_ckpt_latest(const char *dir, size_t *step, struct gf_error *err);

/* Is there a newer set than `step`, which is not complete? why: what is wrong
 * with the newest. */
bool gf_ckpt_passed_over(const char *dir, size_t step, struct gf_error *why);

/* Whether DIR holds any set, complete or not: a new run must not mix its own
 * with those of another, as the higher step would count as the newer. */
bool gf_ckpt_any(const char *dir);

/* The metadata that makes a part tell its set. */
#define GF_CKPT_RANKS "ranks"
#define GF_CKPT_STEP  "step"

#endif
