/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_WEIGHTS_H
#define GF_TRAIN_WEIGHTS_H

#include "base/error.h"
#include "doc/model.h"

/*
 * Parameters, and batch norm's running statistics, out of a safetensors file: a
 * checkpoint's rank 0, or what another program has under the same names. An
 * LSTM's arrays may have PyTorch's names, which end in _l0. Other tensors of
 * the file are passed over.
 */

/* Parameters in generation order, one after the other; statistics as the net
 * has them, layer by layer. -EINVAL: one is missing or has another shape; then
 * both are undefined. */
int gf_weights_read(const char *path, const struct gf_model *m, float *params,
		    float *running, struct gf_error *err);

#endif
