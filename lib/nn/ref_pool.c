/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

#include <math.h>

/*
 * Pooling over windows. Padding never wins a maximum; an average counts it as zeros (its divisor is
 * always the whole window). The first of equal values is the maximum; NaN is larger than anything.
 */
struct span {
	size_t begin, end;
};

/* The inputs that a window sees along one side of `in` places. */
static struct span seen(size_t begin, size_t kernel, size_t pad, size_t in)
{
	size_t end = begin + kernel;

	begin = begin > pad ? begin - pad : 0;
	end = end > pad ? end - pad : 0;
	return (struct span){begin, end < in ? end : in};
}

typedef void visit_fn(const struct gf_ref_io *io, size_t out, size_t plane, struct span y,
		      struct span x);

static void visit_windows(const struct gf_ref_io *io, visit_fn *visit)
{
	const struct gf_layer *l = io->layer;
	size_t height = l->in.dims[1], width = l->in.dims[2], out = 0;

	for (size_t i = 0; i < io->batch * l->in.dims[0]; i++)
		for (size_t y = 0; y < l->out.dims[1]; y++)
			for (size_t x = 0; x < l->out.dims[2]; x++)
				visit(io, out++, i * height * width,
				      seen(y * l->stride, l->kernel, l->pad, height),
				      seen(x * l->stride, l->kernel_w, l->pad_w, width));
}

static void find_max(const struct gf_ref_io *io, size_t out, size_t plane, struct span y,
		     struct span x)
{
	size_t width = io->layer->in.dims[2];
	size_t best = plane + y.begin * width + x.begin;
	size_t *saved = io->saved;

	for (size_t i = y.begin; i < y.end; i++)
		for (size_t j = x.begin; j < x.end; j++) {
			size_t at = plane + i * width + j;

			if (io->in[0][at] > io->in[0][best] ||
			    (isnan(io->in[0][at]) && !isnan(io->in[0][best])))
				best = at;
		}
	io->out[out] = io->in[0][best];
	saved[out] = best;
}

static void max_forward(const struct gf_ref_io *io)
{
	visit_windows(io, find_max);
}

static void max_backward(const struct gf_ref_io *io)
{
	size_t count = io->batch * gf_shape_elems(&io->layer->out);
	const size_t *saved = io->saved;

	if (!io->din[0])
		return;
	for (size_t i = 0; i < count; i++)
		io->din[0][saved[i]] += io->dout[i];
}

static size_t max_saved_bytes(const struct gf_layer *l, size_t batch)
{
	return batch * gf_shape_elems(&l->out) * sizeof(size_t);
}

static void average(const struct gf_ref_io *io, size_t out, size_t plane, struct span y,
		    struct span x)
{
	size_t width = io->layer->in.dims[2];
	size_t places = io->layer->kernel * io->layer->kernel_w;
	float sum = 0;

	for (size_t i = y.begin; i < y.end; i++)
		for (size_t j = x.begin; j < x.end; j++)
			sum += io->in[0][plane + i * width + j];
	io->out[out] = sum / (float)places;
}

static void spread(const struct gf_ref_io *io, size_t out, size_t plane, struct span y,
		   struct span x)
{
	size_t width = io->layer->in.dims[2];
	size_t places = io->layer->kernel * io->layer->kernel_w;
	float share = io->dout[out] / (float)places;

	for (size_t i = y.begin; i < y.end; i++)
		for (size_t j = x.begin; j < x.end; j++)
			io->din[0][plane + i * width + j] += share;
}

static void average_forward(const struct gf_ref_io *io)
{
	visit_windows(io, average);
}

static void average_backward(const struct gf_ref_io *io)
{
	if (io->din[0])
		visit_windows(io, spread);
}

static void global_forward(const struct gf_ref_io *io)
{
	size_t plane = io->layer->in.dims[1] * io->layer->in.dims[2];

	for (size_t i = 0; i < io->batch * io->layer->in.dims[0]; i++) {
		float sum = 0;

		for (size_t x = 0; x < plane; x++)
			sum += io->in[0][i * plane + x];
		io->out[i] = sum / (float)plane;
	}
}

static void global_backward(const struct gf_ref_io *io)
{
	size_t plane = io->layer->in.dims[1] * io->layer->in.dims[2];

	if (!io->din[0])
		return;
	for (size_t i = 0; i < io->batch * io->layer->in.dims[0]; i++)
		for (size_t x = 0; x < plane; x++)
			io->din[0][i * plane + x] += io->dout[i] / (float)plane;
}

const struct gf_ref_layer gf_ref_maxpool = {
	.forward = max_forward,
	.backward = max_backward,
	.saved_bytes = max_saved_bytes,
};
const struct gf_ref_layer gf_ref_avgpool = {
	.forward = average_forward,
	.backward = average_backward,
};
const struct gf_ref_layer gf_ref_globalpool = {
	.forward = global_forward,
	.backward = global_backward,
};
