/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

/* Layers that treat every value alone. */

static size_t count(const struct gf_gpu_io *io)
{
	return io->batch * gf_shape_elems(&io->layer->out);
}

static int apply(struct gf_gpu_io *io, enum gf_gpu_function f)
{
	const struct gf_gpu_net *g = io->g;

	g->kernels->apply(g->stream, g->dtype, f, io->in[0], io->out,
			  count(io));
	return 0;
}

static int apply_backward(struct gf_gpu_io *io, enum gf_gpu_function f)
{
	const struct gf_gpu_net *g = io->g;
	const struct gf_gpu_slope slope = {
		.dtype = g->dtype,
		.function = f,
		.kept = f == GF_GPU_GELU ? io->in[0] : io->out,
		.dout = io->dout,
		.din = io->din[0],
		.add = io->add[0],
	};

	if (io->din[0])
		g->kernels->apply_backward(g->stream, &slope, count(io));
	return 0;
}

#define LAYER(name, function)                                                  \
	static int name##_forward(struct gf_gpu_io *io, struct gf_error *err)  \
	{                                                                      \
		(void)err;                                                     \
		return apply(io, function);                                    \
	}                                                                      \
	static int name##_backward(struct gf_gpu_io *io, struct gf_error *err) \
	{                                                                      \
		(void)err;                                                     \
		return apply_backward(io, function);                           \
	}
LAYER(relu, GF_GPU_RELU)
LAYER(tanh, GF_GPU_TANH)
LAYER(gelu, GF_GPU_GELU)

static int add_forward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;

	(void)err;
	g->kernels->sum(g->stream, g->dtype, io->in[0], io->in[1], io->out,
			count(io));
	return 0;
}

static void pass_on(const struct gf_gpu_io *io, size_t side)
{
	const struct gf_gpu_net *g = io->g;
	const struct gf_gpu_rows all = {
		.dtype = g->dtype,
		.from = io->dout,
		.to = io->din[side],
		.rows = 1,
		.width = count(io),
	};

	if (io->add[side])
		g->kernels->sum(g->stream, g->dtype, io->din[side], io->dout,
				io->din[side], count(io));
	else
		g->kernels->copy_rows(g->stream, &all);
}

static int add_backward(struct gf_gpu_io *io, struct gf_error *err)
{
	(void)err;
	for (size_t side = 0; side < 2; side++)
		if (io->din[side])
			pass_on(io, side);
	return 0;
}

const struct gf_gpu_layer gf_gpu_relu = {
	.forward = relu_forward,
	.backward = relu_backward,
	.needs_out = true,
	.in_place = true,
};
const struct gf_gpu_layer gf_gpu_tanh = {
	.forward = tanh_forward,
	.backward = tanh_backward,
	.needs_out = true,
	.in_place = true,
};
const struct gf_gpu_layer gf_gpu_gelu = {
	.forward = gelu_forward,
	.backward = gelu_backward,
	.needs_in = true,
};
const struct gf_gpu_layer gf_gpu_add = {
	.forward = add_forward,
	.backward = add_backward,
	.in_place = true,
};
