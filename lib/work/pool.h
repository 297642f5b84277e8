/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_WORK_POOL_H
#define GF_WORK_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "comm/comm.h"
#include "gpu/gpu.h"

/*
 * The gradient memory pool (GradientFlow, section 3.1): one f32 buffer per
 * rank. Tensors lie in generation order without gaps, so that every message (a
 * contiguous range of tensors) already is one buffer.
 */
struct gf_pool {
	struct gf_comm *comm; /* borrowed; the memory's; NULL: not own */
	float *data;
	size_t count_elems;
	size_t *offsets; /* ntensors + 1, in elements */
	size_t ntensors;
	/* Messages lie in memory of the caller's, each from a multiple of 128
	 * bytes on, and in the pool only now and then, where a tensor may take
	 * more f32 than it has elements. */
	bool lent;
	struct gf_gpu *gpu; /* that it is pinned for; NULL: none */
};

int gf_pool_init(struct gf_pool *p, struct gf_comm *comm,
		 const size_t *count_elems, size_t ntensors,
		 struct gf_error *err);
/* On memory of the caller, which may be a GPU's. */
void gf_pool_on(struct gf_pool *p, float *data, const size_t *count_elems,
		size_t ntensors);
/* A GPU, borrowed while the pool lives, will copy to and from it by itself. */
int gf_pool_pin(struct gf_pool *p, struct gf_gpu *gpu, struct gf_error *err);
void gf_pool_release(struct gf_pool *p);
/* The tensor that an element belongs to. */
size_t gf_pool_tensor_at(const struct gf_pool *p, size_t element);

#endif
