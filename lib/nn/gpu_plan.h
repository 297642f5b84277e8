/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_NN_GPU_PLAN_H
#define GF_NN_GPU_PLAN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Places for things in one piece of memory, such that things that are alive
 * together do not overlap: the largest first, each at the lowest place that is
 * free while it lives.
 */
struct gf_gpu_thing {
	size_t size_bytes;  /* 0: takes no place */
	size_t first, last; /* when it is alive, both included */
	size_t at;          /* out; a multiple of 256 */
};

/* Returns the bytes that all of them need. */
size_t gf_gpu_plan(struct gf_gpu_thing *things, size_t count);

#endif
