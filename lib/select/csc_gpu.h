/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECT_CSC_GPU_H
#define GF_SELECT_CSC_GPU_H

#include "select/csc.h"

/* Between csc_gpu.c and csc_gpu_take.c, which takes a step's gradients. */

/* Data that the host and the device exchange in a step, in pinned memory. */
struct gf_csc_told {
	uint32_t *chosen; /* as the step's */
	uint8_t *sent;    /* per chunk, 1: it goes */
	uint32_t *next;   /* nnext chunks, ascending, from the device */
	size_t nnext;
};

struct gf_csc_gpu {
	struct gf_csc_told *told; /* per slot */
	void *host;               /* their memory */
	/* The device's. Each slot has its own `packed`. */
	void *history, *packed, *norms, *chosen, *sent;
	/* Norms of packed chunks, what ranks add up, and the choice. */
	void *sums, *shared, *next, *work;
	/* of the step begun last */
	size_t slot, taken_tensors, taken_chunks, taken_packs;
};

static inline struct gf_csc_gpu *gf_csc_gpu(const struct gf_selector *s)
{
	return ((struct gf_csc *)s->priv)->gpu;
}

static inline size_t gf_csc_elems(const struct gf_selector *s)
{
	return s->env.pools[0].count_elems;
}

/* `begin` of struct gf_select_ops. */
void gf_csc_gpu_begin(struct gf_selector *s, size_t slot, size_t step,
		      const struct gf_work **list, size_t *n);
/* On q, after the gradients of the first so many tensors: chunks that they
 * complete take up their history and are measured; packed messages that they
 * complete are packed. */
int gf_csc_gpu_take(struct gf_selector *s, size_t ntensors,
		    struct gf_gpu_stream *q, struct gf_error *err);

#endif
