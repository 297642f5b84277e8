/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMPRESSORS_SETS_GPU_H
#define GF_COMPRESSORS_SETS_GPU_H

#include <stddef.h>

#include "base/error.h"
#include "cuda/lanes/lane.h"
#include "runtime/work.h"
#include "cuda/gpu.h"
#include "compressors/sets.h"

/*
 * A top-k selection of one message (compressors/sets.h) that never leaves the
 *GPUs: the k largest are taken out there, sets go from GPU to GPU by NCCL's
 *sends and receives, and are merged where they land. The host enqueues and
 *waits for nothing. All bits are those of a selection on the host.
 *
 *	gf_sparse_gpu_new(&config, &n, &err)
 *	gf_lane_prepare(lane, gf_sparse_gpu_program(n), &err)
 *	... in every step, when its gradients are made:
 *	gf_sparse_gpu_prepare(n, grads, k, lane->stream, &err)
 *	gf_lane_run(lane, program, sets, &err)
 *	gf_sparse_gpu_finish(n, lane->stream, &err)
 *	... a stream that has waited for that:
 *	gf_sparse_gpu_look(n, stream, flag)	// is something not finite?
 *	gf_sparse_gpu_apply(n, stream, skip, &err)
 *
 * Between finish and apply the gradients hold what was not sent and the
 * residual is as it was; apply makes sums of the one and this step's of the
 * other. A step that is skipped, as a word on the device says, leaves the
 * residual alone and the gradients without meaning.
 */
struct gf_sparse_gpu;

struct gf_sparse_gpu_config {
	struct gf_gpu *gpu; /* borrowed, like what follows */
	float *residual;    /* the device's, of this message */
	size_t count_elems;
	bool merges; /* gtopk; else topk */
	enum gf_putback putback;
	int ranks, rank;
	size_t most_k;
};

/* -EINVAL: more elements than an index can name; or device memory is short. */
int gf_sparse_gpu_new(const struct gf_sparse_gpu_config *config, struct gf_sparse_gpu **n,
		      struct gf_error *err);
/* NULL is allowed. Nothing is under way. */
void gf_sparse_gpu_free(struct gf_sparse_gpu *n);

/* The program that n's lane must be prepared for; lives as long as n. */
const struct gf_lane_program *gf_sparse_gpu_program(const struct gf_sparse_gpu *n);

/* How the message goes: what of *w is not the plan's message. */
void gf_sparse_gpu_work(const struct gf_sparse_gpu *n, struct gf_work *w);
/* Before and after the sets have gone. grads: the device's, of this message, until apply has been;
 * k: 1 to most_k, the same on all ranks. */
int gf_sparse_gpu_prepare(struct gf_sparse_gpu *n, float *grads, size_t k, struct gf_gpu_stream *q,
			  struct gf_error *err);
int gf_sparse_gpu_finish(struct gf_sparse_gpu *n, struct gf_gpu_stream *q, struct gf_error *err);
/* *flag |= 1 if a sum is infinite or NaN; the same on all ranks. */
void gf_sparse_gpu_look(const struct gf_sparse_gpu *n, struct gf_gpu_stream *s, uint32_t *flag);
/* skip: a word on the device, or NULL: never. */
int gf_sparse_gpu_apply(struct gf_sparse_gpu *n, struct gf_gpu_stream *s, const uint32_t *skip,
			struct gf_error *err);

#endif
