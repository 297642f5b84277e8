/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_CHOOSE_H
#define GF_TRAIN_CHOOSE_H

#include <stdbool.h>

#include "base/error.h"
#include "doc/plan.h"
#include "train/train.h"

/*
 * "auto" in a rule: once the rule is bound, what this network does best for
 * each message, as gf-allreduce -a auto finds it (rt/choose.h), among the
 * algorithms whose sums have the same bits on every rank and in every run; over
 * NCCL gf_train_use_library. It becomes the plan's own algorithm and stages, so
 * that everything behind runs, reports and stores what was chosen. A run that
 * goes on from a checkpoint of as many ranks takes what was chosen then: other
 * algorithms add in other orders, to other bits.
 */

/* Does a message wait to be chosen for? */
bool gf_train_is_open(const struct gf_plan *plan);

/* How every message goes, "ring;blueconnect 2:shm 4:ring"; and the same with
 * each way once. The caller frees. */
char *gf_train_ways(const struct gf_plan *plan);
char *gf_train_ways_once(const struct gf_plan *plan);
/* The codecs of all messages, each once: "f32", "f16,q8". The caller frees. */
char *gf_train_codecs(const struct gf_plan *plan);
/* Takes what is open from such a text. -EINVAL: it is not of these messages. */
int gf_train_take_ways(struct gf_plan *plan, const char *ways,
		       struct gf_error *err);
/* Messages go as such a text of this very plan says, "auto" is open again. */
void gf_train_put_ways(struct gf_plan *plan, const char *ways);
/* That of the newest set in a folder, if so many ranks wrote it; else NULL. On
 * one rank; the caller frees. */
int gf_train_stored_ways(const char *folder, int ranks, char **ways,
			 struct gf_error *err);

/* NCCL chooses for itself: its own all-reduce for every message, or for those
 * that wait; a ring under a codec, which it has not. */
void gf_train_use_library(struct gf_plan *plan, bool open_only);

/* Collective: settles what is open in the configuration's plan, which must then
 * be one that runs here (engine/runnable.h). Behind gf_train_place_take, which says
 * whether it goes over NCCL. config->choose_s is how long it measured. */
int gf_train_choose(struct gf_train_config *config, struct gf_plan *plan,
		    struct gf_error *err);

#endif
