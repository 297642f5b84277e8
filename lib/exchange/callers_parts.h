/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_EXCHANGE_CALLERS_PARTS_H
#define GF_EXCHANGE_CALLERS_PARTS_H

#include "collectives/codecs/codec.h"
#include "exchange/callers_memory.h"

/* A caller's memory in parts: callers_memory.c says when, callers_host.c moves on the host, and
 * callers_device.c on a GPU, where all is enqueued on q. */

/* Where a message of the plan begins in the slot's pool. */
static inline void *gf_memory_base(const struct gf_memory *m, size_t slot, size_t message)
{
	const struct gf_pool *pool = &m->env->pools[slot];
	const size_t first = m->env->plan->messages[message].first;
	const uintptr_t base = (uintptr_t)(pool->data + pool->offsets[first]);
	const uintptr_t whole = sizeof(double) - 1;

	return (void *)(m->messages[message].wide ? (base + whole) & ~whole : base);
}
/* Where the tensor lies in the pool: f32, or f64 of a wide message; its elements. */
static inline void *gf_memory_place(const struct gf_memory *m, size_t tensor)
{
	const struct gf_pool *pool = &m->env->pools[m->slot];
	const size_t message = m->tensors[tensor].message;
	const size_t first = m->env->plan->messages[message].first;

	return (float *)gf_memory_base(m, m->slot, message) +
	       (pool->offsets[tensor] - pool->offsets[first]);
}
static inline size_t gf_memory_elems(const struct gf_memory *m, size_t tensor)
{
	return m->env->plan->model->tensors[tensor].count_elems;
}
/* The codec whose elements are of that type; NULL: no gradients are. */
const struct gf_codec *gf_memory_codec(enum gf_dtype dtype);
/* More bytes are copied. */
void gf_memory_count(struct gf_memory *m, size_t bytes);

/* The tensor, or zeros, into the pool, once in a step. */
void gf_memory_pack(struct gf_memory *m, size_t tensor);
/* share * from, of n values, becomes elements `first` and so on of the tensor; from NULL: each
 * becomes `share`. */
void gf_memory_put(struct gf_memory *m, size_t tensor, size_t first, const float *from, float share,
		   size_t n);
/* The tensor of a wide message from where it lies in the pool. */
void gf_memory_put_wide(struct gf_memory *m, size_t tensor);

/* A whole tensor is packed into the pool, or put back from there; enqueued on q. */
int gf_memory_pack_on(struct gf_memory *m, size_t tensor, struct gf_gpu_stream *q,
		      struct gf_error *err);
int gf_memory_put_on(struct gf_memory *m, size_t tensor, struct gf_gpu_stream *q,
		     struct gf_error *err);
/* The whole step has come, of a selection that gives back all at once: the means in all of the
 * pool, or NaN, and from there. */
int gf_memory_put_all_on(struct gf_memory *m, struct gf_gpu_stream *q, struct gf_error *err);

#endif
