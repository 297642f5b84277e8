/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CELL_H
#define GF_KERNELS_CELL_H

#include "exponential.h"
#include "sets.h"

/* The LSTM's cell. Sigmoid and tanh are within 3e-7 of the value, relatively.
 */

GF_VECTOR float sigmoid(float x)
{
	return 1 / (1 + exponential(-x));
}

GF_VECTOR float squash(float x)
{
	const float size = float_of(bits_of(x) & 0x7fffffff), z = x * x;
	float near = -5.70498872745e-3f, far;

	near = near * z + 2.06390887954e-2f;
	near = near * z - 5.37397155531e-2f;
	near = near * z + 1.33314422036e-1f;
	near = near * z - 3.33332819422e-1f;
	near = near * z * x + x;
	far = 1 - 2 / (exponential(2 * size) + 1);
	far = float_of(bits_of(far) | (bits_of(x) & 0x80000000));
	return choose(size < 0.625f, near, far);
}

static void lstm_cell_f32(const struct gf_lstm_cell *c, size_t n)
{
	float *input = c->gate, *forget = input + n, *value = forget + n;
	float *output = value + n, *cell = c->cell, *squashed = c->squashed;
	float *out = c->out;
	const float *before = c->before;

	GF_INDEPENDENT
	for (size_t k = 0; k < n; k++) {
		const float i = sigmoid(input[k]), f = sigmoid(forget[k]);
		const float g = squash(value[k]), o = sigmoid(output[k]);
		const float state = i * g + f * before[k];
		const float tanh = squash(state);

		cell[k] = state;
		squashed[k] = tanh;
		out[k] = o * tanh;
		input[k] = i;
		forget[k] = f;
		value[k] = g;
		output[k] = o;
	}
}

static void lstm_cell_backward_f32(const struct gf_lstm_cell *c, const struct gf_lstm_gradient *d,
				   size_t n)
{
	const float *input = c->gate, *forget = input + n, *value = forget + n;
	const float *output = value + n, *squashed = c->squashed;
	const float *before = c->before, *dout = d->out, *dnext = d->next;
	float *dinput = d->gate, *dforget = dinput + n, *dvalue = dforget + n;
	float *doutput = dvalue + n, *dcell = d->cell;

	GF_INDEPENDENT
	for (size_t k = 0; k < n; k++) {
		const float i = input[k], f = forget[k], g = value[k];
		const float o = output[k], tanh = squashed[k];
		const float dh = dout[k] + dnext[k];
		const float dc = dcell[k] + dh * o * (1 - tanh * tanh);

		dinput[k] = dc * g * i * (1 - i);
		dforget[k] = dc * before[k] * f * (1 - f);
		dvalue[k] = dc * i * (1 - g * g);
		doutput[k] = dh * tanh * o * (1 - o);
		dcell[k] = dc * f;
	}
}

static inline void fill_cell(struct gf_kernels *k)
{
	k->lstm_cell_f32 = lstm_cell_f32;
	k->lstm_cell_backward_f32 = lstm_cell_backward_f32;
}

#endif
