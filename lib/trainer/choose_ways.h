/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_CHOOSE_WAYS_H
#define GF_TRAINER_CHOOSE_WAYS_H

#include <stdbool.h>

#include "base/error.h"
#include "documents/plan.h"
#include "trainer/train.h"

/*
 * "auto" in a rule: once the rule is bound, every message gets the algorithm that is fastest for it
 * on this network, found as by gf-allreduce -a auto (profiler/autotune/chooser.h). The choice is
 * among the algorithms whose sums have the same bits on every rank and in every run. Over NCCL
 * gf_train_use_library chooses. The choice becomes the plan's own algorithm and stages, so that all
 * later code runs, reports and stores it. A run that resumes from a checkpoint of as many ranks
 * takes the stored choice: other algorithms add in other orders, to other bits.
 */

/* Does a message wait to be chosen for? */
bool gf_train_is_open(const struct gf_plan *plan);

/* How every message goes, "ring;blueconnect 2:shm 4:ring"; and the same with each way once. The
 * caller frees. */
char *gf_train_ways(const struct gf_plan *plan);
char *gf_train_ways_once(const struct gf_plan *plan);
/* Takes what is open from such a text. -EINVAL: it is not of these messages. */
int gf_train_take_ways(struct gf_plan *plan, const char *ways, struct gf_error *err);
/* Puts back the ways in a text of this very plan; "auto" is open again. */
void gf_train_put_ways(struct gf_plan *plan, const char *ways);
/* Collective: the text in the set that was found in a folder, if as many ranks wrote the set; else
 * NULL. The caller frees the text, also on failure. */
int gf_train_stored_ways(struct gf_team *team, const struct gf_folder *folder, char **ways,
			 struct gf_error *err);

/* NCCL chooses for itself: its own all-reduce for every message, or for those that wait; a ring
 * under a codec, which it has not. */
void gf_train_use_library(struct gf_plan *plan, bool open_only);

/* Collective: settles what is open in the configuration's plan, which must then be one that runs
 * here (collectives/runnable.h). Called after gf_train_place_take, which decides whether messages
 * go over NCCL. config->choose_s becomes the time spent on measuring. */
int gf_train_choose(struct gf_train_config *config, struct gf_plan *plan, struct gf_error *err);

#endif
