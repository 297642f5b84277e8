/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

#include <math.h>
#include <string.h>

/*
 * Layer normalisation (Ba, Kiros and Hinton 2016): each row of features on its own, out =
 * weight*xhat + bias with xhat = (in - mean)/sqrt(variance + epsilon). saved: mean and 1/sqrt per
 * row. With d = dout*weight:
 *	din = (d - mean(d) - xhat*mean(d*xhat)) / sqrt(variance + epsilon)
 */
struct rows {
	size_t count, width;
};

static struct rows rows_of(const struct gf_ref_io *io)
{
	const struct gf_shape *in = &io->layer->in;
	size_t count = io->batch * gf_shape_rows(in);

	return (struct rows){count, io->batch * gf_shape_elems(in) / count};
}

static void statistics(const float *x, size_t n, double epsilon, float *saved)
{
	double mean = 0, squares = 0;

	for (size_t i = 0; i < n; i++)
		mean += x[i];
	mean /= (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (x[i] - mean) * (x[i] - mean);
	saved[0] = (float)mean;
	saved[1] = (float)(1 / sqrt(squares / (double)n + epsilon));
}

static void forward(const struct gf_ref_io *io)
{
	const struct rows rows = rows_of(io);
	float *saved = io->saved;

	for (size_t r = 0; r < rows.count; r++, saved += 2) {
		const float *x = io->in[0] + r * rows.width;
		float *out = io->out + r * rows.width;

		statistics(x, rows.width, io->layer->epsilon, saved);
		for (size_t i = 0; i < rows.width; i++)
			out[i] = io->weight[i] * (x[i] - saved[0]) * saved[1] + io->bias[i];
	}
}

static void row_backward(const struct gf_ref_io *io, size_t r, size_t width)
{
	const float *x = io->in[0] + r * width, *dout = io->dout + r * width;
	const float *saved = (const float *)io->saved + 2 * r;
	double sum = 0, dot = 0;

	for (size_t i = 0; i < width; i++) {
		double xhat = (double)(x[i] - saved[0]) * saved[1];

		io->dbias[i] += dout[i];
		io->dweight[i] += (float)(dout[i] * xhat);
		sum += (double)dout[i] * io->weight[i];
		dot += (double)dout[i] * io->weight[i] * xhat;
	}
	sum /= (double)width;
	dot /= (double)width;
	for (size_t i = 0; io->din[0] && i < width; i++) {
		double xhat = (double)(x[i] - saved[0]) * saved[1];
		double d = (double)dout[i] * io->weight[i];

		io->din[0][r * width + i] += (float)((d - sum - xhat * dot) * saved[1]);
	}
}

static void backward(const struct gf_ref_io *io)
{
	const struct rows rows = rows_of(io);

	memset(io->dweight, 0, rows.width * sizeof(float));
	memset(io->dbias, 0, rows.width * sizeof(float));
	for (size_t r = 0; r < rows.count; r++)
		row_backward(io, r, rows.width);
}

static size_t saved_bytes(const struct gf_layer *l, size_t batch)
{
	return 2 * batch * gf_shape_rows(&l->in) * sizeof(float);
}

const struct gf_ref_layer gf_ref_layernorm = {
	.forward = forward,
	.backward = backward,
	.saved_bytes = saved_bytes,
};
