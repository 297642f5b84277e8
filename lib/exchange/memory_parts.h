/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_EXCHANGE_MEMORY_PARTS_H
#define GF_EXCHANGE_MEMORY_PARTS_H

#include "codec/codec.h"
#include "exchange/memory.h"

/* A caller's memory in parts: memory.c on the host, memory_device.c on a GPU,
 * where all is enqueued on q. */

/* Where the tensor lies in the pool; its elements. */
static inline float *gf_memory_place(const struct gf_memory *m, size_t tensor)
{
	const struct gf_pool *pool = &m->select->env.pools[m->slot];

	return pool->data + pool->offsets[tensor];
}
static inline size_t gf_memory_elems(const struct gf_memory *m, size_t tensor)
{
	const size_t *offsets = m->select->env.pools[m->slot].offsets;

	return offsets[tensor + 1] - offsets[tensor];
}
/* The codec whose elements are of that type; NULL: no gradients are. */
const struct gf_codec *gf_memory_codec(enum gf_dtype dtype);
/* More bytes are copied. */
void gf_memory_count(struct gf_memory *m, size_t bytes);

/* The tensor, or zeros, into the pool, and from there. */
int gf_memory_pack_on(struct gf_memory *m, size_t tensor,
		      struct gf_gpu_stream *q, struct gf_error *err);
int gf_memory_put_on(struct gf_memory *m, size_t tensor,
		     struct gf_gpu_stream *q, struct gf_error *err);

#endif
