/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/graph.h"

#include <stdatomic.h>
#include <string.h>

/* The fastest on the host first: "auto" takes it. */
const struct gf_backend *const gf_backends[] = {
#if GF_HAVE_ONEDNN
	&gf_backend_onednn,
#endif
	&gf_backend_ref,
#if GF_HAVE_CUDNN
	&gf_backend_cuda,
#endif
	NULL,
};

const struct gf_backend *gf_backend_find(const char *name)
{
	if (!name || strcmp(name, "auto") == 0)
		return gf_backends[0];
	for (size_t i = 0; gf_backends[i]; i++)
		if (strcmp(gf_backends[i]->name, name) == 0)
			return gf_backends[i];
	return NULL;
}

static atomic_int wanted_threads;
static atomic_int wanted_precision = GF_F32;
static struct gf_gpu *_Atomic wanted_gpu;
static struct gf_gpu_stream *_Atomic wanted_stream;

void gf_nn_set_threads(int threads)
{
	atomic_store(&wanted_threads, threads > 0 ? threads : 0);
}

int gf_nn_threads(void)
{
	return atomic_load(&wanted_threads);
}

void gf_nn_set_precision(enum gf_dtype dtype)
{
	atomic_store(&wanted_precision, (int)dtype);
}

enum gf_dtype gf_nn_precision(void)
{
	return (enum gf_dtype)atomic_load(&wanted_precision);
}

void gf_nn_set_device(struct gf_gpu *gpu, struct gf_gpu_stream *stream)
{
	atomic_store(&wanted_gpu, gpu);
	atomic_store(&wanted_stream, stream);
}

struct gf_gpu *gf_nn_device(struct gf_gpu_stream **stream)
{
	*stream = atomic_load(&wanted_stream);
	return atomic_load(&wanted_gpu);
}
