/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CHECKPOINTS_STATE_H
#define GF_CHECKPOINTS_STATE_H

#include <stddef.h>

#include "base/digest.h"
#include "checkpoints/safetensors.h"
#include "documents/models/model.h"

/*
 * Everything that must survive a stop, as a list of arrays. Each owner of state (the net, a method,
 * the loop) adds its arrays once; checkpoints, resume and the comparison of replicas work on the
 * list and know no owner. An array that is not in the list is not saved.
 *
 * SHARED arrays hold the same bits on every rank: rank 0 stores them for all, and --check-replicas
 * compares them. OWN arrays differ by rank (residuals, running sums): every rank stores its own.
 */
enum gf_state_scope { GF_STATE_SHARED, GF_STATE_OWN };

/*
 * How an array changes when a run goes on with another number of ranks (checkpoints/run/snapshot.h).
 * OWN arrays need SUM or MEAN, and must be F32, because they are summed.
 */
enum gf_state_rule {
	GF_STATE_KEEP, /* shared: holds for any number */
	GF_STATE_SUM,  /* the sum over ranks, which is divided by their number when it is applied,
			* counts */
	GF_STATE_MEAN, /* own: every rank goes on from the mean */
	GF_STATE_RESTART, /* shared: counts steps; begins anew */
};

struct gf_state_item {
	enum gf_state_scope scope;
	enum gf_state_rule rule; /* KEEP unless the owner changes it */
	char *name;
	struct gf_tensor_source tensor; /* its name is the one above */
	void *data;                     /* borrowed; what resume writes to */
	size_t count_elems;
};

struct gf_state {
	struct gf_state_item *items;
	size_t nitems, capacity;
};

/* An f32 array of that shape. Takes `name`; `data` must outlive the list. The item is borrowed
 * until the next is added. */
struct gf_state_item *gf_state_add(struct gf_state *s, enum gf_state_scope scope, char *name,
				   const struct gf_shape *shape, float *data);
/* A few words of 64 bits, or doubles (dtype F64). */
struct gf_state_item *gf_state_add_words(struct gf_state *s, enum gf_state_scope scope,
					 const char *name, const char *dtype, void *data,
					 size_t count);
/* That item of another list as every rank's own; by name and data the same. */
void gf_state_add_own(struct gf_state *s, const struct gf_state_item *item);
/* -EINVAL: of what has these names no file can be read back. */
int gf_state_check_names(const struct gf_state *s, struct gf_error *err);
void gf_state_release(struct gf_state *s);

#endif
