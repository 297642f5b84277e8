/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_WEIGHTS_H
#define GF_TRAIN_WEIGHTS_H

#include "base/error.h"
#include "doc/model.h"

/*
 * Parameters, and batch norm's running statistics, in a safetensors file: a
 * checkpoint's rank 0, or PyTorch's, whose names differ in LSTMs alone. There
 * layers rnn.0 and rnn.1 are one module with rnn.weight_ih_l0 and
 * rnn.weight_ih_l1, and a layer with another name has weight_ih_l0. Other
 * tensors of a file that is read are passed over.
 */

/* Parameters in generation order, one after the other; statistics as the net
 * has them, layer by layer. -EINVAL: one is missing or has another shape; then
 * both are undefined. */
int gf_weights_read(const char *path, const struct gf_model *m, float *params,
		    float *running, struct gf_error *err);

/* With PyTorch's names; synced, whole or not at all. */
int gf_weights_write(const char *path, const struct gf_model *m,
		     const float *params, const float *running,
		     struct gf_error *err);

#endif
