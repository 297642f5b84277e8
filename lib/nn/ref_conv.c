/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

#include <string.h>

/*
 * Convolution (cross-correlation, as everywhere in the field):
 *	out[n][o][y][x] = bias[o] + sum of weight[o][c][ky][kx] *
 *			  in[n][c][y*stride + ky - pad][x*stride + kx - pad]
 * over ky, kx and the channels c of o's group. All three passes visit the same pairs of rows, so
 * the index arithmetic stands here once; it is inlined into each, or a call per row of a few places
 * would take most of the time.
 */
#define INLINE static inline __attribute__((always_inline))

/*
 * A window slides over `in` places padded by `pad` on both sides, `stride` apart, and gives `out`
 * places. Its tap k at output o sits at input o*stride + k - pad. These give the outputs at which
 * that is inside.
 */
static inline size_t window_first(size_t k, size_t pad, size_t stride)
{
	return k >= pad ? 0 : (pad - k + stride - 1) / stride;
}

static inline size_t window_end(size_t k, size_t pad, size_t stride, size_t in, size_t out)
{
	size_t end;

	if (in + pad <= k)
		return 0;
	end = (in + pad - k + stride - 1) / stride;
	return end < out ? end : out;
}

struct row {
	size_t in, out, weight; /* where they start */
	size_t count;           /* outputs in the row */
	size_t stride;          /* between inputs */
};

typedef void visit_fn(const struct gf_ref_io *io, const struct row *r);

/* The rows of one tap (ky, kx) of one filter over one input plane. */
INLINE void visit_tap(const struct gf_ref_io *io, const struct row *plane, size_t ky, size_t kx,
		      visit_fn *visit)
{
	const struct gf_layer *l = io->layer;
	size_t s = l->stride;
	size_t height = l->in.dims[1], width = l->in.dims[2];
	size_t rows = l->out.dims[1], columns = l->out.dims[2];
	size_t y = window_first(ky, l->pad, s);
	size_t y_end = window_end(ky, l->pad, s, height, rows);
	size_t x = window_first(kx, l->pad_w, s);
	size_t x_end = window_end(kx, l->pad_w, s, width, columns);

	for (; y < y_end && x < x_end; y++) {
		struct row r = {
			.in = plane->in + (y * s + ky - l->pad) * width + x * s + kx - l->pad_w,
			.out = plane->out + y * columns + x,
			.weight = plane->weight + ky * l->kernel_w + kx,
			.count = x_end - x,
			.stride = s,
		};
		visit(io, &r);
	}
}

INLINE void visit_rows(const struct gf_ref_io *io, visit_fn *visit)
{
	const struct gf_layer *l = io->layer;
	size_t in_plane = l->in.dims[1] * l->in.dims[2];
	size_t out_plane = l->out.dims[1] * l->out.dims[2];
	size_t taps = l->kernel * l->kernel_w;
	size_t per_group = l->in.dims[0] / l->groups;
	size_t filters_per_group = l->filters / l->groups;

	for (size_t n = 0; n < io->batch; n++)
		for (size_t o = 0; o < l->filters; o++)
			for (size_t c = 0; c < per_group; c++) {
				size_t channel = o / filters_per_group * per_group + c;
				struct row plane = {
					.in = (n * l->in.dims[0] + channel) * in_plane,
					.out = (n * l->filters + o) * out_plane,
					.weight = (o * per_group + c) * taps,
				};

				for (size_t k = 0; k < taps; k++)
					visit_tap(io, &plane, k / l->kernel_w, k % l->kernel_w,
						  visit);
			}
}

INLINE void add_to_out(const struct gf_ref_io *io, const struct row *r)
{
	float weight = io->weight[r->weight];

	for (size_t x = 0; x < r->count; x++)
		io->out[r->out + x] += weight * io->in[0][r->in + x * r->stride];
}

INLINE void add_to_din(const struct gf_ref_io *io, const struct row *r)
{
	float weight = io->weight[r->weight];

	for (size_t x = 0; x < r->count; x++)
		io->din[0][r->in + x * r->stride] += weight * io->dout[r->out + x];
}

INLINE void add_to_dweight(const struct gf_ref_io *io, const struct row *r)
{
	float sum = 0;

	for (size_t x = 0; x < r->count; x++)
		sum += io->in[0][r->in + x * r->stride] * io->dout[r->out + x];
	io->dweight[r->weight] += sum;
}

static void forward(const struct gf_ref_io *io)
{
	const struct gf_layer *l = io->layer;
	size_t plane = l->out.dims[1] * l->out.dims[2];

	for (size_t i = 0; i < io->batch * l->filters; i++)
		for (size_t x = 0; x < plane; x++)
			io->out[i * plane + x] = io->bias ? io->bias[i % l->filters] : 0;
	visit_rows(io, add_to_out);
}

static void backward(const struct gf_ref_io *io)
{
	const struct gf_layer *l = io->layer;
	size_t plane = l->out.dims[1] * l->out.dims[2];
	size_t nweights = l->filters * (l->in.dims[0] / l->groups) * l->kernel * l->kernel_w;

	memset(io->dweight, 0, nweights * sizeof(float));
	visit_rows(io, add_to_dweight);
	if (io->din[0])
		visit_rows(io, add_to_din);
	if (!io->dbias)
		return;
	memset(io->dbias, 0, l->filters * sizeof(float));
	for (size_t i = 0; i < io->batch * l->filters; i++)
		for (size_t x = 0; x < plane; x++)
			io->dbias[i % l->filters] += io->dout[i * plane + x];
}

const struct gf_ref_layer gf_ref_conv = {
	.forward = forward,
	.backward = backward,
};
