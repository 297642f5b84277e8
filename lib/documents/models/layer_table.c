/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/models/layer.h"

/*
 * The layer types, by enum gf_layer_type.
 *
 * To add one: shapes, parameters and FLOPs in a layer_*.c here and a row below; forward and
 * backward in lib/nn, of the reference backend first (tested against finite differences), then of
 * the others (tested against the reference); a row in gf-model(5), and one in activations.c. For GPUs
 * nn/gpu_*.c only enqueues, and kernels are those of kernels/gf_gpu_nn_kernels.h;
 * tests/gpu/test_gpu_nn*.c repeat the other backends' tests. The types after lstm are for
 * estimates, and have no more than the first of these.
 */
const struct gf_layer_kind *const gf_layer_kinds[] = {
	[GF_LAYER_CONV] = &gf_layer_conv,
	[GF_LAYER_BATCHNORM] = &gf_layer_batchnorm,
	[GF_LAYER_RELU] = &gf_layer_relu,
	[GF_LAYER_MAXPOOL] = &gf_layer_maxpool,
	[GF_LAYER_AVGPOOL] = &gf_layer_avgpool,
	[GF_LAYER_GLOBALPOOL] = &gf_layer_globalpool,
	[GF_LAYER_FC] = &gf_layer_fc,
	[GF_LAYER_ADD] = &gf_layer_add,
	[GF_LAYER_CONCAT] = &gf_layer_concat,
	[GF_LAYER_DROPOUT] = &gf_layer_dropout,
	[GF_LAYER_LAYERNORM] = &gf_layer_layernorm,
	[GF_LAYER_GELU] = &gf_layer_gelu,
	[GF_LAYER_TANH] = &gf_layer_tanh,
	[GF_LAYER_EMBEDDING] = &gf_layer_embedding,
	[GF_LAYER_ATTENTION] = &gf_layer_attention,
	[GF_LAYER_SELECT] = &gf_layer_select,
	[GF_LAYER_LSTM] = &gf_layer_lstm,
	[GF_LAYER_RMSNORM] = &gf_layer_rmsnorm,
	[GF_LAYER_SILU] = &gf_layer_silu,
	[GF_LAYER_MUL] = &gf_layer_mul,
	[GF_LAYER_PATCHES] = &gf_layer_patches,
};

const char *const gf_layer_type_names[] = {
	[GF_LAYER_CONV] = "conv",
	[GF_LAYER_BATCHNORM] = "batchnorm",
	[GF_LAYER_RELU] = "relu",
	[GF_LAYER_MAXPOOL] = "maxpool",
	[GF_LAYER_AVGPOOL] = "avgpool",
	[GF_LAYER_GLOBALPOOL] = "globalpool",
	[GF_LAYER_FC] = "fc",
	[GF_LAYER_ADD] = "add",
	[GF_LAYER_CONCAT] = "concat",
	[GF_LAYER_DROPOUT] = "dropout",
	[GF_LAYER_LAYERNORM] = "layernorm",
	[GF_LAYER_GELU] = "gelu",
	[GF_LAYER_TANH] = "tanh",
	[GF_LAYER_EMBEDDING] = "embedding",
	[GF_LAYER_ATTENTION] = "attention",
	[GF_LAYER_SELECT] = "select",
	[GF_LAYER_LSTM] = "lstm",
	[GF_LAYER_RMSNORM] = "rmsnorm",
	[GF_LAYER_SILU] = "silu",
	[GF_LAYER_MUL] = "mul",
	[GF_LAYER_PATCHES] = "patches",
	NULL,
};
