/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECT_CSC_NCCL_H
#define GF_SELECT_CSC_NCCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "gpu/gpu.h"
#include "select/csc.h"

/*
 * Coarse-grained sparse communication (select/csc.h) that never leaves the
 * GPUs: the history is kept there, chunks are measured, packed and summed
 * there, and the next step's are chosen there. All bits are those of
 * select/csc.h.
 *
 * The host is told the chosen chunks when the step that chose them has been
 * applied: it cuts the messages of the next. Elements of a packed message are
 * sent when the plan's message is that its last tensor is in, by that one's
 * lane and algorithm: so the order of messages is the plan's.
 *
 *	gf_csc_nccl_begin(c, step, number, scale, plan)
 *	... for each of the plan's messages, when its gradients are made:
 *	gf_csc_nccl_take(c, last + 1, &err)	// on a stream of its own
 *	while (gf_csc_nccl_next(c, first, last, &pack, &at)) {
 *		gf_csc_nccl_before(c, &pack, s); ... the all-reduce of pack ...
 *		gf_csc_nccl_after(c, &pack, s);
 *	}
 *	... behind all of them:
 *	gf_csc_nccl_share(c, s); ... the all-reduce of gf_csc_nccl_shared ...
 *	... behind that, before the next step's first take:
 *	gf_csc_nccl_end(c, step, s, flag, &err)	// is it bad? else it is kept
 *	... and when the host knows that it was not bad:
 *	gf_csc_nccl_adopt(c, slot)
 *
 * Steps count from 0 in a process; one is in the slot step % depth.
 */
struct gf_csc_nccl;

struct gf_csc_nccl_config {
	struct gf_gpu *gpu; /* all borrowed */
	struct gf_gpu_stream *compute;
	float *grads; /* the device's, `depth` pools */
	size_t stride_elems, depth;
	struct gf_csc *csc;
	int rank;
};

int gf_csc_nccl_new(const struct gf_csc_nccl_config *config,
		    struct gf_csc_nccl **c, struct gf_error *err);
/* NULL is allowed. Nothing is under way. */
void gf_csc_nccl_free(struct gf_csc_nccl *c);
const struct gf_csc *gf_csc_nccl_csc(const struct gf_csc_nccl *c);

/* scale: gradients are sent times that over the ranks, and come as means; 0:
 * they are sent as they are. number: of the step, from 0 over the whole run. */
void gf_csc_nccl_begin(struct gf_csc_nccl *c, uint64_t step, size_t number,
		       double scale, const struct gf_plan *plan);

/* The stream on which chunks are taken. */
struct gf_gpu_stream *gf_csc_nccl_stream(const struct gf_csc_nccl *c);
/* On it, behind the gradients of the first so many tensors: chunks that they
 * complete take up their history and are measured; those that a packed message
 * of theirs has are packed. */
int gf_csc_nccl_take(struct gf_csc_nccl *c, size_t ntensors,
		     struct gf_error *err);

/* What is sent behind the gradients of tensors first to last, one after
 * another; *at is 0 to begin with; false: no more. */
struct gf_csc_pack {
	float *data;
	size_t count_elems;
	size_t first_chosen; /* of a step that is not dense */
};
bool gf_csc_nccl_next(const struct gf_csc_nccl *c, size_t first, size_t last,
		      struct gf_csc_pack *pack, size_t *at);
void gf_csc_nccl_before(struct gf_csc_nccl *c, const struct gf_csc_pack *pack,
			struct gf_gpu_stream *s);
void gf_csc_nccl_after(struct gf_csc_nccl *c, const struct gf_csc_pack *pack,
		       struct gf_gpu_stream *s);

/* What ranks add up, gf_csc_shared_elems; of the step begun last. */
float *gf_csc_nccl_shared(const struct gf_csc_nccl *c);
int gf_csc_nccl_share(struct gf_csc_nccl *c, struct gf_gpu_stream *s,
		      struct gf_error *err);
/* *flag |= 1 if a gradient was not finite on some rank; else the history
 * becomes this step's, and the next chunks are chosen and sent to the host. */
int gf_csc_nccl_end(struct gf_csc_nccl *c, uint64_t step,
		    struct gf_gpu_stream *s, uint32_t *flag,
		    struct gf_error *err);
/* The host has waited for that. */
void gf_csc_nccl_adopt(struct gf_csc_nccl *c, size_t slot);

/* Of a slot's step, which has been shared: where its sums lie as gf_csc_pieces
 * wants them. */
const struct gf_csc_step *gf_csc_nccl_step(const struct gf_csc_nccl *c,
					   size_t slot);
const float *gf_csc_nccl_sums(const struct gf_csc_nccl *c, size_t slot);

/* Wait for the device: the history to the host's, and back; and what is left to
 * do with a slot's step, which has had its end and was bad or not, as
 * gf_csc_keep and _restore. */
int gf_csc_nccl_fetch(struct gf_csc_nccl *c, struct gf_error *err);
int gf_csc_nccl_send(struct gf_csc_nccl *c, struct gf_error *err);
int gf_csc_nccl_keep(struct gf_csc_nccl *c, size_t slot, size_t age, bool bad,
		     float *values, struct gf_error *err);
int gf_csc_nccl_restore(struct gf_csc_nccl *c, size_t slot, size_t age,
			const float *values, struct gf_error *err);

#endif
