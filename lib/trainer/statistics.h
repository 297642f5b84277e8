/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_STATISTICS_H
#define GF_TRAINER_STATISTICS_H

#include <stddef.h>

#include "base/error.h"
#include "checkpoints/run/team.h"
#include "compressors/sums.h"
#include "documents/profile.h"

/*
 * Statistics of a training's gradients, and the error of the means that it applies. In every tenth
 * step each rank keeps up to 1024 neighbouring elements of each tensor's gradient as they are
 * before the exchange, all ranks the same ones. The exact means of these are made apart.
 */
struct gf_statistics;

/* The model's gradients lie one after the other, in its order. */
struct gf_statistics *gf_statistics_new(const struct gf_model_profile *model);
/* All functions accept NULL, and then do nothing. */
void gf_statistics_free(struct gf_statistics *s);
/* The step begins; only those whose number divides by ten are looked at. */
void gf_statistics_begin(struct gf_statistics *s, size_t step);
/* The tensor's gradient is ready, in an array of all gradients. */
void gf_statistics_take(struct gf_statistics *s, size_t tensor, const float *gradients);
/* All gradients of the step have come back as these sums. */
void gf_statistics_came(struct gf_statistics *s, const struct gf_select_sums *sums);
/* The exact means are made. Collective, between steps. */
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
