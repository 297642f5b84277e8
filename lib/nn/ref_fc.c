/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

#include <string.h>

/*
 * Fully connected: out[n][o] = bias[o] + sum over i of weight[o][i]*in[n][i], whatever the shape of
 * one sample's input; in a sequence {T, F} every position is a row of its own.
 */
static size_t rows(const struct gf_ref_io *io)
{
	const struct gf_shape *in = &io->layer->in;

	return io->batch * (in->rank == 2 ? in->dims[0] : 1);
}

static size_t row_inputs(const struct gf_ref_io *io)
{
	return io->batch * gf_shape_elems(&io->layer->in) / rows(io);
}

static float dot(const float *a, const float *b, size_t n)
{
	float sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

static void add_scaled(float *y, float a, const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] += a * x[i];
}

static void forward(const struct gf_ref_io *io)
{
	size_t inputs = row_inputs(io);
	size_t outputs = io->layer->filters;

	for (size_t n = 0; n < rows(io); n++)
		for (size_t o = 0; o < outputs; o++)
			io->out[n * outputs + o] =
				(io->bias ? io->bias[o] : 0) +
				dot(io->weight + o * inputs, io->in[0] + n * inputs, inputs);
}

static void backward(const struct gf_ref_io *io)
{
	size_t inputs = row_inputs(io);
	size_t outputs = io->layer->filters;

	if (!io->adds)
		memset(io->dweight, 0, outputs * inputs * sizeof(float));
	if (io->dbias)
		memset(io->dbias, 0, outputs * sizeof(float));
	for (size_t n = 0; n < rows(io); n++)
		for (size_t o = 0; o < outputs; o++) {
			float dout = io->dout[n * outputs + o];

			add_scaled(io->dweight + o * inputs, dout, io->in[0] + n * inputs, inputs);
			if (io->dbias)
				io->dbias[o] += dout;
			if (io->din[0])
				add_scaled(io->din[0] + n * inputs, dout, io->weight + o * inputs,
					   inputs);
		}
}

const struct gf_ref_layer gf_ref_fc = {
	.forward = forward,
	.backward = backward,
};
