/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CUDA_SETS_H
#define GF_KERNELS_CUDA_SETS_H

#include "gf_gpu_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The entries of table.c, of vector.cu, lars.cu, adamw.cu, clip.cu, sum.cu, chunks.cu, topk.cu and
 * sparse.cu: an entry `add_f32` is the function gf_cuda_add_f32. */
/* clang-format off */
#define GF_CUDA_KERNELS(entry)                                                                     \
	entry(add_f32) entry(scale_f32) entry(sgd_f32) entry(lars_f32) entry(adamw_begin)          \
	entry(adamw_f32) entry(clip_f32) entry(nonfinite_f32) entry(chunk_norms_f32)               \
	entry(gather_chunks_f32) entry(keep_chunks_f32) entry(share_norms) entry(topk_f32)         \
	entry(take_f32) entry(scatter_add_f32) entry(merge_f32) entry(move_f32) entry(leave_out)   \
	entry(copy_f32) entry(spoil_f32)
/* clang-format on */
/* Its codecs, of half.cu, q8.cu and minifloat.cu: the number, what encodes and what decodes. */
#define GF_CUDA_CODECS(codec)                                                                      \
	codec(F16, f16, f16) codec(BF16, bf16, bf16) codec(TRUNC16, trunc16, bf16)                 \
		codec(Q8, q8, q8) codec(FP8, fp8, fp8) codec(FP4, fp4, fp4)

#define ENTRY(name) extern __typeof__(*((struct gf_gpu_kernels *)0)->name) gf_cuda_##name;
#define CODEC(number, encodes, decodes)                                                            \
	extern gf_gpu_code_fn gf_cuda_##encodes##_encode, gf_cuda_##decodes##_decode,              \
		gf_cuda_##decodes##_decode_add;
GF_CUDA_KERNELS(ENTRY)
GF_CUDA_CODECS(CODEC)
#undef ENTRY
#undef CODEC

#ifdef __cplusplus
}
#endif
#endif
