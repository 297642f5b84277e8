/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BENCH_STEP_H
#define GF_BENCH_STEP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "doc/model.h"
#include "nn/net.h"

/*
 * The compute part of a training step, made of the same pieces as gf-train's:
 * a batch turned from bytes into numbers, forward, loss, backward, an SGD
 * update of every tensor. The samples are random bytes of the model's shape;
 * how long dense layers take does not depend on their values.
 */
struct gf_bench_step {
	const struct gf_model *model;
	const struct gf_backend *backend;
	size_t batch;
	struct gf_net *net;
	uint8_t *bytes; /* several batches of raw samples */
	size_t batch_elems, next;
	float *params, *velocity, *input;
	uint8_t *labels;
	size_t *offsets; /* ntensors + 1, in elements, generation order */
	size_t ntensors;
};

/* -ENOTSUP, -EINVAL: the backend cannot compute the model. */
int gf_bench_step_open(struct gf_bench_step *s, const struct gf_model *model,
		       const struct gf_backend *backend, size_t batch,
		       struct gf_error *err);
void gf_bench_step_close(struct gf_bench_step *s);

/* Fetches samples: what gf-train does before a step's clock starts. */
void gf_bench_step_load(struct gf_bench_step *s);
/* Forward and loss. */
int gf_bench_step_forward(struct gf_bench_step *s, struct gf_error *err);
int gf_bench_step_backward(struct gf_bench_step *s, float *grads,
			   void (*on_grad)(void *ctx, size_t tensor), void *ctx,
			   struct gf_error *err);
void gf_bench_step_update(struct gf_bench_step *s, const float *grads);

#endif
