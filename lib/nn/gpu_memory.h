/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_NN_GPU_MEMORY_H
#define GF_NN_GPU_MEMORY_H

#include "nn/gpu_net.h"

/* Plans and takes the net's memory, in one piece and zeroed, and connects its
 * layers (private to lib/nn). g has everything that sizes depend on; *blas_work
 * is GF_GPU_BLAS_BYTES of it. -ENOMEM says how much was wanted for what. */
int gf_gpu_memory(struct gf_gpu_net *g, void **blas_work, struct gf_error *err);
/* Finds what is done together, and whose gradients share memory; before memory
 * is planned. */
void gf_gpu_fuse(struct gf_gpu_net *g);
/* From here on passes have a workspace of so many bytes, or more. Work
 * that is enqueued keeps the one before. */
int gf_gpu_grow_work(struct gf_gpu_net *g, size_t bytes, struct gf_error *err);

#endif
