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
 *	gf_csc_nccl_begin(c, slot, ...)	// the step's list, for the engine
 *	gf_csc_nccl_prepare, _finish	// as struct gf_engine_hooks
 *	gf_csc_nccl_end(c, slot, q, flag, &err)	// is it bad? else it is kept
 *	... and when the host knows that it was not bad:
 *	gf_csc_nccl_adopt(c, slot)
 *
 * A step ends before the next one's first message is prepared.
 */
struct gf_csc_nccl;

struct gf_csc_nccl_config {
	struct gf_gpu *gpu; /* all borrowed */
	struct gf_gpu_stream *compute;
	float *grads; /* the device's, `depth` pools */
	size_t stride_elems, depth;
	size_t nmessages; /* the plan's */
	struct gf_csc *csc;
	int rank;
};

int gf_csc_nccl_new(const struct gf_csc_nccl_config *config,
		    struct gf_csc_nccl **c, struct gf_error *err);
/* NULL is allowed. Nothing is under way. */
void gf_csc_nccl_free(struct gf_csc_nccl *c);

/* Messages of the sizes that steps of the plan's ramp may have; or, with
 * `chosen`, a word per chunk, one that sends those. Good until the next call.
 */
const struct gf_work *gf_csc_nccl_sizes(struct gf_csc_nccl *c,
					const struct gf_plan *plan,
					const uint64_t *chosen, size_t *n);

/* The list of a step in that slot. scale: gradients are sent times that over
 * the ranks, and come as means; 0: they are sent as they are. number: of the
 * step, from 0 over the whole run. */
void gf_csc_nccl_begin(struct gf_csc_nccl *c, size_t slot, size_t number,
		       double scale, const struct gf_plan *plan,
		       const struct gf_work **list, size_t *n);
/* Of a message of the step begun last. */
int gf_csc_nccl_prepare(struct gf_csc_nccl *c, size_t message,
			struct gf_gpu_stream *q, struct gf_error *err);
int gf_csc_nccl_finish(struct gf_csc_nccl *c, size_t message,
		       struct gf_gpu_stream *q, struct gf_error *err);
/* *flag |= 1 if a gradient was not finite on some rank; else the history
 * becomes this step's, and the next chunks are chosen and sent to the host. */
int gf_csc_nccl_end(struct gf_csc_nccl *c, size_t slot, struct gf_gpu_stream *s,
		    uint32_t *flag, struct gf_error *err);
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
