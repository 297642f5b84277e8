/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_LOAD_NET_H
#define GF_TRAIN_LOAD_NET_H

#include "base/error.h"
#include "data/dataset.h"
#include "doc/model.h"
#include "doc/plan.h"
#include "train/options.h"
#include "train/train.h"

/* The documents and the data of a run, as its options name them. */
struct gf_train_inputs {
	struct gf_plan plan;
	struct gf_model model;
	struct gf_dataset data;
};

/* Collective: reads them by way of rank 0, binds the plan, and completes
 * config's training. config->comm is set before; plan, model and data will
 * borrow from `in`. A replay has no model and no data, --print-training no
 * data. */
int gf_train_load(const struct gf_train_options *o,
		  struct gf_train_config *config, struct gf_train_inputs *in,
		  struct gf_error *err);
/* Frees all of it, and config's training. Also after a failed load; accepts
 * zeroed ones. */
void gf_train_unload(struct gf_train_config *config,
		     struct gf_train_inputs *in);

#endif
