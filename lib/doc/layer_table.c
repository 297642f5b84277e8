/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/layer.h"

/* The layer types, by enum gf_layer_type. */
const struct gf_layer_kind *const gf_layer_kinds[] = {
	[GF_LAYER_CONV] = &gf_layer_conv,
	[GF_LAYER_BATCHNORM] = &gf_layer_batchnorm,
	[GF_LAYER_RELU] = &gf_layer_relu,
	[GF_LAYER_MAXPOOL] = &gf_layer_maxpool,
	[GF_LAYER_AVGPOOL] = &gf_layer_avgpool,
	[GF_LAYER_GLOBALPOOL] = &gf_layer_globalpool,
	[GF_LAYER_FC] = &gf_layer_fc,
	[GF_LAYER_ADD] = &gf_layer_add,
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
	NULL,
};
