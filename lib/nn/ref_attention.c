/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

#include <math.h>

/*
 * Scaled dot-product attention (Vaswani et al. 2017): per head, out = P V with
 * P = softmax(Q K' / sqrt(d)), d = F / heads. The inputs are queries, keys and
 * values, each {T, F}, or one {T, 3F} with all three side by side; a head's
 * features lie side by side. With a causal mask a row of P ends at its own
 * position, and the rest of it is 0. `saved` holds P, and after it one row of
 * its gradient.
 */
static struct gf_ref_head head_of(const struct gf_ref_io *io, size_t n,
				  size_t k)
{
	const struct gf_layer *l = io->layer;
	const size_t steps = l->in.dims[0], features = l->out.dims[1];
	const size_t width = features / l->heads;
	const size_t out = n * steps * features + k * width;
	struct gf_ref_head h = {
		.steps = steps,
		.width = width,
		.pitch = l->in.dims[1],
		.out_pitch = features,
		.causal = l->causal,
		.out = io->out + out,
		.dout = io->dout ? io->dout + out : NULL,
		.p = (float *)io->saved + (n * l->heads + k) * steps * steps,
		.dscores = (float *)io->saved +
			   io->batch * l->heads * steps * steps,
	};

	for (size_t i = 0; i < 3; i++) {
		const size_t from = l->ninputs == 1 ? 0 : i;
		const size_t at =
			n * steps * h.pitch + k * width + (i - from) * features;

		h.in[i] = io->in[from] + at;
		h.din[i] = io->din[from] ? io->din[from] + at : NULL;
	}
	return h;
}

void gf_ref_each_head(const struct gf_ref_io *io,
		      void (*run)(const struct gf_ref_head *head))
{
	for (size_t n = 0; n < io->batch; n++)
		for (size_t k = 0; k < io->layer->heads; k++) {
			const struct gf_ref_head h = head_of(io, n, k);

			run(&h);
		}
}

size_t gf_ref_seen(const struct gf_ref_head *h, size_t t)
{
	return h->causal ? t + 1 : h->steps;
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

static void weigh(const struct gf_ref_head *h, size_t t, float *p)
{
	const float *query = h->in[GF_REF_QUERIES] + t * h->pitch;
	const float scale = 1 / sqrtf((float)h->width);

	for (size_t k = 0; k < h->steps; k++)
		p[k] = 0;
	for (size_t k = 0; k < gf_ref_seen(h, t); k++)
		p[k] = scale * gf_ref_dot(query,
					  h->in[GF_REF_KEYS] + k * h->pitch,
					  h->width);
	softmax(p, gf_ref_seen(h, t));
}

static void head_forward(const struct gf_ref_head *h)
{
	for (size_t t = 0; t < h->steps; t++) {
		float *p = h->p + t * h->steps;
		float *out = h->out + t * h->out_pitch;

		weigh(h, t, p);
		for (size_t i = 0; i < h->width; i++)
			out[i] = 0;
		for (size_t k = 0; k < gf_ref_seen(h, t); k++)
			gf_ref_add_scaled(out, p[k],
					  h->in[GF_REF_VALUES] + k * h->pitch,
					  h->width);
	}
}

/* The gradient of one query's scores, from that of its output. */
static void scores_backward(const struct gf_ref_head *h, size_t t)
{
	float *dscores = h->dscores;
	const float *p = h->p + t * h->steps;
	const float *dout = h->dout + t * h->out_pitch;
	float sum = 0;

	for (size_t k = 0; k < gf_ref_seen(h, t); k++) {
		dscores[k] = gf_ref_dot(
			dout, h->in[GF_REF_VALUES] + k * h->pitch, h->width);
		sum += dscores[k] * p[k];
	}
	for (size_t k = 0; k < gf_ref_seen(h, t); k++)
		dscores[k] = p[k] * (dscores[k] - sum) / sqrtf((float)h->width);
}

static void add_row(float *matrix, const struct gf_ref_head *h, size_t t,
		    float a, const float *row)
{
	if (matrix)
		gf_ref_add_scaled(matrix + t * h->pitch, a, row, h->width);
}

static void head_backward(const struct gf_ref_head *h)
{
	for (size_t t = 0; t < h->steps; t++) {
		const float *p = h->p + t * h->steps;

		scores_backward(h, t);
		for (size_t k = 0; k < gf_ref_seen(h, t); k++) {
			add_row(h->din[GF_REF_QUERIES], h, t, h->dscores[k],
				h->in[GF_REF_KEYS] + k * h->pitch);
			add_row(h->din[GF_REF_KEYS], h, k, h->dscores[k],
				h->in[GF_REF_QUERIES] + t * h->pitch);
			add_row(h->din[GF_REF_VALUES], h, k, p[k],
				h->dout + t * h->out_pitch);
		}
	}
}

static void forward(const struct gf_ref_io *io)
{
	gf_ref_each_head(io, head_forward);
}

static void backward(const struct gf_ref_io *io)
{
	gf_ref_each_head(io, head_backward);
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
