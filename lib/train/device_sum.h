/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_DEVICE_SUM_H
#define GF_TRAIN_DEVICE_SUM_H

#include <stddef.h>

#include "base/error.h"
#include "gpu/gpu.h"

/*
 * The mean of several micro-batches' gradients, made on a device: those before
 * the last are added up without a wait on the host. The last one takes the sum
 * up tensor by tensor, each as soon as it is there. The result has the same
 * bits as train/train_step.c's on the host.
 *
 *	to = gf_train_sum_to(s, part);		// where backward writes
 *	gf_train_sum_keep(s, part);		// after each but the last
 *	gf_train_sum_take_up(s, tensor) ...	// from the last backward
 */
struct gf_train_sum {
	struct gf_gpu *gpu; /* all borrowed */
	struct gf_gpu_stream *stream;
	const size_t *offsets; /* ntensors + 1 */
	size_t ntensors, parts;
	float *grads; /* the device's; in the end the mean */
	void *sum;    /* own; NULL: one part, nothing to do */
};

/* All but sum is filled in. -ENOMEM */
int gf_train_sum_open(struct gf_train_sum *s, struct gf_error *err);
void gf_train_sum_close(struct gf_train_sum *s);

float *gf_train_sum_to(const struct gf_train_sum *s, size_t part);
void gf_train_sum_keep(const struct gf_train_sum *s, size_t part);
void gf_train_sum_take_up(const struct gf_train_sum *s, size_t tensor);

#endif
