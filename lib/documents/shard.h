/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_SHARD_H
#define GF_DOCUMENTS_SHARD_H

#include <stdbool.h>
#include <stddef.h>

#include "json/keys.h"

/*
 * What a rank keeps between steps of what training holds (ZeRO, Rajbhandari et al. 2020). Without
 * shards every rank keeps all of it. With shards every message is a reduce-scatter of gradients,
 * an update of the part that the rank owns, and an all-gather of parameters. Part r of a message is
 * the r-th of as many even parts as there are ranks in a group (gf_range_part).
 *
 * With GF_SHARD_PARAMETERS a message is a unit: contiguous layers, whose parameters are gathered
 * before their forward, given back after it, and gathered again before their backward, unless the
 * message is kept. At most `ahead` units beyond the one that computes have been gathered.
 * gf-time(7) says when each message may start.
 */
enum {
	GF_SHARD_STATE = 1 << 0,      /* the optimiser's state of its own parts alone */
	GF_SHARD_GRADIENTS = 1 << 1,  /* gradients likewise */
	GF_SHARD_PARAMETERS = 1 << 2, /* parameters likewise */
	GF_SHARD_OPEN = 1 << 3,       /* the planner chooses one; in no plan */
};

struct gf_shard_plan {
	GF_ENTRY; /* its keys are those of gf_shard_record */
};

struct gf_shard {
	int method;      /* of gf_shard_plans; 0: none */
	int group_ranks; /* ranks r to r + group_ranks - 1 share one copy, for r a multiple of it */
	size_t ahead;    /* units */
	char *extra;
};

extern const struct gf_record gf_shard_record;

/* NULL-terminated, in the order of gf_shard_plans_names; the first is none. */
extern const struct gf_shard_plan *const gf_shard_plans[];
extern const char *const gf_shard_plans_names[];

static inline bool gf_shard_method_has(int method, unsigned traits)
{
	return (gf_shard_plans[method]->traits & traits) == traits;
}
/* Does it gather units of parameters, or is it open whether it does? */
static inline bool gf_shard_method_may_gather(int method)
{
	return gf_shard_plans[method]->traits & (GF_SHARD_PARAMETERS | GF_SHARD_OPEN);
}
static inline bool gf_shard_has(const struct gf_shard *s, unsigned traits)
{
	return gf_shard_method_has(s->method, traits);
}
/* -ENOTSUP: units are gathered anew for each of several micro-batches, which no prediction knows.
 */
int gf_shard_check_batches(const struct gf_shard *s, size_t micro_batches, struct gf_error *err);
static inline bool gf_shard_is_used(const struct gf_shard *s)
{
	return gf_shard_has(s, GF_SHARD_STATE);
}

/*
 * The works of a step under shards, in the order in which all ranks start them: a list that the
 * step model and the runtime walk. Compute has two stages per message: stage s < n is the forward
 * of message n - 1 - s, stage n + i the backward of message i. Each further micro-batch has 2 n
 * stages more, and reduce-scatters are the last one's. A gather opens when the stage
 * `opens` begins; the stage `stage` waits for it. A reduce-scatter opens when the last gradient of
 * its message is made, which ends that stage; the gathers that open then start before it.
 * Without units all gathers open with the step.
 */
struct gf_shard_work {
	size_t message;
	bool gather;
	size_t stage, opens; /* opens: a gather's */
};

struct gf_message;

static inline bool gf_shard_is_forward(size_t n, size_t stage)
{
	return stage % (2 * n) < n;
}
static inline size_t gf_shard_unit(size_t n, size_t stage)
{
	return gf_shard_is_forward(n, stage) ? n - 1 - stage % (2 * n) : stage % (2 * n) - n;
}
/* Does the unit stay when a stage of its ends, up to its next one in the step? It does if it is
 * kept, or if the next gather would open before that end; with micro-batches also if it would open
 * with the end of backward, whose last layer may yet be reading it. */
bool gf_shard_stays(const struct gf_shard *s, const struct gf_message *messages, size_t n,
		    size_t parts, size_t stage);
/* Are the parameters of a unit gathered again before its backward? */
bool gf_shard_regathers(const struct gf_shard *s, const struct gf_message *messages, size_t i);
/* Fills works, which have room for (2 parts + 1) n; returns how many there are. parts:
 * micro-batches. */
size_t gf_shard_order(const struct gf_shard *s, const struct gf_message *messages, size_t n,
		      size_t parts, struct gf_shard_work *works);

#endif
