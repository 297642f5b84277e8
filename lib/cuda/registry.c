/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/gpu.h"

#include "cuda/backends.h"

#if GF_HAVE_CUDA
static const struct gf_gpu_backend *const backend = &gf_gpu_cuda;
#else
static int none(struct gf_error *why)
{
	gf_error_set(why, -ENOTSUP, "built without CUDA");
	return 0;
}

static int cannot_open(int index, struct gf_gpu **gpu, struct gf_error *err)
{
	(void)index;
	(void)gpu;
	return gf_error_set(err, -ENOTSUP, "built without CUDA");
}

static const struct gf_gpu_backend without = {none, cannot_open};
static const struct gf_gpu_backend *const backend = &without;
#endif

int gf_gpu_count(struct gf_error *why)
{
	return backend->count(why);
}

int gf_gpu_open(int index, struct gf_gpu **gpu, struct gf_error *err)
{
	return backend->open(index, gpu, err);
}

void gf_gpu_close(struct gf_gpu *gpu)
{
	if (gpu)
		gpu->ops->close(gpu);
}
