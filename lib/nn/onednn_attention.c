/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "gf_kernels.h"
#include "nn/onednn.h"
#include "nn/ref.h"

/*
 * The attention of ref_attention.c with oneDNN's matrix product, one head of
 * one sample after the other, whose scores stay in the cache. The scores that a
 * causal mask hides are computed, too, and become 0. `saved` holds the softmax
 * of all scores, and after it the gradient of one head's.
 */
static float scale_of(const struct gf_ref_head *h)
{
	return 1 / sqrtf((float)h->width);
}

static struct gf_onednn_matrix rows(const float *at, size_t pitch)
{
	return (struct gf_onednn_matrix){at, pitch, false};
}

static struct gf_onednn_matrix transposed(struct gf_onednn_matrix m)
{
	m.transposed = true;
	return m;
}

static struct gf_onednn_matrix input(const struct gf_ref_head *h, size_t which)
{
	return rows(h->in[which], h->pitch);
}

/* scores = a b', over the features of a head. */
static void score(const struct gf_ref_head *h, struct gf_onednn_matrix a,
		  struct gf_onednn_matrix b, float *scores)
{
	const struct gf_onednn_product p = {.a = a,
					    .b = transposed(b),
					    .m = h->steps,
					    .n = h->steps,
					    .k = h->width,
					    .alpha = 1,
					    .c = scores,
					    .pitch = h->steps};

	gf_onednn_multiply(&p);
}

/* c = weights b + beta c, of features, summed over positions. */
static void weigh(const struct gf_ref_head *h, struct gf_onednn_matrix weights,
		  struct gf_onednn_matrix b, float beta, float *c, size_t pitch)
{
	const struct gf_onednn_product p = {.a = weights,
					    .b = b,
					    .m = h->steps,
					    .n = h->width,
					    .k = h->steps,
					    .alpha = 1,
					    .beta = beta,
					    .c = c,
					    .pitch = pitch};

	if (c)
		gf_onednn_multiply(&p);
}

static void head_forward(const struct gf_ref_head *h)
{
	score(h, input(h, GF_REF_QUERIES), input(h, GF_REF_KEYS), h->p);
	for (size_t t = 0; t < h->steps; t++) {
		const size_t seen = gf_ref_seen(h, t);
		float *p = h->p + t * h->steps;

		gf_kernels()->softmax_f32(p, scale_of(h), seen);
		memset(p + seen, 0, (h->steps - seen) * sizeof(*p));
	}
	weigh(h, rows(h->p, h->steps), input(h, GF_REF_VALUES), 0, h->out,
	      h->out_pitch);
}

static void head_backward(const struct gf_ref_head *h)
{
	const struct gf_onednn_matrix p = rows(h->p, h->steps);
	const struct gf_onednn_matrix d = rows(h->dscores, h->steps);
	const struct gf_onednn_matrix dout = rows(h->dout, h->out_pitch);

	score(h, dout, input(h, GF_REF_VALUES), h->dscores);
	for (size_t t = 0; t < h->steps; t++)
		gf_kernels()->softmax_backward_f32(h->p + t * h->steps,
						   h->dscores + t * h->steps,
						   scale_of(h), h->steps);
	weigh(h, d, input(h, GF_REF_KEYS), 1, h->din[GF_REF_QUERIES], h->pitch);
	weigh(h, transposed(d), input(h, GF_REF_QUERIES), 1,
	      h->din[GF_REF_KEYS], h->pitch);
	weigh(h, transposed(p), dout, 1, h->din[GF_REF_VALUES], h->pitch);
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

	return (batch * l->heads + 1) * steps * steps * sizeof(float);
}

const struct gf_ref_layer gf_onednn_attention = {
	.forward = forward,
	.backward = backward,
	.saved_bytes = saved_bytes,
};
