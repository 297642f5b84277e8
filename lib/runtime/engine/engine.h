/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/runtime/engine: runs the messages of a plan in its order: on a thread, or on streams between
 * GPUs. */
#ifndef GF_ENGINE_ENGINE_H
#define GF_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "transport/comm.h"
#include "documents/plan.h"
#include "transport/watch.h"
#include "runtime/work.h"
#include "runtime/engine/engine_parts.h"
#include "runtime/exec/exec.h"
#include "cuda/gpu.h"
#include "cuda/lanes/nccl.h"

/*
 * The runtime: gradients become ready, messages go out in their order. One interface has two
 * implementations:
 *
 * thread	one communication thread per rank makes every call on the
 *		communicator while the engine runs, keeps up to `lanes` messages
 *		in flight, and backs off when nothing moves (thread.c);
 * streams	gradients are on GPUs: each lane has a stream and a communicator
 *		of NCCL's, events say what waits for what, and the host only
 *		enqueues (streams.c).
 *
 * A step, from the compute thread:
 *	gf_engine_begin_work(e, work, nwork);
 *	... backward calls gf_engine_ready_all in any order ...
 *	gf_engine_backward_end(e);
 *	gf_engine_wait(e, &err);	// every message is reduced (summed)
 *
 * Up to `depth` steps may be under way: begun, and not waited for. The n-th that is begun (from 0)
 * uses slot n % depth; waiting is for the oldest.
 *
 * Start rule (gf-time(7)): messages start step by step, each step's in their order; a
 * normal one when ready and all earlier ones have ended, a simultaneous one when ready and fewer
 * than `lanes` are active.
 *
 * A failure or timeout is kept and returned by every later call that can fail; the text names the
 * message, the step, and the rank to blame. The other ranks are told and fail, too. Then
 * gf_engine_free stops the engine, and the only thing left to do is to end the job (gf_comm_abort,
 * or exit with a status other than 0): the communicator is `broken`.
 */
struct gf_engine_config {
	struct gf_comm *comm; /* borrowed */
	/* Whole (bound), borrowed. NULL: steps bring all messages, by ways of their own; nothing is
	 * said of them to other ranks. */
	const struct gf_plan *plan;
	struct gf_pool *pool; /* borrowed; the tensors' layout, and the memory of the plan's own
			       * messages */
	double timeout_s;     /* no progress for so long: give up; 0 never */
	size_t segment_bytes; /* transfers are cut at; 0: a good size */
	size_t depth;         /* steps under way at once; 0: one */
	/* Moments of compute that messages may wait for as for tensors, whose numbers follow those
	 * of the pool's. */
	size_t signals;
	int lanes;           /* 0: the plan's */
	int compute_threads; /* beside the engine's thread; 0: none */
	/* The caller's, borrowed; other engines may share it. Then a thread is not started:
	 * gf_engine_wait does what it would, or gf_engine_settle of streams. The watch's step
	 * counts on (a thread's), and telling other ranks of a failure is up to the caller. */
	struct gf_watch *watch;
	/* The caller waits for each step right after its last tensor, with nothing to compute in
	 * between. So where the engine's thread has no processor of its own, it is not woken for
	 * what is left. */
	bool awaited_at_once;
	struct gf_engine_hooks hooks;
	/* With nccl, messages go from GPU to GPU, and place.stream makes gradients and takes sums;
	 * else the engine is a thread. With graphs, messages become graphs where the GPU captures
	 * any: those that lie in memory of the engine's pools, or of all ranks at places that come
	 * in the same order. */
	struct gf_place place;
};

/*
 * All ranks together; they also make sure that all run the same version, the same plan and the same
 * sizes. Every rank succeeds or fails alike.
 * -EINVAL: the plan does not fit the ranks or the pool, or ranks differ (both values are named), or
 * two of them use one GPU, which NCCL does not do; -ENOTSUP: this build does not run such a plan,
 * or not between GPUs.
 */
int gf_engine_new(const struct gf_engine_config *config, struct gf_engine **e,
		  struct gf_error *err);
/* NULL is allowed. Messages under way are abandoned; streams: they end first, unless something has
 * failed. */
void gf_engine_free(struct gf_engine *e);

/* In place of gf_engine_free where ranks are lost: the thread ends, and the communicator is the
 * caller's again, to be closed. The engine's memory stays, since the transport may write to it
 * until then. NULL is allowed. */
static inline void gf_engine_abandon(struct gf_engine *e)
{
	if (e)
		gf_comm_thread_stop(&e->thread);
}
/* The caller's own failure, which becomes every rank's. */
void gf_engine_fail(struct gf_engine *e, int rc, const struct gf_error *why);

/* So many steps were done by an earlier run: messages count on from there. Between steps, on all
 * ranks. */
static inline void gf_engine_count_from(struct gf_engine *e, size_t steps)
{
	pthread_mutex_lock(&e->thread.lock);
	e->before = steps - e->nbegun;
	pthread_mutex_unlock(&e->thread.lock);
}

/* These messages, which are borrowed until the step has been waited for; NULL: gf_engine_list
 * brings them. The engine allocates if a message was never sent before in that slot, place, size
 * and way. */
static inline void gf_engine_begin_work(struct gf_engine *e, const struct gf_work *work,
					size_t nwork)
{
	e->ops->begin(e, work, nwork);
}
/* The messages of a step that was begun without, before its first tensor is ready. */
static inline void gf_engine_list(struct gf_engine *e, const struct gf_work *work, size_t nwork)
{
	e->ops->list(e, work, nwork);
}
/* Message i of the step begun last lies there, which its list says now, too; before its last tensor
 * is ready. Streams, which have a copy of the list; a thread reads the caller's. */
static inline void gf_engine_place(struct gf_engine *e, size_t message, void *data)
{
	if (e->ops->place)
		e->ops->place(e, message, data);
}
/* Announces messages like these; while nothing is under way. Streams prepare for them now: later it
 * would hold up a step. */
static inline int gf_engine_expect(struct gf_engine *e, const struct gf_work *like, size_t n,
				   struct gf_error *err)
{
	return e->ops->expect ? e->ops->expect(e, like, n, err) : 0;
}
/* Forgets messages like these, whose ways and schedules may go then; likewise. */
static inline void gf_engine_forget(struct gf_engine *e, const struct gf_work *like, size_t n)
{
	if (e->ops->forget)
		e->ops->forget(e, like, n);
}
/* These tensors are ready; several cost what one does. */
void gf_engine_ready_all(struct gf_engine *e, const size_t *tensors, size_t n);
/* Tensors that are not ready by now become so (they have no gradient). */
static inline void gf_engine_backward_end(struct gf_engine *e)
{
	e->ops->backward_end(e);
}
/* Blocks until message i of the oldest step under way has ended. Streams: it was issued, and the
 * compute stream waits, not the host. */
static inline int gf_engine_wait_message(struct gf_engine *e, size_t message, struct gf_error *err)
{
	return e->ops->wait_message(e, message, err);
}
/* Until all of it have; after its gf_engine_backward_end. Streams: the compute stream waits, not
 * the host. */
static inline int gf_engine_wait(struct gf_engine *e, struct gf_error *err)
{
	return e->ops->wait(e, err);
}
/* Orders later work on the compute stream after the `end` hooks of all steps that were waited for.
 * An engine with a thread has this order anyway. */
static inline int gf_engine_end(struct gf_engine *e, struct gf_error *err)
{
	return e->ops->end ? e->ops->end(e, err) : 0;
}
/* Blocks until all steps that were begun have ended, their hooks too. The steps do not count as
 * waited for. Streams. */
static inline int gf_engine_settle(struct gf_engine *e, struct gf_error *err)
{
	return e->ops->settle(e, err);
}
/* After a failure that is kept: fills in, per rank, whether it is missing. Blocks for 2 s at most,
 * until every rank has answered or cannot. -ENODATA: nobody can tell. Without a failure none is
 * missing. */
int gf_engine_missing(struct gf_engine *e, bool *missing);
/* The failure that is kept, or 0. */
int gf_engine_check(struct gf_engine *e, struct gf_error *err);

/* The times of the messages of the step that was waited for last; borrowed, good until its slot is
 * begun again. */
static inline const struct gf_message_times *gf_engine_times(struct gf_engine *e)
{
	return e->ops->times(e, e->nwaited - 1);
}
/* The times of the messages of step `step`, counted from 0 as steps were begun: one of the last
 * `depth` that were waited for, which has ended; and those messages, borrowed likewise. NULL: a
 * failure is kept. */
static inline const struct gf_message_times *
gf_engine_times_of(struct gf_engine *e, uint64_t step, const struct gf_work **list, size_t *n)
{
	*list = e->ops->list_of(e, step, n);
	return e->ops->times(e, step);
}
/* The run of that message in slot 0, and its schedule: NULL with one rank, and before the message
 * was expected or sent. */
static inline struct gf_exec_run *gf_engine_run_of(struct gf_engine *e, size_t message,
						   const struct gf_schedule **schedule)
{
	return e->ops->thread->run_of(e, message, schedule);
}
/* When each tensor's gradient of the step that was waited for last was ready; borrowed likewise.
 * Thread. */
static inline const double *gf_engine_ready_times(const struct gf_engine *e)
{
	return e->ops->thread->ready_times(e);
}
/* Without a lock: any thread may ask, and a child after fork. */
struct gf_totals gf_engine_totals(const struct gf_engine *e);

/*
 * Runs fn(comm, ctx) on the thread that talks to other ranks, between steps, and returns what it
 * returned: every other use of the communicator (agreement, digests, gathering) goes through here
 * while the engine lives. All ranks make the same calls in the same order. A rank that waits for
 * the others in a call is watched as in a message.
 */
int gf_engine_call(struct gf_engine *e,
		   int (*fn)(struct gf_comm *comm, void *ctx, struct gf_error *err), void *ctx,
		   struct gf_error *err);
/* Returns when all ranks have called it. Collective. */
int gf_engine_barrier(struct gf_engine *e, struct gf_error *err);
/* And as gf_comm_agree. */
int gf_engine_agree(struct gf_engine *e, int rc, struct gf_error *err);

/* All ranks together, without an engine: 0, or -EINVAL names two ranks that use one GPU. */
int gf_engine_own_gpus(struct gf_comm *comm, const struct gf_gpu *gpu, struct gf_error *err);

#endif
