/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_EMBED_TRAINER_H
#define GF_EMBED_TRAINER_H

#include <stdbool.h>
#include <stdint.h>

#include "embed/job.h"
#include "train/method.h"
#include "train/scale.h"
#include "train/train.h"

/*
 * The trainer of gradflow.h: gradflow.c opens and closes it, gradflow_step.c
 * has what it tells and its steps.
 */
struct gradflow {
	struct gf_job job;
	struct gf_training training;
	struct gf_optim_config optim;
	struct gf_loss_scale scale; /* as it begins */
	float *params;
	struct gf_method method;
	char *said; /* the training, for checkpoints */
	uint64_t sent_bytes;
	bool begun;
};

#endif
