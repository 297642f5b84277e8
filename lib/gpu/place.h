/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_GPU_PLACE_H
#define GF_GPU_PLACE_H

#include <stdbool.h>
#include <stddef.h>

struct gf_gpu;
struct gf_gpu_stream;
struct gf_nccl_ops;
struct gf_nccl_tuning;

/*
 * Where gradients are made, and how they leave. Zeros: on the host. All
 * pointers are borrowed.
 */
struct gf_place {
	struct gf_gpu *gpu;           /* that makes them; NULL: the host does */
	struct gf_gpu_stream *stream; /* on which it does */
	/* They go from GPU to GPU. NULL: by the host, whole, or, if `by_host`,
	 * what a selection chooses of them on the GPU. */
	const struct gf_nccl_ops *nccl;
	bool by_host;
	/* The lanes' communicators are told that; NULL: nothing. */
	struct gf_nccl_tuning *told;
	bool graphs; /* messages become graphs (engine/engine.h) */
	/* If they stay on the GPU for a selection or the update: the gradients
	 * of as many steps as are under way, each `stride` elements after the
	 * one before (by_host: of one), and the parameters. */
	float *grads, *params;
	size_t stride;
};

#endif
