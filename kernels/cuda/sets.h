/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CUDA_SETS_H
#define GF_KERNELS_CUDA_SETS_H

#include "gf_gpu_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The entries of table.c: an entry `add_f32` is the function gf_cuda_add_f32. */
#define ENTRY(name) extern __typeof__(*((struct gf_gpu_kernels *)0)->name) gf_cuda_##name
#define CODE(name)  extern gf_gpu_code_fn gf_cuda_##name

/* vector.cu */
ENTRY(add_f32);
ENTRY(scale_f32);
ENTRY(sgd_f32);
/* lars.cu */
ENTRY(lars_f32);
/* adamw.cu */
ENTRY(adamw_begin);
ENTRY(adamw_f32);
/* clip.cu */
ENTRY(clip_f32);
/* sum.cu */
ENTRY(nonfinite_f32);
ENTRY(chunk_norms_f32);
/* chunks.cu */
ENTRY(gather_chunks_f32);
ENTRY(keep_chunks_f32);
ENTRY(share_norms);
/* half.cu */
CODE(f16_encode);
CODE(f16_decode);
CODE(f16_decode_add);
CODE(bf16_encode);
CODE(bf16_decode);
CODE(bf16_decode_add);
CODE(trunc16_encode);
/* q8.cu */
CODE(q8_encode);
CODE(q8_decode);
CODE(q8_decode_add);
/* minifloat.cu */
CODE(fp8_encode);
CODE(fp8_decode);
CODE(fp8_decode_add);
CODE(fp4_encode);
CODE(fp4_decode);
CODE(fp4_decode_add);
/* topk.cu */
ENTRY(topk_f32);
/* sparse.cu */
ENTRY(take_f32);
ENTRY(scatter_add_f32);
ENTRY(merge_f32);
ENTRY(move_f32);
ENTRY(leave_out);
ENTRY(copy_f32);
ENTRY(spoil_f32);

#undef ENTRY
#undef CODE

#ifdef __cplusplus
}
#endif
#endif
