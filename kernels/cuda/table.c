/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/sets.h"

#define ENTRY(name) .name = gf_cuda_##name,
#define CODEC(number, encodes, decodes)                                                            \
	.codecs[GF_CODEC_##number] = {gf_cuda_##encodes##_encode, gf_cuda_##decodes##_decode,      \
				      gf_cuda_##decodes##_decode_add},

const struct gf_gpu_kernels gf_gpu_kernels_cuda = {.name = "cuda",
						   .lars_work_bytes = gf_gpu_lars_work_bytes,
						   .clip_work_bytes = gf_gpu_clip_work_bytes,
						   .topk_work_bytes = gf_gpu_topk_work_bytes,
						   .merge_work_bytes = gf_gpu_merge_work_bytes,
						   GF_CUDA_KERNELS(ENTRY) GF_CUDA_CODECS(CODEC)};
