/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECT_CSC_GPU_H
#define GF_SELECT_CSC_GPU_H

#include "select/csc.h"

/* Between csc_gpu.c and csc_gpu_take.c, which takes a step's gradients. */

/* Data that the host and the device exchange in a step, in pinned memory. */
struct gf_csc_told {
	uint32_t *chosen; /* as the step's */
	uint8_t *sent;    /* per chunk, 1: it goes */
	double *norms;    /* by the host: per chunk, from the device */
	uint32_t *next;   /* else: nnext chunks, ascending, from the device */
	size_t nnext;
};

struct gf_csc_gpu {
	struct gf_csc_told *told; /* per slot */
	void *host;               /* their memory */
	size_t npinned;           /* slots whose `packed` is, by the host */
	/* The device's. Unless messages go by the host each slot has its own
	 * `packed`. */
	void *history, *packed, *norms, *chosen, *sent;
	/* By the host: gradients with their history, of chunks that wait; NULL:
	 * one step is under way at a time, and they stay where they are. */
	void *left;
	/* Else: norms of packed chunks, what ranks add up, and the choice. */
	void *sums, *shared, *next, *work;
	/* of the step begun last */
	size_t slot, taken_tensors, taken_chunks, taken_packs;
	/* by the host: where takes go; what looks at a bad chunk */
	struct gf_gpu_stream *taking, *looking;
	void *looked_at;
};

static inline struct gf_csc_gpu *gf_csc_gpu(const struct gf_selector *s)
{
	return ((struct gf_csc *)s->priv)->gpu;
}

static inline float *gf_csc_grads(const struct gf_selector *s, size_t slot)
{
	return s->env.place.by_host ? s->env.place.grads
				    : s->env.pools[slot].data;
}

/* The chunks that wait, of the step that was taken last. */
static inline float *gf_csc_left(const struct gf_selector *s, size_t slot)
{
	const struct gf_csc_gpu *g = gf_csc_gpu(s);

	return g->left ? g->left : gf_csc_grads(s, slot);
}

static inline size_t gf_csc_elems(const struct gf_selector *s)
{
	return s->env.pools[0].count_elems;
}

/* `begin` and `ready` of struct gf_select_ops. */
void gf_csc_gpu_begin(struct gf_selector *s, size_t slot, size_t step,
		      const struct gf_work **list, size_t *n);
int gf_csc_gpu_ready(struct gf_selector *s, size_t slot, size_t tensor,
		     struct gf_gpu_stream *q, struct gf_error *err);
/* On q, after the gradients of the first so many tensors: chunks that they
 * complete take up their history and are measured; packed messages that they
 * complete are packed. */
int gf_csc_gpu_take(struct gf_selector *s, size_t ntensors,
		    struct gf_gpu_stream *q, struct gf_error *err);

#endif
