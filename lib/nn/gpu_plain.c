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

	g->kernels->apply(g->stream, g->dtype, f, io->in[0], io->out, count(io));
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

#define LAYER(name, function)                                                                      \
	static int name##_forward(struct gf_gpu_io *io, struct gf_error *err)                      \
	{                                                                                          \
		(void)err;                                                                         \
		return apply(io, function);                                                        \
	}                                                                                          \
	static int name##_backward(struct gf_gpu_io *io, struct gf_error *err)                     \
	{                                                                                          \
		(void)err;                                                                         \
		return apply_backward(io, function);                                               \
	}
LAYER(relu, GF_GPU_RELU)
LAYER(tanh, GF_GPU_TANH)
LAYER(gelu, GF_GPU_GELU)

static int add_forward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;

	(void)err;
	g->kernels->sum(g->stream, g->dtype, io->in[0], io->in[1], io->out, count(io));
	return 0;
}

/* The gradient of an input, which may lie where dout does. */
static int pass_on(const struct gf_gpu_io *io, size_t side, struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;
	void *din = io->din[side];

	if (io->add[side])
		g->kernels->sum(g->stream, g->dtype, din, io->dout, din, count(io));
	else if (din != io->dout)
		return g->gpu->ops->copy(g->gpu, g->stream, din, io->dout,
					 gf_gpu_bytes(g, count(io)), GF_GPU_WITHIN, err);
	return 0;
}

static int add_backward(struct gf_gpu_io *io, struct gf_error *err)
{
	int rc = 0;

	for (size_t side = 0; side < 2 && !rc; side++)
		if (io->din[side])
			rc = pass_on(io, side, err);
	return rc;
}

const struct gf_gpu_layer gf_gpu_relu = {
	.forward = relu_forward,
	.backward = relu_backward,
	.needs_out = true,
	.in_place = true,
	.passes = GF_GPU_IN_PLACE,
};
const struct gf_gpu_layer gf_gpu_tanh = {
	.forward = tanh_forward,
	.backward = tanh_backward,
	.needs_out = true,
	.in_place = true,
	.passes = GF_GPU_IN_PLACE,
};
const struct gf_gpu_layer gf_gpu_gelu = {
	.forward = gelu_forward,
	.backward = gelu_backward,
	.needs_in = true,
	.passes = GF_GPU_IN_PLACE,
};
const struct gf_gpu_layer gf_gpu_add = {
	.forward = add_forward,
	.backward = add_backward,
	.in_place = true,
	.passes = GF_GPU_AS_IT_IS,
};
