/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_GROUPS_H
#define GF_TRAINER_GROUPS_H

#include "checkpoints/run/team.h"
#include "exchange/localsgd/outer.h"
#include "trainer/method.h"
#include "trainer/train.h"

/*
 * A run whose plan has a period: groups of ranks train by themselves, and all ranks exchange how
 * far their parameters have come (exchange/localsgd/outer.h). The method runs the exchange of a
 * group, and knows no other ranks. What all ranks do together goes through the outer exchange. Of a
 * plan without a period nothing here does anything, and all ranks are the group.
 */
struct gf_groups {
	struct gf_plan plan; /* of a group's exchange */
	struct gf_outer *outer;
	struct gf_method *method; /* borrowed, once it is open */
	struct gf_compute *compute;
	float *params; /* borrowed, or a replay's own */
	bool owns_params;
	/* What the ranks of a group have in common, and no others: their state lists it as their
	 * own. */
	struct gf_state common;
	uint64_t told_bytes; /* sent by outer exchanges, and told of */
};

/* Collective, once the plan is bound: config->comm becomes the view of it that all ranks share, and
 * config->group that of this rank's group. -EINVAL: the training has something that goes without a
 * period. */
int gf_train_split(struct gf_train_config *config, struct gf_error *err);
/* Puts the communicator back, broken if a view was. */
void gf_train_join(struct gf_train_config *config);

/* A rank that is lost in one of the two exchanges is lost in the other. */
void gf_groups_lost(const struct gf_train_config *config);

/* The plan and the communicator of the method. */
const struct gf_plan *gf_groups_plan(struct gf_groups *g, const struct gf_train_config *config);
struct gf_comm *gf_groups_comm(const struct gf_train_config *config);

/* Collective, before the method is open. params: this rank's; NULL: a replay.
 */
int gf_groups_open(struct gf_groups *g, const struct gf_train_config *config, float *params,
		   struct gf_compute *compute, struct gf_error *err);
void gf_groups_close(struct gf_groups *g);

/* All ranks, as they work together while the method lives. */
struct gf_team gf_groups_team(const struct gf_groups *g, const struct gf_train_config *config);

/* Groups come to their verdicts alone: the first that is not 0 becomes that of all ranks. Without a
 * period all have one anyhow. */
int gf_groups_agree(struct gf_groups *g, const struct gf_train_config *config, int rc,
		    struct gf_error *err);

/* After a step's update: begins and ends outer exchanges. *sent_bytes: by this rank, in such that
 * have ended since the last call. */
int gf_groups_step(struct gf_groups *g, size_t step, uint64_t *sent_bytes, struct gf_error *err);
/* By this rank in a step of dense f32 between all ranks. */
uint64_t gf_groups_dense_bytes(const struct gf_groups *g);
/* At the end of a run (gf_outer_finish). */
int gf_groups_finish(struct gf_groups *g, const struct gf_train_config *config, size_t step,
		     struct gf_error *err);

#endif
