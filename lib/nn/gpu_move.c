/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

/* Layers that only move values: concatenation, selection, embedding. */

/* --- concat: along the first dimension, so each sample (of an image with
 * channels last, each place) is a row of blocks -----------------------------
 */

static const struct gf_shape *input_of(const struct gf_gpu_io *io, size_t i)
{
	const struct gf_model *m = io->g->net->model;
	const int from = io->layer->inputs[i];

	return from < 0 ? &m->input : &m->layers[from].out;
}

/* Calls copy_rows for each input, into `out` or out of it. */
static void each_input(struct gf_gpu_io *io, bool forward)
{
	const struct gf_gpu_net *g = io->g;
	const size_t places = g->channels_last ? gf_shape_spatial(&io->layer->out) : 1;
	const size_t row = gf_shape_elems(&io->layer->out) / places;
	char *at = forward ? io->out : io->dout;

	for (size_t i = 0; i < io->layer->ninputs; i++) {
		const size_t width = gf_shape_elems(input_of(io, i)) / places;
		const struct gf_gpu_rows r = {
			.dtype = g->dtype,
			.from = forward ? io->in[i] : at,
			.to = forward ? (void *)at : io->din[i],
			.rows = io->batch * places,
			.width = width,
			.from_step = forward ? width : row,
			.to_step = forward ? row : width,
			.add = !forward && io->add[i],
		};

		if (forward || io->din[i])
			g->kernels->copy_rows(g->stream, &r);
		at += gf_gpu_bytes(g, width);
	}
}

static int concat_forward(struct gf_gpu_io *io, struct gf_error *err)
{
	(void)err;
	each_input(io, true);
	return 0;
}

static int concat_backward(struct gf_gpu_io *io, struct gf_error *err)
{
	(void)err;
	each_input(io, false);
	return 0;
}

/* --- select: one position of a sequence ------------------------------------
 */

static int select_forward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;
	const size_t features = io->layer->in.dims[1];
	const struct gf_gpu_rows r = {
		.dtype = g->dtype,
		.from = (const char *)io->in[0] + gf_gpu_bytes(g, io->layer->position * features),
		.to = io->out,
		.rows = io->batch,
		.width = features,
		.from_step = gf_shape_elems(&io->layer->in),
		.to_step = features,
	};

	(void)err;
	g->kernels->copy_rows(g->stream, &r);
	return 0;
}

static int select_backward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;
	const size_t features = io->layer->in.dims[1];
	const size_t sample = gf_shape_elems(&io->layer->in);
	const struct gf_gpu_rows r = {
		.dtype = g->dtype,
		.from = io->dout,
		.to = (char *)io->din[0] + gf_gpu_bytes(g, io->layer->position * features),
		.rows = io->batch,
		.width = features,
		.from_step = features,
		.to_step = sample,
		.add = io->add[0],
	};
	int rc = 0;

	if (!io->din[0])
		return 0;
	if (!io->add[0])
		rc = g->gpu->ops->zero(g->gpu, g->stream, io->din[0],
				       gf_gpu_bytes(g, io->batch * sample), err);
	if (!rc)
		g->kernels->copy_rows(g->stream, &r);
	return rc;
}

/* --- embedding --------------------------------------------------------------
 */

static struct gf_gpu_embedding table_of(const struct gf_gpu_io *io, size_t batch)
{
	return (struct gf_gpu_embedding){
		.dtype = io->g->dtype,
		.numbers = io->layer->positional ? NULL : io->sample,
		.count = batch * io->layer->in.dims[0],
		.steps = io->layer->in.dims[0],
		.stretch = io->layer->stretch,
		.add = io->g->net->adds[io->index],
		.width = io->layer->filters,
		.entries = io->layer->entries,
	};
}

static int embedding_forward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_embedding e = table_of(io, io->batch);

	(void)err;
	io->g->kernels->embed(io->g->stream, &e, io->param[0], io->out, io->g->outcome);
	return 0;
}

static int embedding_backward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_embedding e = table_of(io, io->batch);

	(void)err;
	if (io->dparam[0])
		io->g->kernels->embed_backward(io->g->stream, &e, io->dout, io->g->unscale,
					       io->dparam[0], io->g->scratch);
	return 0;
}

/* A smaller batch may be cut into fewer parts, never into more. */
static size_t embedding_scratch(const struct gf_gpu_io *io, size_t batch)
{
	const struct gf_gpu_embedding e = table_of(io, batch);

	return gf_gpu_embed_work_bytes(&e);
}

const struct gf_gpu_layer gf_gpu_concat = {
	.forward = concat_forward,
	.backward = concat_backward,
};
const struct gf_gpu_layer gf_gpu_select = {
	.forward = select_forward,
	.backward = select_backward,
};
const struct gf_gpu_layer gf_gpu_embedding = {
	.forward = embedding_forward,
	.backward = embedding_backward,
	.scratch_bytes = embedding_scratch,
};
