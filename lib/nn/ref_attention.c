/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

#include <math.h>
#include <string.h>

#include "gf_kernels.h"

/*
 * Scaled dot-product attention (Vaswani et al. 2017): per head, out = P V with P = softmax(Q K' /
 * sqrt(d)), d = F / heads. The inputs are queries, keys and values, each {T, F}, or one {T, 3F}
 * with all three side by side; a head's features lie side by side. With a causal mask a row of P
 * ends at its own position, and the rest of it is 0; the scores there are computed, too. `saved`
 * holds P, and after it the gradient of one head's scores.
 */
enum { QUERIES, KEYS, VALUES };

/* One head in one sample, from each array's first row of it. */
struct head {
	void (*multiply)(const struct gf_ref_product *p);
	size_t steps, width;     /* width: of a head */
	size_t pitch, out_pitch; /* between rows of inputs, of outputs */
	bool causal;
	const float *in[3], *dout;
	float *din[3], *out; /* din: NULL where no gradient is wanted */
	float *p;            /* {T, T}: the softmax of the scores */
	float *dscores;      /* scratch, which all heads share: after their p */
};

static struct head head_of(const struct gf_ref_io *io, size_t n, size_t k)
{
	const struct gf_layer *l = io->layer;
	const size_t steps = l->in.dims[0], features = l->out.dims[1];
	const size_t width = features / l->heads;
	const size_t out = n * steps * features + k * width;
	struct head h = {
		.multiply = io->multiply,
		.steps = steps,
		.width = width,
		.pitch = l->in.dims[1],
		.out_pitch = features,
		.causal = l->causal,
		.out = io->out + out,
		.dout = io->dout ? io->dout + out : NULL,
		.p = (float *)io->saved + (n * l->heads + k) * steps * steps,
		.dscores = (float *)io->saved + io->batch * l->heads * steps * steps,
	};

	for (size_t i = 0; i < 3; i++) {
		const size_t from = l->ninputs == 1 ? 0 : i;
		const size_t at = n * steps * h.pitch + k * width + (i - from) * features;

		h.in[i] = io->in[from] + at;
		h.din[i] = io->din[from] ? io->din[from] + at : NULL;
	}
	return h;
}

static void each_head(const struct gf_ref_io *io, void (*run)(const struct head *head))
{
	for (size_t n = 0; n < io->batch; n++)
		for (size_t k = 0; k < io->layer->heads; k++) {
			const struct head h = head_of(io, n, k);

			run(&h);
		}
}

static float scale_of(const struct head *h)
{
	return 1 / sqrtf((float)h->width);
}

static struct gf_ref_matrix rows(const float *at, size_t pitch)
{
	return (struct gf_ref_matrix){at, pitch, false};
}

static struct gf_ref_matrix transposed(struct gf_ref_matrix m)
{
	m.transposed = true;
	return m;
}

static struct gf_ref_matrix input(const struct head *h, size_t which)
{
	return rows(h->in[which], h->pitch);
}

/* scores = a b', over the features of a head. */
static void score(const struct head *h, struct gf_ref_matrix a, struct gf_ref_matrix b,
		  float *scores)
{
	h->multiply(&(struct gf_ref_product){a, transposed(b), h->steps, h->steps, h->width, false,
					     scores, h->steps});
}

/* c = weights b, or c += weights b, of features, summed over positions. */
static void weigh(const struct head *h, struct gf_ref_matrix weights, struct gf_ref_matrix b,
		  bool adds, float *c, size_t pitch)
{
	if (c)
		h->multiply(&(struct gf_ref_product){weights, b, h->steps, h->width, h->steps, adds,
						     c, pitch});
}

static void head_forward(const struct head *h)
{
	score(h, input(h, QUERIES), input(h, KEYS), h->p);
	for (size_t t = 0; t < h->steps; t++) {
		const size_t seen = h->causal ? t + 1 : h->steps; /* t attends to so many */
		float *p = h->p + t * h->steps;

		gf_kernels()->softmax_f32(p, scale_of(h), seen);
		memset(p + seen, 0, (h->steps - seen) * sizeof(*p));
	}
	weigh(h, rows(h->p, h->steps), input(h, VALUES), false, h->out, h->out_pitch);
}

static void head_backward(const struct head *h)
{
	const struct gf_ref_matrix p = rows(h->p, h->steps);
	const struct gf_ref_matrix d = rows(h->dscores, h->steps);
	const struct gf_ref_matrix dout = rows(h->dout, h->out_pitch);

	score(h, dout, input(h, VALUES), h->dscores);
	for (size_t t = 0; t < h->steps; t++)
		gf_kernels()->softmax_backward_f32(h->p + t * h->steps, h->dscores + t * h->steps,
						   scale_of(h), h->steps);
	weigh(h, d, input(h, KEYS), true, h->din[QUERIES], h->pitch);
	weigh(h, transposed(d), input(h, QUERIES), true, h->din[KEYS], h->pitch);
	weigh(h, transposed(p), dout, true, h->din[VALUES], h->pitch);
}

static void forward(const struct gf_ref_io *io)
{
	each_head(io, head_forward);
}

static void backward(const struct gf_ref_io *io)
{
	each_head(io, head_backward);
}

static size_t saved_bytes(const struct gf_layer *l, size_t batch)
{
	const size_t steps = l->in.dims[0];

	return (batch * l->heads + 1) * steps * steps * sizeof(float);
}

const struct gf_ref_layer gf_ref_attention = {
	.forward = forward,
	.backward = backward,
	.saved_bytes = saved_bytes,
};
