/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_TRAINER_H
#define GF_TRAINER_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/optim/rate.h"
#include "trainer/computing.h"
#include "trainer/groups.h"
#include "trainer/method.h"
#include "checkpoints/run/snapshot.h"
#include "trainer/event_ring.h"
#include "trainer/statistics.h"
#include "checkpoints/run/team.h"
#include "trainer/train.h"
#include "checkpoints/state.h"
#include "base/error.h"
#include "documents/models/model.h"

struct gf_step_outcome {
	double loss; /* mean over this rank's samples */
	size_t correct;
	uint64_t sent_bytes, dense_bytes; /* by this rank, since the last */
	double loss_scale;                /* that it was made with; 0: none */
	size_t skipped;                   /* steps so far whose gradient was not applied */
	double seconds;                   /* by the clock, loading included */
};

/* The parts that steps are made of; the struct is the caller's. */
struct gf_stepper {
	struct gf_compute *compute; /* borrowed */
	struct gf_method *method;
	struct gf_timeline *timeline;
	struct gf_groups *groups; /* NULL: there is no period */
	/* Micro-batches whose mean gradient is exchanged once. More than one want `sum`, of all
	 * elements, for the gradients before the last; NULL: the compute adds them up
	 * (backward_early). */
	size_t accumulate;
	const size_t *counts; /* elements of each of ntensors; as sum */
	float *sum;
	struct gf_statistics *statistics; /* NULL: nobody wants them */
};

/* One step at the rate lr, recorded in the timeline. An error leaves the ranks out of step with
 * each other: the run is over. */
int gf_train_step(struct gf_stepper *s, size_t step, double lr, struct gf_step_outcome *out,
		  struct gf_error *err);

/*
 * Losses and hits of the steps since the ranks last met, and their sums over the epoch. Ranks meet
 * every few steps, not in each: a step stays free of any communication but its gradients.
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
	size_t batch; /* labels per rank and step */
	size_t pending;
	struct gf_tally_record own, *all;
	struct gf_train_row rows[GF_TALLY_STEPS];
	/* of the epoch, as of the last meeting: the same on every rank */
	double epoch_loss; /* sum of the steps' means */
	uint64_t epoch_correct, epoch_steps;
	/* of the epoch's steps that were run here; not part of checkpoints, as what is under way is
	 * counted when it ends */
	uint64_t epoch_sent_bytes, epoch_dense_bytes;
};

void gf_tally_note(struct gf_tally *t, size_t step, const struct gf_step_outcome *outcome);

/*
 * Collective. *rows, borrowed until the next note: one per step since the last meeting, over all
 * ranks' samples (epoch and rate are the caller's to fill). 1 if a loss was not finite, with the
 * first step and rank in err.
 */
int gf_tally_meet(struct gf_tally *t, struct gf_team *team, struct gf_train_row **rows,
		  size_t *nrows, struct gf_error *err);

/* The epoch's row, and a fresh start. */
struct gf_train_row gf_tally_epoch(struct gf_tally *t);

/* Collective: *score becomes the sum over ranks. */
int gf_tally_sum(struct gf_team *team, struct gf_score *score, struct gf_error *err);

/* A run in progress; private to trainer.c, which opens and closes it, complete_config.c, which says
 * how long it is, and loop.c, which runs it. */
struct gf_trainer {
	const struct gf_train_config *config;
	struct gf_train_result *result;
	struct gf_team team;
	struct gf_method *method;
	struct gf_groups groups;
	struct gf_compute compute;
	struct gf_state state;
	struct gf_run_identity id;
	struct gf_rate rate;
	size_t *drops; /* the rate's, in steps */
	struct gf_optim_config optim;
	struct gf_loss_scale scale;
	struct gf_stepper stepper;
	struct gf_tally tally;
	char *training; /* the document, as checkpoints keep it */
	char *codecs;   /* of the plan */
	char *ways;     /* of its messages */
	char *period;   /* of the plan, in words */
	size_t *counts; /* elements of each tensor */
	float *params;
	float *running; /* batch norm's statistics, mean over ranks */
	size_t epoch_steps, total_steps;
	size_t check_every, checkpoint_every; /* steps; check: 0 never */
	bool resharded;                       /* it goes on from what other ranks left */
};

/* Collective. Ready to take step result->first_step. */
int gf_trainer_open(struct gf_trainer *t, const struct gf_train_config *config,
		    struct gf_train_result *result, struct gf_error *err);
/* Also after a failed open. */
void gf_trainer_close(struct gf_trainer *t);

/* Sets from config and data (run_length.c): the steps of an epoch and of the run, the run's rate,
 * and how often it checks and writes. -EINVAL: too little data, or fewer steps than the plan's
 * staleness. */
int gf_trainer_set_lengths(struct gf_trainer *t, struct gf_error *err);

#endif
