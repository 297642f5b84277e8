/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_RIG_H
#define GF_TESTS_RIG_H

#include "plans.h"
#include "runtime/engine/engine.h"

#define TENSORS 6
static const size_t counts[TENSORS] = {60, 1200, 8, 1, 600, 3000};

/* A rank's engine and what it stands on. */
struct rig {
	struct gf_plan plan;
	struct gf_pool pool;
	struct gf_engine *engine;
};

struct setting {
	size_t threshold_bytes;
	int lanes;
	const char *algorithm;
	bool at_end;
	double timeout_s;
	size_t depth; /* 0: one */
};

static inline int rig_open(struct rig *r, struct gf_comm *c, const struct setting *s,
			   struct gf_error *err)
{
	struct gf_engine_config config = {
		.comm = c,
		.plan = &r->plan,
		.pool = &r->pool,
		.timeout_s = s->timeout_s,
		.segment_bytes = 1000,
		.depth = s->depth,
	};
	size_t i;
	int rc;

	plan_of(&r->plan, counts, TENSORS, c->ranks, s->threshold_bytes, s->lanes, s->algorithm);
	for (i = 0; i < r->plan.nmessages && s->at_end; i++)
		r->plan.messages[i].release = GF_RELEASE_BACKWARD_END;
	rc = gf_pool_init(&r->pool, c, counts, TENSORS, err);
	if (rc)
		return rc;
	return gf_engine_new(&config, &r->engine, err);
}

/* The plan's messages, on the pool. */
static inline void rig_begin(struct rig *r)
{
	gf_engine_begin_work(r->engine, r->engine->plan_work, r->engine->nplan_work);
}

static inline void rig_close(struct rig *r)
{
	gf_engine_free(r->engine);
	gf_pool_release(&r->pool);
	gf_plan_release(&r->plan);
}

#endif
