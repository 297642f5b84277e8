/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_AUTOTUNE_OWN_GPU_H
#define GF_AUTOTUNE_OWN_GPU_H

#include <stddef.h>

#include "base/error.h"
#include "transport/comm.h"
#include "cuda/lanes/nccl.h"
#include "cuda/gpu.h"

/*
 * The GPU that a rank takes, by the names that --device knows. Also whether NCCL can move data that
 * lies on the GPUs of all ranks.
 */
#define GF_ANY_GPU ((size_t)-1)

/* The GPUs that there are; tests put other devices here. */
struct gf_gpu_source {
	int (*count)(struct gf_error *why);
	int (*open)(int index, struct gf_gpu **gpu, struct gf_error *err);
	int (*nccl)(const struct gf_nccl_ops **ops, struct gf_error *err);
};

extern const struct gf_gpu_source gf_gpus_here; /* this machine's */

/* "cuda" is any, "cuda:N" the N-th that this process sees. -ENOENT: no GPU is meant (err is left
 * alone); -EINVAL: no such number can be. */
int gf_own_gpu_read(const char *device, size_t *index, struct gf_error *err);

/* This rank's own; any: those of a host in turn. -ENODEV: it is not there. */
int gf_own_gpu_open(const struct gf_gpu_source *from, const struct gf_comm *comm, size_t index,
		    struct gf_gpu **gpu, struct gf_error *err);

/* Collective. NCCL, if it is there, the same everywhere, and every rank has a GPU of its own; else
 * -ENODEV or -EINVAL with what hinders it, the same on all ranks (or what broke comm). */
int gf_own_gpu_nccl(const struct gf_gpu_source *from, struct gf_comm *comm,
		    const struct gf_gpu *gpu, const struct gf_nccl_ops **nccl,
		    struct gf_error *err);

#endif
