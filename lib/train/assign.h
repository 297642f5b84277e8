/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_ASSIGN_H
#define GF_TRAIN_ASSIGN_H

#include <stddef.h>

#include "base/error.h"
#include "comm/comm.h"
#include "data/dataset.h"
#include "doc/model.h"
#include "doc/plan.h"
#include "doc/stream.h"
#include "doc/training.h"
#include "train/options.h"

/*
 * From what was given on the command line to what every rank runs.
 */

/* What the options ask for: "train", "--replay" and so on. */
const char *gf_train_doing(const struct gf_train_options *o);

/* Collective: -EINVAL with both values where ranks were started to do different
 * things. Ranks may differ in their threads and outputs, in the GPU or backend
 * of the host, and in the place of their data. */
int gf_train_same(struct gf_comm *comm, const struct gf_train_options *o,
		  struct gf_error *err);

/*
 * Collective: rank 0 reads a file ("-": standard input, which reaches no other
 * rank) that must hold a document of the format, and all get it: the caller
 * releases d, also after a failure. rc is what a rank came to before, which all
 * agree on first. The same for a plan.
 */
int gf_train_read(struct gf_comm *comm, int rc, const char *path,
		  const char *format, struct gf_documents *d,
		  struct gf_error *err);
int gf_train_read_plan(struct gf_comm *comm, int rc, const char *path,
		       struct gf_plan *plan, struct gf_error *err);

/* Collective: opens the data that the model takes; path is this rank's. */
int gf_train_open_data(struct gf_comm *comm, const char *path,
		       const struct gf_model *model, size_t seed,
		       struct gf_dataset *data, struct gf_error *err);

/* The plan of a run without one: threshold fusion with one lane; by an
 * algorithm that gf_algorithm_reproduces, if that is wanted. */
void gf_train_default_plan(struct gf_plan *rule, bool reproducible);

/* Makes `plan` one of these tensors on so many ranks: a rule is bound, a whole
 * plan must fit. */
int gf_train_fit(struct gf_plan *plan, const struct gf_model_profile *model,
		 int ranks, struct gf_error *err);

/*
 * Makes `plan` one that runs this model (NULL: a replay, which has the plan's
 * own) on so many ranks: a rule is bound, a whole plan must fit, and the
 * engine must be able to run it. What a rule leaves open stays so until
 * gf_train_choose.
 */
int gf_train_bind(struct gf_plan *plan, const struct gf_model *model, int ranks,
		  struct gf_error *err);

#endif
