/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

#include <math.h>
#include <string.h>

/*
 * Long short-term memory (Hochreiter and Schmidhuber 1997, with forget gate),
 * over a sequence {T, F} from zero state:
 *	i, f, g, o = rows of W_ih x[t] + b_ih + W_hh h[t-1] + b_hh
 *	c[t] = sigmoid(f) c[t-1] + sigmoid(i) tanh(g)
 *	h[t] = sigmoid(o) tanh(c[t])
 * out is h. `saved` holds, per sample and position, the four gates after their
 * functions, then c; at its end the running dh, dc and the gates' gradients.
 */
enum { WEIGHT_IH, WEIGHT_HH, BIAS_IH, BIAS_HH };

struct sizes {
	size_t steps, inputs, hidden;
};

struct work {
	float *gates, *cells;    /* of one sample */
	float *dh, *dc, *dgates; /* of one position */
};

static struct sizes sizes_of(const struct gf_layer *l)
{
	return (struct sizes){l->in.dims[0], l->in.dims[1], l->filters};
}

static struct work work_of(const struct gf_ref_io *io, size_t n)
{
	const struct sizes s = sizes_of(io->layer);
	const size_t sample = s.steps * 5 * s.hidden;
	float *saved = io->saved, *rest = saved + io->batch * sample;

	return (struct work){
		.gates = saved + n * sample,
		.cells = saved + n * sample + s.steps * 4 * s.hidden,
		.dh = rest,
		.dc = rest + s.hidden,
		.dgates = rest + 2 * s.hidden,
	};
}

static float sigmoid(float x)
{
	return 1 / (1 + expf(-x));
}

/* to += matrix * x */
static void add_product(float *to, const float *matrix, const float *x,
			size_t rows, size_t columns)
{
	for (size_t r = 0; r < rows; r++)
		for (size_t c = 0; c < columns; c++)
			to[r] += matrix[r * columns + c] * x[c];
}

/* to += matrix' * y */
static void add_transposed(float *to, const float *matrix, const float *y,
			   size_t rows, size_t columns)
{
	for (size_t r = 0; r < rows; r++)
		for (size_t c = 0; c < columns; c++)
			to[c] += matrix[r * columns + c] * y[r];
}

/* matrix += y x' */
static void add_outer(float *matrix, const float *y, const float *x,
		      size_t rows, size_t columns)
{
	for (size_t r = 0; r < rows; r++)
		for (size_t c = 0; c < columns; c++)
			matrix[r * columns + c] += y[r] * x[c];
}

static void step_forward(const struct gf_ref_io *io, const struct work *w,
			 size_t n, size_t t)
{
	const struct sizes s = sizes_of(io->layer);
	float *gates = w->gates + t * 4 * s.hidden;
	float *cell = w->cells + t * s.hidden;
	float *out = io->out + (n * s.steps + t) * s.hidden;

	for (size_t k = 0; k < 4 * s.hidden; k++)
		gates[k] = io->param[BIAS_IH][k] + io->param[BIAS_HH][k];
	add_product(gates, io->param[WEIGHT_IH],
		    io->in[0] + (n * s.steps + t) * s.inputs, 4 * s.hidden,
		    s.inputs);
	if (t > 0)
		add_product(gates, io->param[WEIGHT_HH], out - s.hidden,
			    4 * s.hidden, s.hidden);
	for (size_t k = 0; k < s.hidden; k++) {
		float i = sigmoid(gates[k]), f = sigmoid(gates[s.hidden + k]);
		float g = tanhf(gates[2 * s.hidden + k]);
		float o = sigmoid(gates[3 * s.hidden + k]);

		cell[k] = i * g + (t > 0 ? f * cell[k - s.hidden] : 0);
		out[k] = o * tanhf(cell[k]);
		gates[k] = i;
		gates[s.hidden + k] = f;
		gates[2 * s.hidden + k] = g;
		gates[3 * s.hidden + k] = o;
	}
}

static void forward(const struct gf_ref_io *io)
{
	for (size_t n = 0; n < io->batch; n++) {
		const struct work w = work_of(io, n);

		for (size_t t = 0; t < io->layer->in.dims[0]; t++)
			step_forward(io, &w, n, t);
	}
}

/* dh: the gradient of h from the next position; on return the one for the
 * position before. dc: the same of c. */
static void gates_backward(const struct gf_ref_io *io, const struct work *w,
			   size_t n, size_t t)
{
	const struct sizes s = sizes_of(io->layer);
	const float *gates = w->gates + t * 4 * s.hidden;
	const float *cell = w->cells + t * s.hidden;
	const float *dout = io->dout + (n * s.steps + t) * s.hidden;

	for (size_t k = 0; k < s.hidden; k++) {
		float i = gates[k], f = gates[s.hidden + k];
		float g = gates[2 * s.hidden + k];
		float o = gates[3 * s.hidden + k];
		float squashed = tanhf(cell[k]), dh = dout[k] + w->dh[k];
		float dc = w->dc[k] + dh * o * (1 - squashed * squashed);
		float before = t > 0 ? cell[k - s.hidden] : 0;

		w->dgates[k] = dc * g * i * (1 - i);
		w->dgates[s.hidden + k] = dc * before * f * (1 - f);
		w->dgates[2 * s.hidden + k] = dc * i * (1 - g * g);
		w->dgates[3 * s.hidden + k] = dh * squashed * o * (1 - o);
		w->dc[k] = dc * f;
		w->dh[k] = 0;
	}
}

static void step_backward(const struct gf_ref_io *io, const struct work *w,
			  size_t n, size_t t)
{
	const struct sizes s = sizes_of(io->layer);
	const size_t rows = 4 * s.hidden, at = n * s.steps + t;

	gates_backward(io, w, n, t);
	for (size_t k = 0; k < rows; k++)
		io->dparam[BIAS_IH][k] += w->dgates[k];
	add_outer(io->dparam[WEIGHT_IH], w->dgates, io->in[0] + at * s.inputs,
		  rows, s.inputs);
	if (io->din[0])
		add_transposed(io->din[0] + at * s.inputs, io->param[WEIGHT_IH],
			       w->dgates, rows, s.inputs);
	if (t == 0)
		return;
	add_outer(io->dparam[WEIGHT_HH], w->dgates,
		  io->out + (at - 1) * s.hidden, rows, s.hidden);
	add_transposed(w->dh, io->param[WEIGHT_HH], w->dgates, rows, s.hidden);
}

static void backward(const struct gf_ref_io *io)
{
	const struct sizes s = sizes_of(io->layer);
	const size_t rows = 4 * s.hidden;

	memset(io->dparam[WEIGHT_IH], 0, rows * s.inputs * sizeof(float));
	memset(io->dparam[WEIGHT_HH], 0, rows * s.hidden * sizeof(float));
	memset(io->dparam[BIAS_IH], 0, rows * sizeof(float));
	for (size_t n = 0; n < io->batch; n++) {
		const struct work w = work_of(io, n);

		memset(w.dh, 0, s.hidden * sizeof(float));
		memset(w.dc, 0, s.hidden * sizeof(float));
		for (size_t t = s.steps; t-- > 0;)
			step_backward(io, &w, n, t);
	}
	memcpy(io->dparam[BIAS_HH], io->dparam[BIAS_IH], rows * sizeof(float));
}

static size_t saved_bytes(const struct gf_layer *l, size_t batch)
{
	const struct sizes s = sizes_of(l);

	return (batch * s.steps * 5 + 6) * s.hidden * sizeof(float);
}

const struct gf_ref_layer gf_ref_lstm = {
	.forward = forward,
	.backward = backward,
	.saved_bytes = saved_bytes,
};
