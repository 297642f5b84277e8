/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_SHARDS_H
#define GF_PLANNER_SHARDS_H

#include "planner/make.h"
#include "planner/workbench.h"

/*
 * Plans with shards: how layers are cut into units, which units stay from forward to backward, and
 * how many are gathered ahead.
 *
 * A candidate is a cut with keeps, units ahead and lanes; each unit goes by the cheapest way of the
 * menu. gf_sim_shard_step and gf_sim_memory say what it takes and holds. The search keeps all
 * candidates that no other one beats in both. It does not know the memory that is asked for, so
 * more memory is never slower; of what it kept, the fastest that fits is taken.
 *
 * All candidates are tried if there are at most GF_SHARDS_EXACT. Else the search tries every rule
 * below and cuts at about equal bytes, in octaves. Then it changes the best of these step by step:
 * it merges two units, splits one, keeps one or not, and gathers one more or less ahead. It ends
 * after GF_SHARDS_WORKS works of simulated steps; more than two lanes have as many again.
 */
#define GF_SHARDS_EXACT 20000
#define GF_SHARDS_WORKS 4000000

/* May a unit begin with this tensor, by the places of parameters in generation order? Layers are
 * whole: of "h.0.attn.weight" the layer is "h.0.attn" and the block "h.0". */
bool gf_shards_layer_begins(const struct gf_model_profile *m, size_t tensor);
bool gf_shards_block_begins(const struct gf_model_profile *m, size_t tensor);

struct gf_shard_draft {
	size_t n;
	size_t *last; /* of each unit, its last tensor */
	bool *keep;
	size_t ahead;
	int lanes;
	double iteration_s, peak_bytes; /* found */
};

/* A rule that people use: fills a draft's units, keeps and ahead, whose arrays have room for every
 * tensor. The draft begins with no units. */
struct gf_shard_rule {
	const char *name, *description, *source;
	bool whole; /* it decides keeps and units ahead, too */
	void (*draft)(const struct gf_model_profile *m, struct gf_shard_draft *d);
};

extern const struct gf_shard_rule gf_shard_rules[]; /* ended by one without a name */

/* The task's plan with its shards, or without if it has none, or the fastest of all that fits where
 * it leaves that open (GF_SHARD_OPEN). -ENOTSUP: nothing fits into the memory asked for. */
int gf_shards_plan(const struct gf_task *t, struct gf_plan *p, struct gf_error *err);

#endif
