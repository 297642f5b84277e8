/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECT_CSC_DEVICE_H
#define GF_SELECT_CSC_DEVICE_H

#include <stddef.h>

#include "base/error.h"
#include "gpu/gpu.h"
#include "select/csc.h"

/*
 * The half of coarse-grained sparse communication (select/csc.h) that is done
 * where gradients lie on a GPU: the history is kept and added there, chunks are
 * measured there, and those that go are packed there. What comes to the host is
 * the packed chunks, and the norms of the others. All bits are those of a
 * selection on the host.
 *
 *	gf_csc_begin(step, ...); gf_csc_device_begin(d, slot)
 *	gf_csc_device_take(d, tensor, s, &err)	// its gradient is made
 *	gf_csc_device_measured(d, slot)		// what is on s has ended
 *	... messages and norms are exchanged; gf_csc_choose ...
 *	gf_csc_device_commit(d, s, &err)	// the history is new
 *	gf_csc_device_sums(d, slot, &sums, &err)	// of what was sent
 *
 * Steps and slots as in select/topk_device.h: a step is taken when the one
 * before has ended and been committed; it is applied later. Each step's `data`
 * is its `packed`: a dense one, in which every chunk goes, has no gaps.
 */
struct gf_csc_device;

struct gf_csc_device_config {
	struct gf_gpu *gpu; /* all borrowed */
	struct gf_gpu_stream *compute;
	float *grads; /* the device's, as the pool */
	struct gf_csc *csc;
	struct gf_csc_step **steps; /* depth, whose `packed` gets pinned and
				     * whose `fetch` is set; copied */
	size_t depth;
};

int gf_csc_device_new(const struct gf_csc_device_config *config,
		      struct gf_csc_device **d, struct gf_error *err);
/* NULL is allowed. What is enqueued ends first. */
void gf_csc_device_free(struct gf_csc_device *d);

/* The step in that slot has begun. */
void gf_csc_device_begin(struct gf_csc_device *d, size_t slot);
/* Enqueues what a tensor's gradient makes possible: chunks that it completes
 * take up their history, and packed messages of which it was the last go to
 * their place on the host. */
int gf_csc_device_take(struct gf_csc_device *d, size_t tensor,
		       struct gf_gpu_stream *s, struct gf_error *err);
/* Every tensor has been taken and that has ended: the norms of chunks that wait
 * are the step's. On the thread that moves messages. */
void gf_csc_device_measured(struct gf_csc_device *d, size_t slot);
/* Enqueues: the history becomes that of the step taken last. On the stream of
 * the next step's takes, or on the compute stream behind the last take's
 * end. */
int gf_csc_device_commit(struct gf_csc_device *d, struct gf_gpu_stream *s,
			 struct gf_error *err);
/* Enqueues on the compute stream that a step's sums, which lie in `packed`, lie
 * on the device likewise, at *sums. */
int gf_csc_device_sums(struct gf_csc_device *d, size_t slot, const float **sums,
		       struct gf_error *err);

/* Wait for the device: its history to the host's, and back. */
int gf_csc_device_fetch(struct gf_csc_device *d, struct gf_error *err);
int gf_csc_device_send(struct gf_csc_device *d, struct gf_error *err);

#endif
