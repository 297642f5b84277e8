/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIMULATOR_MEMORY_H
#define GF_SIMULATOR_MEMORY_H

#include "documents/plan.h"
#include "simulator/step.h"

/*
 * What a rank holds at the moment of a step at which it holds the most. N ranks share a copy:
 *
 * parameters    all, or with shards of them 1/N; and 1/N in f32 beside those that a codec rounded
 * gradients     all, or with shards of them 1/N, and what a message has from the begin of its
 *               backward to the end of its reduce-scatter; all of those of stale steps, too, and
 *               once more where micro-batches are added up
 * state         of the optimiser: so many bytes per element, of all or of 1/N
 * gathered      others' parameters of a unit, from the start of its gather to the end of the pass
 *               that it was gathered for
 * activations   what each layer keeps, from its forward to its backward; recomputed ones (Chen et
 *               al. 2016): what n layers keep at the begin of each of sqrt(n) segments, and all of
 *               one segment
 */
struct gf_memory_setting {
	const struct gf_model_profile *model;
	const struct gf_shard *shard;
	const struct gf_memory_plan *memory; /* the plan's wishes */
	bool coded;                          /* a message has a codec that rounds */
	int staleness;
};

/* times: of gf_sim_shard_step; NULL: without shards. */
void gf_sim_memory(const struct gf_memory_setting *s, const struct gf_sim_input *in,
		   const struct gf_sim_shard_times *times, struct gf_memory_use *use);

/* Times of a model that recomputes its activations: backward runs each segment's forward again. */
void gf_sim_recompute(struct gf_model_profile *model);

#endif
