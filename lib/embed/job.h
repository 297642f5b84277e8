/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_EMBED_JOB_H
#define GF_EMBED_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "comm/comm.h"
#include "doc/model.h"
#include "doc/plan.h"
#include "doc/training.h"
#include "gradflow.h"
#include "train/method.h"
#include "ckpt/state.h"

/*
 * Behind gradflow.h: what gf-train does around a training method, without its
 * model, data and schedule of rates.
 */
struct gradflow {
	struct gf_comm *comm;
	struct gf_plan plan; /* bound to the tensors */
	struct gf_training training;
	struct gf_optim_config optim;
	struct gf_shape *shapes; /* ntensors, in the plan's order */
	size_t ntensors;
	size_t *order;  /* per tensor of the caller: its number in the plan */
	size_t *offset; /* per tensor of the plan, and the end */
	float *params;
	struct gf_method method;
	struct gf_state state;
	char *asked;                /* ways, as the plan leaves them */
	char *codecs, *ways, *said; /* for checkpoints */
	char **folders;             /* of sets that are this run's */
	size_t nfolders, folders_capacity;
	size_t epoch_steps;
	double timeout_s;
	uint64_t steps, sent_bytes;
	bool begun;
	int failed; /* what ended the job, and why */
	struct gf_error why;
};

/* What the caller gives, of whatever version, as this one has it. The tensors
 * are the caller's to free; those of *to's strings are borrowed. */
int gf_embed_take_options(const struct gradflow_options *from,
			  struct gradflow_options *to, struct gf_error *err);
int gf_embed_take_tensors(const struct gradflow_tensor *from, size_t ntensors,
			  size_t size, struct gradflow_tensor **to,
			  struct gf_error *err);

/* The caller's tensors, checked on this rank alone: -EINVAL names the first
 * that is none. */
int gf_embed_check(const struct gradflow_tensor *tensors, size_t ntensors,
		   struct gf_error *err);

/* Collective: g->plan, from the named file or the default, becomes one that
 * runs these tensors, whose order and places are filled in. */
int gf_embed_bind(struct gradflow *g, const struct gradflow_tensor *tensors,
		  const struct gradflow_options *o, struct gf_error *err);

/* Collective: parameters, method and state; g->training is complete. */
int gf_embed_start(struct gradflow *g, struct gf_error *err);

/* Collective, between steps. */
int gf_embed_save(struct gradflow *g, const char *folder, struct gf_error *err);
int gf_embed_load(struct gradflow *g, const char *folder, struct gf_error *err);

#endif
