/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

/*
 * Fully connected, on rows of features. An image whose channels lie last is turned back first: its
 * weight is by channel, then place.
 */
struct sizes {
	size_t rows, inputs, outputs;
};

static struct sizes sizes_of(const struct gf_gpu_io *io, size_t batch)
{
	const struct gf_shape *in = &io->layer->in;
	const size_t rows = batch * gf_shape_rows(in);

	return (struct sizes){rows, batch * gf_shape_elems(in) / rows, io->layer->filters};
}

static bool turns(const struct gf_gpu_io *io)
{
	return io->g->channels_last && gf_shape_spatial(&io->layer->in) > 1 &&
	       io->layer->in.dims[0] > 1;
}

/* {H*W, C} to {C, H*W}, or back */
static void turn(const struct gf_gpu_io *io, const void *from, void *to, bool back)
{
	const struct gf_gpu_net *g = io->g;
	const size_t places = gf_shape_spatial(&io->layer->in);
	const size_t channels = io->layer->in.dims[0];
	const struct gf_gpu_permute p = {
		.from_type = g->dtype,
		.to_type = g->dtype,
		.from = from,
		.to = to,
		.outer = io->batch,
		.a = back ? channels : places,
		.b = back ? places : channels,
		.scale = 1,
	};

	g->kernels->permute(g->stream, &p);
}

static size_t weight_bytes(const struct gf_gpu_io *io)
{
	const struct sizes s = sizes_of(io, 1);

	return io->g->dtype == GF_F32 ? 0 : gf_gpu_bytes(io->g, s.inputs * s.outputs);
}

/* scratch: sums; after them the transposed input and its gradient */
static size_t sums_bytes(const struct gf_gpu_io *io)
{
	const struct gf_gpu_view v = gf_gpu_view_of(io->g, &io->layer->out, io->g->net->max_batch);

	return gf_gpu_align(gf_gpu_sums_work_bytes(&v));
}

static size_t scratch_bytes(const struct gf_gpu_io *io, size_t batch)
{
	const size_t in = gf_gpu_bytes(io->g, batch * gf_shape_elems(&io->layer->in));

	return sums_bytes(io) + (turns(io) ? 2 * gf_gpu_align(in) : 0);
}

static const void *rows_in(const struct gf_gpu_io *io)
{
	void *turned = (char *)io->g->scratch + sums_bytes(io);

	if (!turns(io))
		return io->in[0];
	turn(io, io->in[0], turned, false);
	return turned;
}

static int forward(struct gf_gpu_io *io, struct gf_error *err)
{
	struct gf_gpu_net *g = io->g;
	const struct sizes s = sizes_of(io, io->batch);
	const struct gf_gpu_view v = gf_gpu_view_of(g, &io->layer->out, io->batch);
	struct gf_gpu_product p = {
		.type = g->dtype,
		.c_type = g->dtype,
		.m = s.rows,
		.n = s.outputs,
		.k = s.inputs,
		.b = {.row = s.inputs, .transposed = true},
		.c = {io->out, s.outputs},
		.alpha = 1,
	};
	int rc;

	if (g->dtype != GF_F32)
		gf_gpu_from_plain(g, io->param[0], io->weight,
				  (size_t[3]){1, s.inputs * s.outputs, 1});
	p.a = (struct gf_gpu_matrix){(void *)rows_in(io), s.inputs};
	p.b.at = (void *)gf_gpu_weight(io, 0, 0);
	rc = gf_gpu_multiply(g->blas, &p, err);
	if (!rc && io->param[1])
		g->kernels->add_bias(g->stream, &v, io->param[1], io->out);
	return rc;
}

/* dweight{O, I} = dout' in */
static int weight_backward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct sizes s = sizes_of(io, io->batch);
	const struct gf_gpu_product p = {
		.type = io->g->dtype,
		.c_type = GF_F32,
		.m = s.outputs,
		.n = s.inputs,
		.k = s.rows,
		.a = {io->dout, s.outputs, .transposed = true},
		.b = {(void *)rows_in(io), s.inputs},
		.c = {io->dparam[0], s.inputs},
		.alpha = io->g->unscale,
		.beta = io->g->net->adds[io->index] ? 1 : 0,
	};

	return gf_gpu_multiply(io->g->blas, &p, err);
}

/* din = dout weight */
static int input_backward(struct gf_gpu_io *io, struct gf_error *err)
{
	struct gf_gpu_net *g = io->g;
	const struct sizes s = sizes_of(io, io->batch);
	char *turned = (char *)g->scratch + sums_bytes(io);
	char *back = turned + gf_gpu_align(gf_gpu_bytes(g, s.rows * s.inputs));
	const bool turns_back = turns(io);
	const struct gf_gpu_product p = {
		.type = g->dtype,
		.c_type = g->dtype,
		.m = s.rows,
		.n = s.inputs,
		.k = s.outputs,
		.a = {io->dout, s.outputs},
		.b = {(void *)gf_gpu_weight(io, 0, 0), s.inputs},
		.c = {turns_back ? turned : io->din[0], s.inputs},
		.alpha = 1,
		.beta = !turns_back && io->add[0] ? 1 : 0,
	};
	int rc = gf_gpu_multiply(g->blas, &p, err);

	if (rc || !turns_back)
		return rc;
	turn(io, turned, io->add[0] ? (void *)back : io->din[0], true);
	if (io->add[0])
		g->kernels->sum(g->stream, g->dtype, io->din[0], back, io->din[0],
				s.rows * s.inputs);
	return 0;
}

static int backward(struct gf_gpu_io *io, struct gf_error *err)
{
	struct gf_gpu_net *g = io->g;
	const struct gf_gpu_view v = gf_gpu_view_of(g, &io->layer->out, io->batch);
	int rc = 0;

	if (io->dparam[1])
		g->kernels->channel_sums(g->stream, &v, io->dout, g->unscale, io->dparam[1],
					 g->scratch);
	if (io->dparam[0])
		rc = weight_backward(io, err);
	if (!rc && io->din[0])
		rc = input_backward(io, err);
	return rc;
}

const struct gf_gpu_layer gf_gpu_fc = {
	.forward = forward,
	.backward = backward,
	.weight_bytes = weight_bytes,
	.scratch_bytes = scratch_bytes,
	.needs_in = true,
};
