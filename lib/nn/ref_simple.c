/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

/* Layers that treat every value alone: ReLU and the residual sum. */

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
	if (!io->din[0])
		return;
	for (size_t i = 0; i < count(io); i++)
		if (io->out[i] > 0)
			io->din[0][i] += io->dout[i];
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
const struct gf_ref_layer gf_ref_add = {
	.forward = add_forward,
	.backward = add_backward,
};
