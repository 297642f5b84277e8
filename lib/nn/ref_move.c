/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

#include <string.h>

/* Layers that only move values: concatenation, selection, embedding. */

static void add_to(float *to, const float *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += from[i];
}

/* --- concat: along the first dimension, so each sample is a row of blocks - */

static size_t input_elems(const struct gf_ref_io *io, size_t i)
{
	const struct gf_model *m = io->net->model;
	int from = io->layer->inputs[i];

	return gf_shape_elems(from < 0 ? &m->input : &m->layers[from].out);
}

static void concat_forward(const struct gf_ref_io *io)
{
	float *out = io->out;

	for (size_t n = 0; n < io->batch; n++)
		for (size_t i = 0; i < io->layer->ninputs; i++) {
			size_t elems = input_elems(io, i);

			memcpy(out, io->in[i] + n * elems, elems * sizeof(*out));
			out += elems;
		}
}

static void concat_backward(const struct gf_ref_io *io)
{
	const float *dout = io->dout;

	for (size_t n = 0; n < io->batch; n++)
		for (size_t i = 0; i < io->layer->ninputs; i++) {
			size_t elems = input_elems(io, i);

			if (io->din[i])
				add_to(io->din[i] + n * elems, dout, elems);
			dout += elems;
		}
}

/* --- select: one position of a sequence ---------------------------------- */

static void select_forward(const struct gf_ref_io *io)
{
	const size_t features = io->layer->in.dims[1];
	const size_t sample = gf_shape_elems(&io->layer->in);
	const size_t at = io->layer->position * features;

	for (size_t n = 0; n < io->batch; n++)
		memcpy(io->out + n * features, io->in[0] + n * sample + at,
		       features * sizeof(*io->out));
}

static void select_backward(const struct gf_ref_io *io)
{
	const size_t features = io->layer->in.dims[1];
	const size_t sample = gf_shape_elems(&io->layer->in);
	const size_t at = io->layer->position * features;

	for (size_t n = 0; io->din[0] && n < io->batch; n++)
		add_to(io->din[0] + n * sample + at, io->dout + n * features, features);
}

/* --- embedding: the row of the table that a number names, or a position --- */

static size_t entry(const struct gf_ref_io *io, size_t i)
{
	return io->layer->positional ? i % io->layer->in.dims[0] / io->layer->stretch
				     : (size_t)io->in[0][i];
}

static void embedding_forward(const struct gf_ref_io *io)
{
	const size_t width = io->layer->filters;
	const size_t count = io->batch * io->layer->in.dims[0];

	for (size_t i = 0; i < count; i++)
		memcpy(io->out + i * width, io->weight + entry(io, i) * width,
		       width * sizeof(*io->out));
}

static void embedding_backward(const struct gf_ref_io *io)
{
	const size_t width = io->layer->filters;
	const size_t count = io->batch * io->layer->in.dims[0];

	if (!io->adds)
		memset(io->dweight, 0, io->layer->entries * width * sizeof(*io->dweight));
	for (size_t i = 0; i < count; i++)
		add_to(io->dweight + entry(io, i) * width, io->dout + i * width, width);
}

const struct gf_ref_layer gf_ref_concat = {
	.forward = concat_forward,
	.backward = concat_backward,
};
const struct gf_ref_layer gf_ref_select = {
	.forward = select_forward,
	.backward = select_backward,
};
const struct gf_ref_layer gf_ref_embedding = {
	.forward = embedding_forward,
	.backward = embedding_backward,
};
