/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_RT_DEVICE_ENGINE_H
#define GF_RT_DEVICE_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "comm/comm.h"
#include "doc/plan.h"
#include "engine/engine.h"
#include "gpu/gpu.h"
#include "lane/nccl.h"
#include "select/csc_nccl.h"

/*
 * The engine (engine/engine.h) of gradients that are on GPUs. One stream
 * computes, each lane has a stream and a communicator of its own, and events
 * between them say which waits for which. The thread that computes also issues
 * the messages, in the plan's order on every rank; nothing in a step waits on
 * the host.
 *
 *	gf_engine_begin(e);
 *	... each time the kernels of a gradient are enqueued:
 *	gf_engine_ready(e, tensor);
 *	gf_engine_backward_end(e);
 *	gf_engine_wait(e, &err);	// the compute stream waits
 *	gf_engine_end(e, &err);	// and does what `end` enqueues
 *	... the update is enqueued ...
 *
 * Of a plan with staleness K as many steps may be under way, each with a pool
 * of its own: wait is for the oldest, and comes before the (K + 1)-th
 * begins. Messages of a step follow those of the step before, as if all were
 * one step's.
 *
 * The start rule of gf(7) becomes: a message waits for its
 * gradients, and for those of all earlier ones; a normal one for the end of
 * all earlier ones; a simultaneous one for the end of the one before it on its
 * lane. Which lane that is, the plan's prediction says: the one that it thinks
 * free first.
 *
 * A second thread watches: it answers other ranks (engine/watch.h), serves
 * calls, and when a message that has begun does not end in time, or a
 * communicator reports an error, it aborts the communicators, so that
 * everything enqueued comes to an end; the failure is kept and returned by
 * every later call.
 */
struct gf_device_engine_config {
	struct gf_comm *comm; /* between the hosts; borrowed */
	struct gf_gpu *gpu;   /* borrowed, like what follows */
	struct gf_gpu_stream *compute;
	const struct gf_nccl_ops *nccl;
	const struct gf_plan *plan; /* whole */
	/* On the device, the plan's tensors in generation order without gaps;
	 * and, for each further step under way, again `stride_elems` behind. */
	float *data;
	size_t stride_elems;
	/* What topk and gtopk leave behind, laid out as data; zeros at first,
	 * and the caller's to keep between steps. NULL: a dense plan. */
	float *residual;
	/* What packs chunks, whose step the caller begins before its first
	 * `ready`; borrowed. NULL: another selection. */
	struct gf_csc_nccl *csc;
	/* (optional) Enqueues on `s`, on which all messages of step `step`
	 * (from 0) have ended, what becomes of it; once for each, in order. Of
	 * topk and gtopk that is gf_device_engine_look and _apply, of csc
	 * gf_csc_nccl_end, and comes before any message of the next step. */
	int (*end)(void *ctx, uint64_t step, struct gf_gpu_stream *s,
		   struct gf_error *err);
	void *end_ctx;
	double timeout_s; /* 0: never gives up */
};

/*
 * All ranks together. -EINVAL: the plan does not fit, ranks differ, or two of
 * them use one GPU, which NCCL does not do; -ENOTSUP: the plan asks for what
 * goes by the host alone.
 */
int gf_device_engine_new(const struct gf_device_engine_config *config,
			 struct gf_engine **e, struct gf_error *err);
/* Collective: 0, or -EINVAL names two ranks that use one GPU. */
int gf_device_own_gpu_each(struct gf_comm *comm, const struct gf_gpu *gpu,
			   struct gf_error *err);
/* Where the gradients of a step lie. */
float *gf_device_engine_data(const struct gf_engine *e, uint64_t step);
/*
 * Of topk and gtopk (select/topk_nccl.h); dense plans are left alone. Density:
 * what steps send that begin from now on; at first the plan's. The other two
 * are what `end` does: *flag |= 1 if a sum is not finite; data become the sums,
 * and the residual this step's, unless *skip.
 */
void gf_device_engine_density(struct gf_engine *e, double density);
void gf_device_engine_look(struct gf_engine *e, struct gf_gpu_stream *s,
			   uint32_t *flag);
int gf_device_engine_apply(struct gf_engine *e, struct gf_gpu_stream *s,
			   const uint32_t *skip, struct gf_error *err);
/* Of csc, on all ranks, while nothing is under way: a step may send so many
 * chunks, though no step of the plan's ramp does. */
int gf_device_engine_expect(struct gf_engine *e, size_t nchunks,
			    struct gf_error *err);
/* The host waits until every step that has begun has ended: after the last
 * one, or before looking at times. */
int gf_device_engine_sync(struct gf_engine *e, struct gf_error *err);
/* The lane of each message. */
size_t gf_device_engine_lane(const struct gf_engine *e, size_t message);

#endif
