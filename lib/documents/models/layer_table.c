/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/models/layer.h"

/*
 * The layer types, by enum gf_layer_type.
 *
 * To add one: shapes, parameters and FLOPs in a layer_*.c here and a row of GF_LAYERS (model.h);
 * forward and backward in lib/nn, of the reference backend first (tested against finite
 * differences), then of the others (tested against the reference); a row in gf-model(5), and one in
 * activations.c. For GPUs nn/gpu_*.c only enqueues, and kernels are those of
 * kernels/gf_gpu_nn_kernels.h; tests/gpu/test_gpu_nn*.c repeat the other backends' tests. The types
 * after lstm are for estimates, and have no more than the first of these.
 */
#define KIND(NAME, name) [GF_LAYER_##NAME] = &gf_layer_##name,
const struct gf_layer_kind *const gf_layer_kinds[] = {GF_LAYERS(KIND)};

#define TYPE_NAME(NAME, name) [GF_LAYER_##NAME] = #name,
const char *const gf_layer_type_names[] = {
	GF_LAYERS(TYPE_NAME) NULL,
};
