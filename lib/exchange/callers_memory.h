/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_EXCHANGE_CALLERS_MEMORY_H
#define GF_EXCHANGE_CALLERS_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "collectives/way.h"
#include "transport/comm.h"
#include "documents/plan.h"
#include "runtime/engine/engine.h"
#include "runtime/work.h"
#include "compressors/select.h"

/*
 * Gradients in memory of the caller's: a place per tensor and step, of f32, f16, bf16 or f64. They
 * come back there as the means over ranks.
 *
 * A message whose tensors lie one after the other in f32, in the plan's order, moves in that
 * memory: nothing is copied. The tensors of other messages are packed into the pool before the
 * message goes, and unpacked when it has come. So are all that go as they are where a neighbour on
 * the host reads the pool in place: it cannot read the caller's memory, which would be copied twice
 * to reach it.
 * A message with an f64 tensor is WIDE: all of it travels and is summed in f64, as long as nothing
 * of it may be lost. Under a selection, and under a codec that rounds, f64 tensors are exchanged as
 * f32.
 * A selection that does not give back message by message (by_message) works on the pool, and gives
 * back when the whole step has come: zeros for what was not chosen. Hooks around the selection's do
 * this on the thread that moves messages, beside backward.
 *
 * NOT FINITE. A dense sum comes back as it is. A selection that remembers leaves such a step out
 * (compressors/select.h, `end`). All of the step then comes back as NaN, the same on all ranks, so
 * that the caller skips it, too.
 *
 * ON A GPU the same is enqueued: a message's tensors are packed, and sums that come message by
 * message go back, on the streams of the messages. What goes back at the end of the step does so on
 * the stream that computes, which waits for the means; nobody is told when one has come. A word on
 * the device says whether the step is finite, and the host does not wait for it here.
 *
 * One step is under way at a time.
 */
struct gf_memory_tensor {
	enum gf_dtype dtype;
	size_t message;     /* of the plan */
	void *_Atomic data; /* in this step; NULL: no gradient: zeros */
	bool packed;        /* the engine's thread's */
};

struct gf_memory_message {
	size_t gather; /* of the list: brings the whole message */
	/* So far in this step: tensors that have come, and where the message would begin if all lay
	 * one after the other, as they do unless `scattered`. */
	size_t nposted;
	uintptr_t base;
	bool scattered;
	bool pooled; /* it goes from the pool, wherever it lies */
	bool wide;   /* in f64, by that way */
	struct gf_way way;
	bool in_place; /* it moves where it lies */
	_Atomic bool done;
};

struct gf_memory {
	struct gf_selector *select; /* borrowed; and what it is opened with */
	const struct gf_select_env *env;
	const struct gf_engine_hooks *inner; /* the selection's */
	bool by_message;                     /* it gives back message by message */
	struct gf_engine *engine;            /* the owner sets it, once there is one */
	struct gf_engine_hooks hooks;        /* for the engine, around the selection's */
	struct gf_memory_tensor *tensors;
	struct gf_memory_message *messages;
	const struct gf_work *list; /* of the step */
	size_t slot, nposted;
	uint32_t *flag;                /* the step's, on a GPU */
	size_t front;                  /* the engine's thread's: those before it are packed */
	_Atomic uint64_t copied_bytes; /* packed and unpacked so far */
	/* A tensor's mean is in its place (0), or never will be (a negative errno); on the engine's
	 * thread, not on a GPU. The owner sets them between steps. (optional) */
	void (*on_done)(void *ctx, size_t tensor, int status);
	void *on_done_ctx;
};

/* dtypes: per tensor of the selection's plan, on which the selection is open; comm: what messages
 * go over. -ENOTSUP: no gradients are taken of that type. The arrays are the caller's to free, also
 * if this fails. */
int gf_memory_open(struct gf_memory *m, struct gf_selector *select, struct gf_comm *comm,
		   const enum gf_dtype *dtypes, struct gf_error *err);

/* Does the plan's message travel in f64? */
bool gf_memory_is_wide(const struct gf_plan *plan, const enum gf_dtype *dtypes, size_t message);

/* A step begins, with that list and a GPU's flag; before the engine knows. */
void gf_memory_begin(struct gf_memory *m, size_t slot, uint32_t *flag, const struct gf_work *list);
/* The tensor's gradient is there, and stays until the tensor is done; before the engine is told.
 * Once in a step. */
void gf_memory_post(struct gf_memory *m, size_t tensor, void *data);
/* Tensors that have not come have no gradient; before the end of backward. */
void gf_memory_flush(struct gf_memory *m);
/* Has its mean come back in this step? At any time, from any thread. */
static inline bool gf_memory_done(const struct gf_memory *m, size_t tensor)
{
	return atomic_load(&m->messages[m->tensors[tensor].message].done);
}

/* In parts: callers_memory.c says when, and callers_hooks.c moves. */
struct gf_engine_hooks gf_memory_hooks(struct gf_memory *m);
static inline const struct gf_pool *gf_memory_pool(const struct gf_memory *m)
{
	return &m->env->pools[m->slot];
}
static inline struct gf_work *gf_memory_work(const struct gf_memory *m)
{
	return gf_select_messages(m->select, m->slot);
}
/* Where a message of the plan begins in the slot's pool. */
static inline void *gf_memory_base(const struct gf_memory *m, size_t slot, size_t message)
{
	const struct gf_pool *pool = &m->env->pools[slot];
	const size_t first = m->env->plan->messages[message].first;
	const uintptr_t base = (uintptr_t)(pool->data + pool->offsets[first]);
	const uintptr_t whole = sizeof(double) - 1;

	return (void *)(m->messages[message].wide ? (base + whole) & ~whole : base);
}
/* The codec whose elements are of that type; NULL: no gradients are. */
const struct gf_codec *gf_memory_codec(enum gf_dtype dtype);

#endif
