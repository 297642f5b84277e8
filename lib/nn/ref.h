/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_NN_REF_H
#define GF_NN_REF_H

#include <stdbool.h>
#include <stddef.h>

#include "doc/model.h"

/*
 * One layer's arrays in the reference backend, all plain {N, C, H, W} or
 * {N, F} (private to lib/nn). forward writes out and, if training, saved.
 * backward adds to din (NULL where nobody needs it; the driver has zeroed it,
 * so a value with several consumers gets the sum) and overwrites dweight and
 * dbias.
 */
struct gf_ref_io {
	const struct gf_layer *layer;
	size_t batch;
	bool training;
	const float *in[2];
	float *out;
	float *din[2];
	float *dout;
	const float *weight, *bias;
	float *dweight, *dbias;
	void *saved;          /* what forward keeps for backward */
	const float *running; /* batch norm: means, then variances */
};

struct gf_ref_layer {
	void (*forward)(const struct gf_ref_io *io);
	void (*backward)(const struct gf_ref_io *io);
	/* (optional) bytes of saved, for a batch */
	size_t (*saved_bytes)(const struct gf_layer *l, size_t batch);
};

extern const struct gf_ref_layer gf_ref_conv, gf_ref_fc, gf_ref_batchnorm,
	gf_ref_relu, gf_ref_add, gf_ref_maxpool, gf_ref_avgpool,
	gf_ref_globalpool;

#endif
