/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CUDA_NN_SETS_H
#define GF_KERNELS_CUDA_NN_SETS_H

#include "gf_gpu_nn_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The entries of nn_table.c, as in sets.h: of nn_simple.cu, nn_norm.cu, nn_rows.cu, nn_loss.cu,
 * nn_pool.cu, nn_draw.cu, nn_embed.cu and nn_lstm.cu. */
/* clang-format off */
#define GF_CUDA_NN_KERNELS(entry)                                                                  \
	entry(apply) entry(apply_backward) entry(sum) entry(permute) entry(copy_rows)              \
	entry(keep) entry(add_bias) entry(channel_sums) entry(norm_statistics)                     \
	entry(norm_running) entry(norm_apply) entry(norm_backward) entry(layernorm)                \
	entry(layernorm_backward) entry(softmax) entry(softmax_backward) entry(softmax_loss)       \
	entry(maxpool) entry(maxpool_backward) entry(avgpool) entry(avgpool_backward)              \
	entry(set_samples) entry(draw_keeps) entry(embed) entry(embed_backward) entry(lstm)        \
	entry(lstm_backward)
/* clang-format on */

#define ENTRY(name) extern __typeof__(*((struct gf_gpu_nn_kernels *)0)->name) gf_cuda_nn_##name;
GF_CUDA_NN_KERNELS(ENTRY)
#undef ENTRY

#ifdef __cplusplus
}
#endif
#endif
