/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_STATISTICS_H
#define GF_TRAINER_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "checkpoints/run/team.h"
#include "compressors/sums.h"
#include "documents/profile.h"

/*
 * What the gradients of a training are like, and how far their means are off that it applies. In
 * every tenth step each rank keeps up to 1024 neighbouring elements of each tensor's gradient as
 * they are before the exchange, all ranks the same ones. The exact means of these are made apart.
 */
struct gf_statistics;

/* Of gradients that lie one after the other in the model's order. */
struct gf_statistics *gf_statistics_new(const struct gf_model_profile *model);
/* Accepts NULL, as all functions do, which then do nothing. */
void gf_statistics_free(struct gf_statistics *s);
/* The step begins; is it one of those that are looked at? */
void gf_statistics_begin(struct gf_statistics *s, size_t step);
/* A tensor's gradient is ready: an array of all gradients. */
void gf_statistics_take(struct gf_statistics *s, size_t tensor, const float *gradients);
/* What came of all gradients of the step. */
void gf_statistics_came(struct gf_statistics *s, const struct gf_select_sums *sums);
/* Collective, between steps. */
int gf_statistics_meet(struct gf_statistics *s, struct gf_team *team, struct gf_error *err);

struct gf_statistics_result {
	struct gf_gradient *gradients; /* per tensor; NULL: no step was looked at */
	/* The rms error of the means that were applied, by the rms of the exact ones; 0: they were
	 * not compared. And that of the tensor that is off the most. */
	double error, most;
	size_t tensor;
};
/* Collective, after the last step. The caller frees the gradients. */
int gf_statistics_conclude(struct gf_statistics *s, struct gf_team *team,
			   struct gf_statistics_result *result, struct gf_error *err);

#endif
