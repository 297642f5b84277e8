/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/nn_sets.h"

#define ENTRY(name) .name = gf_cuda_nn_##name,

const struct gf_gpu_nn_kernels gf_gpu_nn_kernels_cuda = {GF_CUDA_NN_KERNELS(ENTRY)};
