/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

#include <math.h>

/*
 * Attention (ref_attention.c), one head of all samples at a time: a head is one
 * product of matrices per sample. `saved` holds the softmax of the scores in
 * the layout {N, heads, T, T}. `scratch` holds the gradient of the softmax.
 */
struct sizes {
	size_t steps, features, heads, width;
};

enum { QUERIES, KEYS, VALUES };

static struct sizes sizes_of(const struct gf_gpu_io *io)
{
	const struct gf_layer *l = io->layer;

	return (struct sizes){l->in.dims[0], l->in.dims[1], l->heads,
			      l->in.dims[1] / l->heads};
}

static size_t scores(const struct gf_gpu_io *io, size_t batch)
{
	const struct sizes s = sizes_of(io);

	return batch * s.heads * s.steps * s.steps;
}

/* A head's columns of a {N, T, F} array. */
static struct gf_gpu_matrix columns(const struct gf_gpu_io *io, size_t head,
				    const void *array)
{
	const struct sizes s = sizes_of(io);

	return (struct gf_gpu_matrix){
		.at = (char *)array + gf_gpu_bytes(io->g, head * s.width),
		.row = s.features,
		.step = s.steps * s.features,
	};
}

static struct gf_gpu_matrix square(const struct gf_gpu_io *io, size_t head,
				   const void *array)
{
	const struct sizes s = sizes_of(io);

	return (struct gf_gpu_matrix){
		.at = (char *)array +
		      gf_gpu_bytes(io->g, head * s.steps * s.steps),
		.row = s.steps,
		.step = s.heads * s.steps * s.steps,
	};
}

static struct gf_gpu_matrix transposed(struct gf_gpu_matrix m)
{
	m.transposed = true;
	return m;
}

/* {T, T} of two heads' columns, or columns of a {T, T} and columns. */
static int multiply(const struct gf_gpu_io *io, struct gf_gpu_product p,
		    bool to_scores, struct gf_error *err)
{
	const struct sizes s = sizes_of(io);

	p.type = p.c_type = io->g->dtype;
	p.m = s.steps;
	p.n = to_scores ? s.steps : s.width;
	p.k = to_scores ? s.width : s.steps;
	p.count = io->batch;
	return gf_gpu_multiply(io->g->blas, &p, err);
}

static float scale_of(const struct gf_gpu_io *io)
{
	return 1 / sqrtf((float)sizes_of(io).width);
}

static int forward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;
	const struct sizes s = sizes_of(io);
	int rc = 0;

	for (size_t h = 0; h < s.heads && !rc; h++)
		rc = multiply(
			io,
			(struct gf_gpu_product){
				.a = columns(io, h, io->in[QUERIES]),
				.b = transposed(columns(io, h, io->in[KEYS])),
				.c = square(io, h, io->saved),
				.alpha = scale_of(io)},
			true, err);
	if (!rc)
		g->kernels->softmax(g->stream, g->dtype, io->saved,
				    scores(io, io->batch) / s.steps, s.steps);
	for (size_t h = 0; h < s.heads && !rc; h++)
		rc = multiply(io,
			      (struct gf_gpu_product){
				      .a = square(io, h, io->saved),
				      .b = columns(io, h, io->in[VALUES]),
				      .c = columns(io, h, io->out),
				      .alpha = 1},
			      false, err);
	return rc;
}

static int scores_backward(const struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;
	const struct sizes s = sizes_of(io);
	int rc = 0;

	for (size_t h = 0; h < s.heads && !rc; h++)
		rc = multiply(
			io,
			(struct gf_gpu_product){
				.a = columns(io, h, io->dout),
				.b = transposed(columns(io, h, io->in[VALUES])),
				.c = square(io, h, g->scratch),
				.alpha = 1},
			true, err);
	if (!rc)
		g->kernels->softmax_backward(
			g->stream, g->dtype, io->saved, g->scratch,
			scale_of(io), scores(io, io->batch) / s.steps, s.steps);
	return rc;
}

/* One input's gradient from one head. */
static int input_backward(const struct gf_gpu_io *io, size_t which, size_t h,
			  struct gf_error *err)
{
	const struct gf_gpu_matrix dscores = square(io, h, io->g->scratch);
	const struct gf_gpu_matrix p = square(io, h, io->saved);
	struct gf_gpu_product product = {
		.c = columns(io, h, io->din[which]),
		.alpha = 1,
		.beta = io->add[which] ? 1 : 0,
	};

	product.a = which == QUERIES ? dscores
		    : which == KEYS  ? transposed(dscores)
				     : transposed(p);
	product.b = columns(io, h,
			    which == QUERIES ? io->in[KEYS]
			    : which == KEYS  ? io->in[QUERIES]
					     : io->dout);
	return multiply(io, product, false, err);
}

static int backward(struct gf_gpu_io *io, struct gf_error *err)
{
	int rc = scores_backward(io, err);

	for (size_t i = 0; i < 3; i++)
		for (size_t h = 0; h < io->layer->heads && !rc; h++)
			if (io->din[i])
				rc = input_backward(io, i, h, err);
	return rc;
}

static size_t saved_bytes(const struct gf_gpu_io *io, size_t batch)
{
	return gf_gpu_bytes(io->g, scores(io, batch));
}

const struct gf_gpu_layer gf_gpu_attention = {
	.forward = forward,
	.backward = backward,
	.saved_bytes = saved_bytes,
	.scratch_bytes = saved_bytes,
	.needs_in = true,
};
