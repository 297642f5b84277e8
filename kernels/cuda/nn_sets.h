/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CUDA_NN_SETS_H
#define GF_KERNELS_CUDA_NN_SETS_H

#include "gf_gpu_nn_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The entries of nn_table.c, as in sets.h. */
#define ENTRY(name) extern __typeof__(*((struct gf_gpu_nn_kernels *)0)->name) gf_cuda_nn_##name

/* nn_simple.cu */
ENTRY(apply);
ENTRY(apply_backward);
ENTRY(sum);
ENTRY(permute);
ENTRY(copy_rows);
ENTRY(keep);
/* nn_norm.cu */
ENTRY(add_bias);
ENTRY(channel_sums);
ENTRY(norm_statistics);
ENTRY(norm_running);
ENTRY(norm_apply);
ENTRY(norm_backward);
/* nn_rows.cu */
ENTRY(layernorm);
ENTRY(layernorm_backward);
ENTRY(softmax);
ENTRY(softmax_backward);
ENTRY(softmax_loss);
/* nn_pool.cu */
ENTRY(maxpool);
ENTRY(maxpool_backward);
ENTRY(avgpool);
ENTRY(avgpool_backward);
/* nn_draw.cu */
ENTRY(set_samples);
ENTRY(draw_keeps);
/* nn_embed.cu */
ENTRY(embed);
ENTRY(embed_backward);
/* nn_lstm.cu */
ENTRY(lstm);
ENTRY(lstm_backward);

#undef ENTRY

#ifdef __cplusplus
}
#endif
#endif
