/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CUDA_CUDA_H
#define GF_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#include "cuda/gpu.h"

/* The common part of CUDA's files: cuda.c has devices, their memory and the table; cuda_stream.c
 * has enqueued work and graphs of it. */
int gf_cuda_fail(cudaError_t status, const char *what, struct gf_error *err);

/* Sets rc and the reason, and goes to out. */
#define CUDA_TRY(call)                                                                             \
	do {                                                                                       \
		cudaError_t status_ = (call);                                                      \
		if (status_ != cudaSuccess) {                                                      \
			rc = gf_cuda_fail(status_, #call, err);                                    \
			goto out;                                                                  \
		}                                                                                  \
	} while (0)

/* A thread's calls go to the device that it chose last. */
int gf_cuda_choose(const struct gf_gpu *g, struct gf_error *err);

/* cuda_stream.c, as struct gf_gpu_ops has them */
#define GF_CUDA(name) __typeof__(*((struct gf_gpu_ops *)0)->name) gf_cuda_##name
GF_CUDA(stream_new);
GF_CUDA(stream_free);
GF_CUDA(stream_sync);
GF_CUDA(event_new);
GF_CUDA(event_free);
GF_CUDA(record);
GF_CUDA(wait);
GF_CUDA(hold);
GF_CUDA(release);
GF_CUDA(query);
GF_CUDA(event_sync);
GF_CUDA(event_s);
GF_CUDA(copy);
GF_CUDA(zero);
GF_CUDA(capture_begin);
GF_CUDA(capture_end);
GF_CUDA(graph_launch);
GF_CUDA(graph_free);
#undef GF_CUDA

#endif
