/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

/* Pools; the global one is a mean over a window of the whole plane. saved: where each maximum
 * was. */

static struct gf_gpu_pool pool_of(const struct gf_gpu_io *io)
{
	const struct gf_layer *l = io->layer;
	struct gf_gpu_pool o = {
		.dtype = io->g->dtype,
		.channels_last = io->g->channels_last,
		.batch = io->batch,
		.channels = l->in.dims[0],
		.in = {l->in.dims[1], l->in.dims[2]},
		.out = {1, 1},
		.kernel = {l->in.dims[1], l->in.dims[2]},
		.stride = 1,
	};

	if (l->type == GF_LAYER_GLOBALPOOL)
		return o;
	o.out[0] = l->out.dims[1];
	o.out[1] = l->out.dims[2];
	o.kernel[0] = l->kernel;
	o.kernel[1] = l->kernel_w;
	o.stride = l->stride;
	o.pad[0] = l->pad;
	o.pad[1] = l->pad_w;
	return o;
}

static int max_forward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_pool o = pool_of(io);

	(void)err;
	io->g->kernels->maxpool(io->g->stream, &o, io->in[0], io->out, io->saved);
	return 0;
}

static int max_backward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_pool o = pool_of(io);

	(void)err;
	if (io->din[0])
		io->g->kernels->maxpool_backward(io->g->stream, &o, io->dout, io->saved, io->din[0],
						 io->add[0]);
	return 0;
}

static size_t max_saved(const struct gf_gpu_io *io, size_t batch)
{
	return batch * gf_shape_elems(&io->layer->out) * sizeof(uint32_t);
}

static int mean_forward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_pool o = pool_of(io);

	(void)err;
	io->g->kernels->avgpool(io->g->stream, &o, io->in[0], io->out);
	return 0;
}

static int mean_backward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_pool o = pool_of(io);

	(void)err;
	if (io->din[0])
		io->g->kernels->avgpool_backward(io->g->stream, &o, io->dout, io->din[0],
						 io->add[0]);
	return 0;
}

const struct gf_gpu_layer gf_gpu_maxpool = {
	.forward = max_forward,
	.backward = max_backward,
	.saved_bytes = max_saved,
};
const struct gf_gpu_layer gf_gpu_avgpool = {
	.forward = mean_forward,
	.backward = mean_backward,
};
const struct gf_gpu_layer gf_gpu_globalpool = {
	.forward = mean_forward,
	.backward = mean_backward,
};
