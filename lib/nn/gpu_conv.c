/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

#include "base/array.h"
#include "nn/gpu_memory.h"

/*
 * Convolution by cuDNN. Filters are copied in each pass, to where they are
 * aligned and lie as the images do; so is their gradient.
 */
#define WORK_MOST ((size_t)1 << 30) /* faster ways that want more are left */

static void filter_sizes(const struct gf_layer *l, size_t sizes[3])
{
	sizes[0] = l->filters;
	sizes[1] = l->in.dims[0] / l->groups;
	sizes[2] = l->kernel * l->kernel_w;
}

static size_t filter_bytes(const struct gf_gpu_io *io)
{
	size_t sizes[3];

	filter_sizes(io->layer, sizes);
	return gf_gpu_bytes(io->g, sizes[0] * sizes[1] * sizes[2]);
}

static int describe(struct gf_gpu_io *io, size_t batch, size_t most,
		    struct gf_gpu_conv **conv, struct gf_error *err)
{
	const struct gf_layer *l = io->layer;
	const struct gf_gpu_conv_shape shape = {
		.dtype = io->g->dtype,
		.channels_last = io->g->channels_last,
		.batch = batch,
		.groups = l->groups,
		.in = {l->in.dims[0], l->in.dims[1], l->in.dims[2]},
		.out = {l->out.dims[0], l->out.dims[1], l->out.dims[2]},
		.kernel = {l->kernel, l->kernel_w},
		.stride = l->stride,
		.pad = {l->pad, l->pad_w},
	};

	return gf_gpu_conv_new(io->g->dnn, &shape, most, conv, err);
}

static void keep(struct gf_gpu_io *io, size_t batch, struct gf_gpu_conv *conv)
{
	struct gf_gpu_conv_of *of =
		gf_array_push(&io->convs, &io->nconvs, &io->convs_capacity);

	*of = (struct gf_gpu_conv_of){batch, conv};
}

static int prepare(struct gf_gpu_io *io, struct gf_error *err)
{
	struct gf_gpu_net *g = io->g;
	struct gf_gpu_conv *c;
	size_t bytes;
	int rc = describe(io, g->net->max_batch, WORK_MOST, &c, err);

	if (rc)
		return rc;
	keep(io, g->net->max_batch, c);
	bytes = gf_gpu_conv_work_bytes(c);
	if (bytes > g->work_bytes)
		g->work_bytes = bytes;
	return 0;
}

/* The one for the pass's batch. A smaller batch, the last of an epoch, may want
 * a larger workspace than the largest batch: filter gradients are cut into more
 * parts where there are fewer images. */
static int conv_of(struct gf_gpu_io *io, struct gf_gpu_conv **conv,
		   struct gf_error *err)
{
	struct gf_gpu_conv *c;
	int rc;

	for (size_t i = 0; i < io->nconvs; i++)
		if (io->convs[i].batch == io->batch) {
			*conv = io->convs[i].conv;
			return 0;
		}
	rc = describe(io, io->batch, io->g->work_bytes, &c, err);
	if (rc)
		return rc;
	rc = gf_gpu_grow_work(io->g, gf_gpu_conv_work_bytes(c), err);
	if (rc) {
		gf_error_prefix(err, "batch of %zu", io->batch);
		gf_gpu_conv_free(c);
		return rc;
	}
	keep(io, io->batch, c);
	*conv = c;
	return 0;
}

static int forward(struct gf_gpu_io *io, struct gf_error *err)
{
	struct gf_gpu_net *g = io->g;
	const struct gf_gpu_view v =
		gf_gpu_view_of(g, &io->layer->out, io->batch);
	struct gf_gpu_conv *conv;
	size_t sizes[3];
	int rc = conv_of(io, &conv, err);

	if (rc)
		return rc;
	filter_sizes(io->layer, sizes);
	gf_gpu_from_plain(g, io->param[0], io->weight, sizes);
	rc = gf_gpu_conv_forward(conv, io->in[0], io->weight, io->out, g->work,
				 err);
	if (!rc && io->param[1])
		g->kernels->add_bias(g->stream, &v, io->param[1], io->out);
	return rc;
}

static int backward(struct gf_gpu_io *io, struct gf_error *err)
{
	struct gf_gpu_net *g = io->g;
	const struct gf_gpu_view v =
		gf_gpu_view_of(g, &io->layer->out, io->batch);
	struct gf_gpu_conv *conv;
	size_t sizes[3];
	int rc = conv_of(io, &conv, err);

	if (!rc && io->dparam[0]) {
		filter_sizes(io->layer, sizes);
		rc = gf_gpu_conv_filter(conv, io->in[0], io->dout, g->scratch,
					g->work, err);
		if (!rc)
			gf_gpu_to_plain(g, g->scratch, io->dparam[0], sizes);
	}
	if (!rc && io->dparam[1])
		g->kernels->channel_sums(g->stream, &v, io->dout, g->unscale,
					 io->dparam[1], g->scratch);
	if (!rc && io->din[0])
		rc = gf_gpu_conv_data(conv, io->weight, io->dout,
				      io->add[0] ? 1 : 0, io->din[0], g->work,
				      err);
	return rc;
}

static size_t scratch_bytes(const struct gf_gpu_io *io, size_t batch)
{
	const struct gf_gpu_view v =
		gf_gpu_view_of(io->g, &io->layer->out, batch);
	const size_t filter = filter_bytes(io),
		     sums = gf_gpu_sums_work_bytes(&v);

	return filter > sums ? filter : sums;
}

const struct gf_gpu_layer gf_gpu_conv_layer = {
	.forward = forward,
	.backward = backward,
	.prepare = prepare,
	.weight_bytes = filter_bytes,
	.scratch_bytes = scratch_bytes,
	.needs_in = true,
};
