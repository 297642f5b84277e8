/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

#include <math.h>

/*
 * Scaled dot-product attention (Vaswani et al. 2017), without a mask: per head,
 * out = P V with P = softmax(Q K' / sqrt(d)), d = F / heads. The inputs are
 * queries, keys and values, each {T, F}; a head's features lie side by side.
 * `saved` holds P, and after it one row of its gradient.
 */
struct head {
	const struct gf_ref_io *io;
	size_t steps, width; /* width: of a head */
	size_t at;           /* of its features, in the sample's first row */
	float *p;            /* {T, T} */
};

static const float *row(const struct head *h, const float *matrix, size_t t)
{
	return matrix + h->at + t * h->io->layer->in.dims[1];
}

static void softmax(float *p, size_t n)
{
	float max = p[0], sum = 0;

	for (size_t i = 1; i < n; i++)
		max = p[i] > max ? p[i] : max;
	for (size_t i = 0; i < n; i++) {
		p[i] = expf(p[i] - max);
		sum += p[i];
	}
	for (size_t i = 0; i < n; i++)
		p[i] /= sum;
}

static void head_forward(const struct head *h)
{
	const struct gf_ref_io *io = h->io;
	const float scale = 1 / sqrtf((float)h->width);

	for (size_t t = 0; t < h->steps; t++) {
		float *p = h->p + t * h->steps;
		float *out = (float *)row(h, io->out, t);

		for (size_t k = 0; k < h->steps; k++)
			p[k] = scale * gf_ref_dot(row(h, io->in[0], t),
						  row(h, io->in[1], k),
						  h->width);
		softmax(p, h->steps);
		for (size_t i = 0; i < h->width; i++)
			out[i] = 0;
		for (size_t k = 0; k < h->steps; k++)
			gf_ref_add_scaled(out, p[k], row(h, io->in[2], k),
					  h->width);
	}
}

/* The gradient of one query's scores, from that of its output. */
static void scores_backward(const struct head *h, size_t t, float *dscores)
{
	const float *p = h->p + t * h->steps;
	const float *dout = row(h, h->io->dout, t);
	float sum = 0;

	for (size_t k = 0; k < h->steps; k++) {
		dscores[k] =
			gf_ref_dot(dout, row(h, h->io->in[2], k), h->width);
		sum += dscores[k] * p[k];
	}
	for (size_t k = 0; k < h->steps; k++)
		dscores[k] = p[k] * (dscores[k] - sum) / sqrtf((float)h->width);
}

static void head_backward(const struct head *h, float *dscores)
{
	const struct gf_ref_io *io = h->io;
	float *const *din = io->din;

	for (size_t t = 0; t < h->steps; t++) {
		const float *p = h->p + t * h->steps;

		scores_backward(h, t, dscores);
		for (size_t k = 0; k < h->steps; k++) {
			if (din[0])
				gf_ref_add_scaled(
					(float *)row(h, din[0], t), dscores[k],
					row(h, io->in[1], k), h->width);
			if (din[1])
				gf_ref_add_scaled(
					(float *)row(h, din[1], k), dscores[k],
					row(h, io->in[0], t), h->width);
			if (din[2])
				gf_ref_add_scaled((float *)row(h, din[2], k),
						  p[k], row(h, io->dout, t),
						  h->width);
		}
	}
}

static struct head head_of(const struct gf_ref_io *io, size_t n, size_t k)
{
	const struct gf_layer *l = io->layer;
	const size_t steps = l->in.dims[0], width = l->in.dims[1] / l->heads;

	return (struct head){
		.io = io,
		.steps = steps,
		.width = width,
		.at = n * steps * l->in.dims[1] + k * width,
		.p = (float *)io->saved + (n * l->heads + k) * steps * steps,
	};
}

static void forward(const struct gf_ref_io *io)
{
	for (size_t n = 0; n < io->batch; n++)
		for (size_t k = 0; k < io->layer->heads; k++) {
			const struct head h = head_of(io, n, k);

			head_forward(&h);
		}
}

static void backward(const struct gf_ref_io *io)
{
	const struct head end = head_of(io, io->batch, 0);

	for (size_t n = 0; n < io->batch; n++)
		for (size_t k = 0; k < io->layer->heads; k++) {
			const struct head h = head_of(io, n, k);

			head_backward(&h, end.p);
		}
}

static size_t saved_bytes(const struct gf_layer *l, size_t batch)
{
	const size_t steps = l->in.dims[0];

	return (batch * l->heads * steps + 1) * steps * sizeof(float);
}

const struct gf_ref_layer gf_ref_attention = {
	.forward = forward,
	.backward = backward,
	.saved_bytes = saved_bytes,
};
