/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

/* Batch norm and layer norm. saved: what the kernels keep of channels; of rows mean and 1 /
 * deviation. cuDNN's call that fuses an activation is for f16 alone, and its sums may overflow. */

static struct gf_gpu_norm norm_of(const struct gf_gpu_io *io)
{
	const struct gf_gpu_net *g = io->g;

	return (struct gf_gpu_norm){
		.view = gf_gpu_view_of(g, &io->layer->in, io->batch),
		.epsilon = io->layer->epsilon,
		.momentum = (float)io->layer->momentum,
		.weight = io->param[0],
		.bias = io->param[1],
		.in = io->in[0],
		.out = io->out,
		.relu = io->relu || io->adds,
		.addend = io->adds ? g->io[io->addend].out : NULL,
		.saved = io->saved,
		.dout = io->dout,
		.din = io->din[0],
		.add = io->add[0],
		.dweight = io->dparam[0],
		.dbias = io->dparam[1],
		.scale = g->unscale,
		.work = g->scratch,
	};
}

static int batch_forward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;
	struct gf_gpu_norm o = norm_of(io);

	(void)err;
	o.running = g->running + g->net->running_at[io->index];
	if (io->training)
		g->kernels->norm_statistics(g->stream, &o);
	else
		g->kernels->norm_running(g->stream, &o);
	g->kernels->norm_apply(g->stream, &o);
	return 0;
}

static int batch_backward(struct gf_gpu_io *io, struct gf_error *err)
{
	struct gf_gpu_norm o = norm_of(io);

	(void)err;
	o.relu = io->relu;
	io->g->kernels->norm_backward(io->g->stream, &o);
	return 0;
}

static size_t batch_saved(const struct gf_gpu_io *io, size_t batch)
{
	(void)batch;
	return 4 * io->layer->in.dims[0] * sizeof(float);
}

static size_t batch_scratch(const struct gf_gpu_io *io, size_t batch)
{
	const struct gf_gpu_view v = gf_gpu_view_of(io->g, &io->layer->in, batch);

	return gf_gpu_sums_work_bytes(&v);
}

/* The rows of samples, whatever their shape. */
static struct gf_gpu_view rows_of(const struct gf_gpu_io *io, size_t batch)
{
	const struct gf_shape *in = &io->layer->in;

	return (struct gf_gpu_view){
		.dtype = io->g->dtype,
		.outer = batch * gf_shape_rows(in),
		.channels = gf_shape_elems(in) / gf_shape_rows(in),
		.inner = 1,
	};
}

static int layer_forward(struct gf_gpu_io *io, struct gf_error *err)
{
	struct gf_gpu_norm o = norm_of(io);

	(void)err;
	o.view = rows_of(io, io->batch);
	io->g->kernels->layernorm(io->g->stream, &o);
	return 0;
}

static int layer_backward(struct gf_gpu_io *io, struct gf_error *err)
{
	struct gf_gpu_norm o = norm_of(io);

	(void)err;
	o.view = rows_of(io, io->batch);
	io->g->kernels->layernorm_backward(io->g->stream, &o);
	return 0;
}

static size_t layer_saved(const struct gf_gpu_io *io, size_t batch)
{
	return 2 * batch * gf_shape_rows(&io->layer->in) * sizeof(float);
}

static size_t layer_scratch(const struct gf_gpu_io *io, size_t batch)
{
	const struct gf_gpu_view v = rows_of(io, batch);

	return gf_gpu_sums_work_bytes(&v);
}

const struct gf_gpu_layer gf_gpu_batchnorm = {
	.forward = batch_forward,
	.backward = batch_backward,
	.saved_bytes = batch_saved,
	.scratch_bytes = batch_scratch,
	.needs_in = true,
};
const struct gf_gpu_layer gf_gpu_layernorm = {
	.forward = layer_forward,
	.backward = layer_backward,
	.saved_bytes = layer_saved,
	.scratch_bytes = layer_scratch,
	.needs_in = true,
};
