/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_RUNTIME_SHARD_LIST_H
#define GF_RUNTIME_SHARD_LIST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "collectives/layout.h"
#include "documents/plan.h"
#include "runtime/work.h"

/*
 * The messages of a step whose plan has shards, as documents/shard.h orders them. A gather waits
 * for no gradient, but until a stage of compute has begun. That is a signal
 * (gf_engine_config.signals): tensor ntensors + s of the engine is ready once stage s has begun.
 */
struct gf_shards {
	const struct gf_plan *plan; /* borrowed */
	int rank;
	float *params;   /* borrowed: flat, laid out as the pool */
	float *gathered; /* likewise, where gathers bring them: these, or a GPU's */
	size_t stages;
	size_t *offsets;             /* of the tensors, ntensors + 1 */
	struct gf_layout *owners;    /* per message */
	struct gf_shard_work *works; /* nworks, the list */
	size_t nworks;
	/* Places in the list: per stage 1 + that of the gather which brings its unit, or 0 where
	 * the unit has stayed; per message that of its reduce-scatter. */
	size_t *gather, *scatter;
	/* Bytes of others' parts that are here, now and at most, of the compute thread's but for
	 * grads_bytes, which the thread that moves messages lowers. */
	size_t params_bytes, most_params_bytes, most_grads_bytes;
	_Atomic size_t grads_bytes;
	size_t opened; /* so many works have */
	bool *made;    /* per message: gradients are here, or have been in this step */
};

/* parts: micro-batches of a step. -ENOTSUP: such a plan is not run. */
int gf_shards_open(struct gf_shards *s, const struct gf_plan *plan, int rank, size_t parts,
		   float *params, struct gf_error *err);
void gf_shards_close(struct gf_shards *s);

/* The list, nworks, on the pool's memory. */
void gf_shards_work(const struct gf_shards *s, const struct gf_pool *pool, struct gf_work *work);

static inline bool gf_shards_have(const struct gf_shards *s, unsigned traits)
{
	return gf_shard_has(&s->plan->shard, traits);
}
/* Part `rank` of a message, in the flat arrays. */
struct gf_range gf_shards_part(const struct gf_shards *s, size_t message, int rank);
/* Counts what is here as a stage begins, 0 the step's first. */
void gf_shards_count(struct gf_shards *s, size_t stage);
/* Bytes of a message that other ranks own. */
size_t gf_shards_others_bytes(const struct gf_shards *s, size_t message);
/* Elements of a message that other ranks own go back to the system, in whole pages, and are zeros
 * then; first to end - 1 of them alone. */
void gf_shards_give_back(const struct gf_shards *s, size_t message, float *base, size_t first,
			 size_t end);

#endif
