/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_TALLY_H
#define GF_TRAIN_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ckpt/state.h"
#include "train/train_step.h"
#include "run/team.h"
#include "train/train.h"

/*
 * Losses and hits of the steps since the ranks last met, and their sums over
 * the epoch. Ranks meet every few steps, not in each: a step stays free of
 * any communication but its gradients.
 */
#define GF_TALLY_STEPS 16

struct gf_tally_record {
	uint64_t bad_step; /* first step whose loss was not finite; 0: none */
	double bad_loss;
	double loss[GF_TALLY_STEPS];
	uint64_t correct[GF_TALLY_STEPS];
	uint64_t sent_bytes[GF_TALLY_STEPS], dense_bytes[GF_TALLY_STEPS];
};

struct gf_tally {
	int ranks, servers;
	size_t batch;
	size_t pending;
	struct gf_tally_record own, *all;
	struct gf_train_row rows[GF_TALLY_STEPS];
	/* of the epoch, as of the last meeting: the same on every rank */
	double epoch_loss; /* sum of the steps' means */
	uint64_t epoch_correct, epoch_steps;
	/* of the epoch's steps that were run here; not part of checkpoints, as
	 * what is under way is counted when it ends */
	uint64_t epoch_sent_bytes, epoch_dense_bytes;
};

/* batch: labels per rank and step. Servers come after the ranks that compute,
 * and tell what they have sent. */
void gf_tally_init(struct gf_tally *t, int ranks, int servers, size_t batch);
void gf_tally_release(struct gf_tally *t);
/* The epoch's sums go into checkpoints. */
void gf_tally_state(struct gf_tally *t, struct gf_state *s);

void gf_tally_note(struct gf_tally *t, size_t step,
		   const struct gf_step_outcome *outcome);
bool gf_tally_full(const struct gf_tally *t);

/*
 * Collective. *rows, borrowed until the next note: one per step since the last
 * meeting, over all ranks' samples (epoch and rate are the caller's to fill).
 * 1 if a loss was not finite, with the first step and rank in err.
 */
int gf_tally_meet(struct gf_tally *t, struct gf_team *team,
		  struct gf_train_row **rows, size_t *nrows,
		  struct gf_error *err);

/* The epoch's row, and a fresh start. */
struct gf_train_row gf_tally_epoch(struct gf_tally *t);

/* Collective: *score becomes the sum over ranks. */
int gf_tally_sum(struct gf_team *team, struct gf_score *score,
		 struct gf_error *err);

#endif
