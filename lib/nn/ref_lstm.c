/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

#include <string.h>

#include "gf_kernels.h"

/*
 * Long short-term memory (Hochreiter and Schmidhuber 1997, with forget gate), over a sequence {T,
 * F} from zero state:
 *	i, f, g, o = rows of W_ih x[t] + b_ih + W_hh h[t-1] + b_hh
 *	c[t] = sigmoid(f) c[t-1] + sigmoid(i) tanh(g)
 *	h[t] = sigmoid(o) tanh(c[t])
 * out is h. A product takes the whole batch at once: the inputs of all positions in one, then one
 * per position for what comes from the position before. The same in backward, where the weights'
 * gradients wait for the end and are one product each.
 *
 * Rows are (sample, position) pairs, samples outermost, as the caller has them; those of one
 * position lie `steps` rows apart.
 */
enum { WEIGHT_IH, WEIGHT_HH, BIAS_IH, BIAS_HH };

struct lstm {
	size_t batch, steps, inputs, hidden, gates; /* gates: 4 * hidden */
	float *gate;                                /* {rows, gates}: after their functions */
	float *cell;                                /* {rows, hidden}, like the next */
	float *squashed;
	float *before;  /* {rows, hidden}: h of the position before */
	float *dgate;   /* {rows, gates} */
	float *dh, *dc; /* {batch, hidden} */
	float *zeros;   /* {hidden}: the state before the first position */
};

static size_t saved_bytes(const struct gf_layer *l, size_t batch)
{
	return batch * l->filters * (11 * l->in.dims[0] + 3) * sizeof(float);
}

static struct lstm lstm_of(const struct gf_ref_io *io)
{
	const struct gf_layer *l = io->layer;
	const size_t block = io->batch * l->in.dims[0] * l->filters;
	float *at = io->saved;

	return (struct lstm){
		.batch = io->batch,
		.steps = l->in.dims[0],
		.inputs = l->in.dims[1],
		.hidden = l->filters,
		.gates = 4 * l->filters,
		.gate = at,
		.cell = at + 4 * block,
		.squashed = at + 5 * block,
		.before = at + 6 * block,
		.dgate = at + 7 * block,
		.dh = at + 11 * block,
		.dc = at + 11 * block + io->batch * l->filters,
		.zeros = at + 11 * block + 2 * io->batch * l->filters,
	};
}

static struct gf_lstm_cell cell_of(const struct lstm *s, size_t n, size_t t)
{
	const size_t row = n * s->steps + t, h = s->hidden;

	return (struct gf_lstm_cell){
		.gate = s->gate + row * s->gates,
		.before = t > 0 ? s->cell + (row - 1) * h : s->zeros,
		.cell = s->cell + row * h,
		.squashed = s->squashed + row * h,
	};
}

static void forward(const struct gf_ref_io *io)
{
	const struct lstm s = lstm_of(io);
	const size_t rows = s.batch * s.steps, h = s.hidden;
	const struct gf_ref_matrix x = {io->in[0], s.inputs, false};
	const struct gf_ref_matrix ih = {io->param[WEIGHT_IH], s.inputs, true};
	const struct gf_ref_matrix hh = {io->param[WEIGHT_HH], h, true};

	memset(s.zeros, 0, h * sizeof(float));
	for (size_t k = 0; k < s.gates; k++)
		s.gate[k] = io->param[BIAS_IH][k] + io->param[BIAS_HH][k];
	for (size_t row = 1; row < rows; row++)
		memcpy(s.gate + row * s.gates, s.gate, s.gates * sizeof(float));
	io->multiply(
		&(struct gf_ref_product){x, ih, rows, s.gates, s.inputs, true, s.gate, s.gates});
	for (size_t t = 0; t < s.steps; t++) {
		const struct gf_ref_matrix before = {io->out + (t - 1) * h, s.steps * h, false};

		if (t > 0)
			io->multiply(&(struct gf_ref_product){before, hh, s.batch, s.gates, h, true,
							      s.gate + t * s.gates,
							      s.steps * s.gates});
		for (size_t n = 0; n < s.batch; n++) {
			struct gf_lstm_cell c = cell_of(&s, n, t);

			c.out = io->out + (n * s.steps + t) * h;
			gf_kernels()->lstm_cell_f32(&c, h);
		}
	}
}

static void cell_backward(const struct lstm *s, size_t n, size_t t, const float *dout)
{
	const size_t h = s->hidden, row = n * s->steps + t;
	const struct gf_lstm_cell c = cell_of(s, n, t);
	const struct gf_lstm_gradient d = {
		.out = dout + row * h,
		.next = s->dh + n * h,
		.cell = s->dc + n * h,
		.gate = s->dgate + row * s->gates,
	};

	gf_kernels()->lstm_cell_backward_f32(&c, &d, h);
}

/* Through time, from the last position to the first. */
static void unroll(const struct gf_ref_io *io, const struct lstm *s)
{
	const struct gf_ref_matrix hh = {io->param[WEIGHT_HH], s->hidden, false};

	memset(s->dh, 0, s->batch * s->hidden * sizeof(float));
	memset(s->dc, 0, s->batch * s->hidden * sizeof(float));
	for (size_t t = s->steps; t-- > 0;) {
		const struct gf_ref_matrix d = {s->dgate + t * s->gates, s->steps * s->gates,
						false};

		for (size_t n = 0; n < s->batch; n++)
			cell_backward(s, n, t, io->dout);
		if (t > 0)
			io->multiply(&(struct gf_ref_product){d, hh, s->batch, s->hidden, s->gates,
							      false, s->dh, s->hidden});
	}
}

static void gather_before(const struct gf_ref_io *io, const struct lstm *s)
{
	const size_t sample = s->steps * s->hidden, h = s->hidden;

	for (size_t n = 0; n < s->batch; n++) {
		memset(s->before + n * sample, 0, h * sizeof(float));
		memcpy(s->before + n * sample + h, io->out + n * sample,
		       (sample - h) * sizeof(float));
	}
}

static void backward(const struct gf_ref_io *io)
{
	const struct lstm s = lstm_of(io);
	const size_t rows = s.batch * s.steps, h = s.hidden;
	const struct gf_ref_matrix dt = {s.dgate, s.gates, true};
	const struct gf_ref_matrix d = {s.dgate, s.gates, false};
	const struct gf_ref_matrix x = {io->in[0], s.inputs, false};
	const struct gf_ref_matrix before = {s.before, h, false};
	const struct gf_ref_matrix ih = {io->param[WEIGHT_IH], s.inputs, false};
	float *bias = io->dparam[BIAS_IH];

	unroll(io, &s);
	gather_before(io, &s);
	io->multiply(&(struct gf_ref_product){dt, x, s.gates, s.inputs, rows, false,
					      io->dparam[WEIGHT_IH], s.inputs});
	io->multiply(&(struct gf_ref_product){dt, before, s.gates, h, rows, false,
					      io->dparam[WEIGHT_HH], h});
	if (io->din[0])
		io->multiply(&(struct gf_ref_product){d, ih, rows, s.inputs, s.gates, true,
						      io->din[0], s.inputs});
	memset(bias, 0, s.gates * sizeof(float));
	for (size_t row = 0; row < rows; row++)
		for (size_t k = 0; k < s.gates; k++)
			bias[k] += s.dgate[row * s.gates + k];
	memcpy(io->dparam[BIAS_HH], bias, s.gates * sizeof(float));
}

const struct gf_ref_layer gf_ref_lstm = {
	.forward = forward,
	.backward = backward,
	.saved_bytes = saved_bytes,
};
