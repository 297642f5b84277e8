/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_TRAINER_H
#define GF_TRAIN_TRAINER_H

#include "optim/ema.h"
#include "optim/rate.h"
#include "train/computing.h"
#include "train/groups.h"
#include "train/method.h"
#include "run/snapshot.h"
#include "train/train_step.h"
#include "train/tally.h"
#include "run/team.h"
#include "train/train.h"

/* A run in progress; private to trainer.c, which opens and closes it,
 * lengths.c, which says how long it is, and loop.c, which runs it. */
struct gf_trainer {
	const struct gf_train_config *config;
	struct gf_train_result *result;
	struct gf_team team;
	struct gf_method method;
	struct gf_groups groups;
	struct gf_compute compute;
	struct gf_state state;
	struct gf_run_identity id;
	struct gf_rate rate;
	size_t *drops; /* the rate's, in steps */
	struct gf_optim_config optim;
	struct gf_ema ema;
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
	bool resharded; /* it goes on from what other ranks left */
};

/* Collective. Ready to take step result->first_step. */
int gf_trainer_open(struct gf_trainer *t, const struct gf_train_config *config,
		    struct gf_train_result *result, struct gf_error *err);
/* Also after a failed open. */
void gf_trainer_close(struct gf_trainer *t);

/* Sets from config and data (lengths.c): the steps of an epoch and of the run,
 * the run's rate, and how often it checks and writes. -EINVAL: too little data,
 * or fewer steps than the plan's staleness. */
int gf_trainer_set_lengths(struct gf_trainer *t, struct gf_error *err);

#endif
