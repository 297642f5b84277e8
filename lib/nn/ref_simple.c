/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

#include <math.h>

/* Layers that treat every value alone: ReLU, tanh, GELU, the residual sum. */

static size_t count(const struct gf_ref_io *io)
{
	return io->batch * gf_shape_elems(&io->layer->out);
}

/* NaN stays NaN. */
static void relu_forward(const struct gf_ref_io *io)
{
	for (size_t i = 0; i < count(io); i++)
		io->out[i] = io->in[0][i] < 0 ? 0 : io->in[0][i];
}

static void relu_backward(const struct gf_ref_io *io)
{
	for (size_t i = 0; io->din[0] && i < count(io); i++)
		if (io->out[i] > 0)
			io->din[0][i] += io->dout[i];
}

static void tanh_forward(const struct gf_ref_io *io)
{
	for (size_t i = 0; i < count(io); i++)
		io->out[i] = tanhf(io->in[0][i]);
}

static void tanh_backward(const struct gf_ref_io *io)
{
	for (size_t i = 0; io->din[0] && i < count(io); i++)
		io->din[0][i] += io->dout[i] * (1 - io->out[i] * io->out[i]);
}

/* x * P(normal < x), exactly (Hendrycks and Gimpel 2016). */
static void gelu_forward(const struct gf_ref_io *io)
{
	for (size_t i = 0; i < count(io); i++) {
		float x = io->in[0][i];

		io->out[i] = 0.5f * x * (1 + erff(x * (float)M_SQRT1_2));
	}
}

static void gelu_backward(const struct gf_ref_io *io)
{
	const float density = (float)(M_2_SQRTPI * M_SQRT1_2 / 2);

	for (size_t i = 0; io->din[0] && i < count(io); i++) {
		float x = io->in[0][i];
		float below = 0.5f * (1 + erff(x * (float)M_SQRT1_2));

		io->din[0][i] += io->dout[i] * (below + x * density * expf(-x * x / 2));
	}
}

static void add_forward(const struct gf_ref_io *io)
{
	for (size_t i = 0; i < count(io); i++)
		io->out[i] = io->in[0][i] + io->in[1][i];
}

static void add_backward(const struct gf_ref_io *io)
{
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; io->din[side] && i < count(io); i++)
			io->din[side][i] += io->dout[i];
}

const struct gf_ref_layer gf_ref_relu = {
	.forward = relu_forward,
	.backward = relu_backward,
};
const struct gf_ref_layer gf_ref_tanh = {
	.forward = tanh_forward,
	.backward = tanh_backward,
};
const struct gf_ref_layer gf_ref_gelu = {
	.forward = gelu_forward,
	.backward = gelu_backward,
};
const struct gf_ref_layer gf_ref_add = {
	.forward = add_forward,
	.backward = add_backward,
};
