/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CUDA_BACKENDS_H
#define GF_CUDA_BACKENDS_H

#include "cuda/gpu.h"

/* The entries of registry.c; private to lib/cuda. */
struct gf_gpu_backend {
	int (*count)(struct gf_error *why);
	int (*open)(int index, struct gf_gpu **gpu, struct gf_error *err);
};

extern const struct gf_gpu_backend gf_gpu_cuda;

#endif
