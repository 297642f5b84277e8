/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMPRESSORS_TOPK_H
#define GF_COMPRESSORS_TOPK_H

#include "compressors/select_parts.h"
#include "compressors/sets.h"

/*
 * Selections that send each message as one set of its k largest values per rank. topk.c, whose
 * gradients are on the host, shares this with topk_gpu.c, dgc.c and ef21.c: for each slot the sets
 * of the plan's messages, where these are on the host. On a GPU the residual is as it was last
 * fetched.
 */
struct gf_topk_kind {
	bool merges; /* along a tree, as gtopk; else sets are gathered */
	enum gf_putback putback;
};

struct gf_topk_slot {
	/* the plan's nmessages; their sets are the slot's memory 0 */
	struct gf_sparse_message *messages;
};

struct gf_topk_select {
	struct gf_topk_kind kind;
	uint32_t *scratch; /* of the thread that moves messages */
	size_t sets_bytes; /* of a slot */
	struct gf_topk_gpu *gpu;
	/* of a selection that is built on this: arrays laid out as the pool */
	float *arrays[3];
	float factor;
};

static inline struct gf_topk_slot *gf_topk_slot(const struct gf_selector *s, size_t slot)
{
	return s->slots[slot].more;
}

/* The selection's own state, behind its selector. */
static inline struct gf_topk_select *gf_topk_of(const struct gf_selector *s)
{
	return s->priv;
}

/* Lists without messages. */
void gf_topk_open(struct gf_selector *s, const struct gf_topk_kind *kind);
/* The kind of the plan's topk or gtopk. */
struct gf_topk_kind gf_topk_kind(const struct gf_selector *s);
/* `open` of a selection that is built on topk, whose keys begin as struct gf_density: its arrays
 * are zeros. It closes as topk. -ENOMEM. */
int gf_topk_open_arrays(struct gf_selector *s, struct gf_error *err);
void gf_topk_close(struct gf_selector *s);
/* k of a message in a step (from 1), and at most. */
size_t gf_topk_k(const struct gf_selector *s, size_t step, size_t count_elems);
size_t gf_topk_most_k(const struct gf_selector *s, size_t count_elems);
/* All sets are there: concludes each, until one is not finite. -EBADMSG: one is damaged. */
int gf_topk_conclude(struct gf_selector *s, size_t slot, struct gf_error *err);
/* If all are: the residual is what the pool holds, the pool is the sum over ranks. */
void gf_topk_commit(struct gf_selector *s, size_t slot);

/* `begin` of struct gf_select_ops for messages on the host. */
void gf_topk_begin(struct gf_selector *s, size_t slot, size_t step, const struct gf_work **list,
		   size_t *n);

/* Of gradients on a GPU. */
extern const struct gf_select_ops gf_select_topk_gpu;

#endif
