/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

/*
 * LSTM (ref_lstm.c). The products with the inputs are made for all positions at once, those with
 * the position before one by one.
 *	saved	 gates {N, T, 4H}, then cells {N, T, H} in f32
 *	scratch	 gradients of the gates, outputs moved on by one
 *		 position, dh and dc {N, H} in f32, and room for sums
 */
enum { WEIGHT_IH, WEIGHT_HH, BIAS_IH, BIAS_HH };

struct sizes {
	size_t batch, steps, inputs, hidden;
};

static struct sizes sizes_of(const struct gf_gpu_io *io, size_t batch)
{
	return (struct sizes){batch, io->layer->in.dims[0], io->layer->in.dims[1],
			      io->layer->filters};
}

struct work {
	char *dgates, *before;
	float *dh, *dc;
	void *sums;
};

static size_t lay_out(const struct gf_gpu_io *io, size_t batch, struct work *w)
{
	const struct sizes s = sizes_of(io, batch);
	const size_t values = batch * s.steps * s.hidden;
	const size_t state = gf_gpu_align(batch * s.hidden * sizeof(float));
	const struct gf_gpu_view v = {io->g->dtype, batch * s.steps, 4 * s.hidden, 1};
	char *at = io->g->scratch;

	w->dgates = at;
	at += gf_gpu_align(gf_gpu_bytes(io->g, 4 * values));
	w->before = at;
	at += gf_gpu_align(gf_gpu_bytes(io->g, values));
	w->dh = (float *)(void *)at;
	w->dc = (float *)(void *)(at + state);
	w->sums = at + 2 * state;
	return (size_t)((char *)w->sums - (char *)io->g->scratch) + gf_gpu_sums_work_bytes(&v);
}

static size_t scratch_bytes(const struct gf_gpu_io *io, size_t batch)
{
	struct work w;

	return lay_out(io, batch, &w);
}

static size_t gates_bytes(const struct gf_gpu_io *io, size_t batch)
{
	const struct sizes s = sizes_of(io, batch);

	return gf_gpu_align(gf_gpu_bytes(io->g, batch * s.steps * 4 * s.hidden));
}

static size_t saved_bytes(const struct gf_gpu_io *io, size_t batch)
{
	const struct sizes s = sizes_of(io, batch);

	return gates_bytes(io, batch) + batch * s.steps * s.hidden * sizeof(float);
}

static size_t ih_bytes(const struct gf_gpu_io *io)
{
	const struct sizes s = sizes_of(io, 1);

	return gf_gpu_align(gf_gpu_bytes(io->g, 4 * s.hidden * s.inputs));
}

static size_t weight_bytes(const struct gf_gpu_io *io)
{
	const struct sizes s = sizes_of(io, 1);

	return io->g->dtype == GF_F32 ? 0
				      : ih_bytes(io) + gf_gpu_bytes(io->g, 4 * s.hidden * s.hidden);
}

static void convert_weights(const struct gf_gpu_io *io)
{
	const struct sizes s = sizes_of(io, 1);

	if (io->g->dtype == GF_F32)
		return;
	gf_gpu_from_plain(io->g, io->param[WEIGHT_IH], io->weight,
			  (size_t[3]){1, 4 * s.hidden * s.inputs, 1});
	gf_gpu_from_plain(io->g, io->param[WEIGHT_HH], (char *)io->weight + ih_bytes(io),
			  (size_t[3]){1, 4 * s.hidden * s.hidden, 1});
}

/* The arrays of one position. */
static struct gf_gpu_lstm position(const struct gf_gpu_io *io, size_t t)
{
	const struct gf_gpu_net *g = io->g;
	const struct sizes s = sizes_of(io, io->batch);
	float *cells = (float *)(void *)((char *)io->saved + gates_bytes(io, io->batch));
	const size_t at = t * s.hidden;

	return (struct gf_gpu_lstm){
		.dtype = g->dtype,
		.batch = s.batch,
		.hidden = s.hidden,
		.step = s.steps * s.hidden,
		.bias_ih = io->param[BIAS_IH],
		.bias_hh = io->param[BIAS_HH],
		.gates = (char *)io->saved + gf_gpu_bytes(g, 4 * at),
		.cells = cells + at,
		.cells_before = t > 0 ? cells + at - s.hidden : NULL,
		.out = (char *)io->out + gf_gpu_bytes(g, at),
	};
}

/* gates = in W_ih' */
static int inputs_forward(const struct gf_gpu_io *io, struct gf_error *err)
{
	const struct sizes s = sizes_of(io, io->batch);
	const struct gf_gpu_product p = {
		.type = io->g->dtype,
		.c_type = io->g->dtype,
		.m = s.batch * s.steps,
		.n = 4 * s.hidden,
		.k = s.inputs,
		.a = {(void *)io->in[0], s.inputs},
		.b = {(void *)gf_gpu_weight(io, WEIGHT_IH, 0), s.inputs, .transposed = true},
		.c = {io->saved, 4 * s.hidden},
		.alpha = 1,
	};

	return gf_gpu_multiply(io->g->blas, &p, err);
}

static int forward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;
	const struct sizes s = sizes_of(io, io->batch);
	struct gf_gpu_product p = {
		.type = g->dtype,
		.c_type = g->dtype,
		.m = s.batch,
		.n = 4 * s.hidden,
		.k = s.hidden,
		.a = {.row = s.steps * s.hidden},
		.b = {(void *)gf_gpu_weight(io, WEIGHT_HH, ih_bytes(io)), s.hidden,
		      .transposed = true},
		.c = {.row = s.steps * 4 * s.hidden},
		.alpha = 1,
		.beta = 1,
	};
	int rc;

	convert_weights(io);
	rc = inputs_forward(io, err);
	for (size_t t = 0; t < s.steps && !rc; t++) {
		const struct gf_gpu_lstm now = position(io, t);

		p.c.at = now.gates;
		if (t > 0)
			rc = gf_gpu_multiply(g->blas, &p, err);
		g->kernels->lstm(g->stream, &now);
		p.a.at = now.out;
	}
	return rc;
}

/* The gates' gradients, from the last position to the first; dh of the position before = dgates
 * W_hh. */
static int gates_backward(const struct gf_gpu_io *io, const struct work *w, struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;
	const struct sizes s = sizes_of(io, io->batch);
	struct gf_gpu_product p = {
		.type = g->dtype,
		.c_type = GF_F32,
		.m = s.batch,
		.n = s.hidden,
		.k = 4 * s.hidden,
		.a = {.row = s.steps * 4 * s.hidden},
		.b = {(void *)gf_gpu_weight(io, WEIGHT_HH, ih_bytes(io)), s.hidden},
		.c = {w->dh, s.hidden},
		.alpha = 1,
	};
	int rc = 0;

	for (size_t t = s.steps; t-- > 0 && !rc;) {
		struct gf_gpu_lstm now = position(io, t);

		now.dout = (const char *)io->dout + gf_gpu_bytes(g, t * s.hidden);
		now.last = t + 1 == s.steps;
		now.dh = now.last ? NULL : w->dh;
		now.dc = w->dc;
		now.dgates = w->dgates + gf_gpu_bytes(g, t * 4 * s.hidden);
		g->kernels->lstm_backward(g->stream, &now);
		p.a.at = now.dgates;
		if (t > 0)
			rc = gf_gpu_multiply(g->blas, &p, err);
	}
	return rc;
}

/* dparam{4H, columns} = dgates' x */
static int weight_backward(const struct gf_gpu_io *io, const struct work *w, size_t which,
			   const void *x, struct gf_error *err)
{
	const struct sizes s = sizes_of(io, io->batch);
	const size_t columns = which == WEIGHT_IH ? s.inputs : s.hidden;
	const struct gf_gpu_product p = {
		.type = io->g->dtype,
		.c_type = GF_F32,
		.m = 4 * s.hidden,
		.n = columns,
		.k = s.batch * s.steps,
		.a = {w->dgates, 4 * s.hidden, .transposed = true},
		.b = {(void *)x, columns},
		.c = {io->dparam[which], columns},
		.alpha = io->g->unscale,
	};

	return gf_gpu_multiply(io->g->blas, &p, err);
}

/* The output before each position: zeros, then all outputs but the last. */
static int move_on(const struct gf_gpu_io *io, const struct work *w, struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;
	const struct sizes s = sizes_of(io, io->batch);
	const size_t sample = s.steps * s.hidden;
	const struct gf_gpu_rows r = {
		.dtype = g->dtype,
		.from = io->out,
		.to = w->before + gf_gpu_bytes(g, s.hidden),
		.rows = s.batch,
		.width = sample - s.hidden,
		.from_step = sample,
		.to_step = sample,
	};
	int rc = g->gpu->ops->zero(g->gpu, g->stream, w->before, gf_gpu_bytes(g, s.batch * sample),
				   err);

	if (!rc)
		g->kernels->copy_rows(g->stream, &r);
	return rc;
}

static int parameters_backward(const struct gf_gpu_io *io, const struct work *w,
			       struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;
	const struct sizes s = sizes_of(io, io->batch);
	const struct gf_gpu_view v = {g->dtype, s.batch * s.steps, 4 * s.hidden, 1};
	int rc = move_on(io, w, err);

	rc = rc ?: weight_backward(io, w, WEIGHT_IH, io->in[0], err);
	rc = rc ?: weight_backward(io, w, WEIGHT_HH, w->before, err);
	for (size_t b = BIAS_IH; b <= BIAS_HH; b++)
		g->kernels->channel_sums(g->stream, &v, w->dgates, g->unscale, io->dparam[b],
					 w->sums);
	return rc;
}

static int backward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct sizes s = sizes_of(io, io->batch);
	struct gf_gpu_product p = {
		.type = io->g->dtype,
		.c_type = io->g->dtype,
		.m = s.batch * s.steps,
		.n = s.inputs,
		.k = 4 * s.hidden,
		.b = {(void *)gf_gpu_weight(io, WEIGHT_IH, 0), s.inputs},
		.c = {io->din[0], s.inputs},
		.alpha = 1,
		.beta = io->add[0] ? 1 : 0,
	};
	struct work w;
	int rc;

	(void)lay_out(io, io->batch, &w);
	p.a = (struct gf_gpu_matrix){w.dgates, 4 * s.hidden};
	rc = gates_backward(io, &w, err);
	if (!rc && io->dparam[WEIGHT_IH])
		rc = parameters_backward(io, &w, err);
	if (!rc && io->din[0])
		rc = gf_gpu_multiply(io->g->blas, &p, err);
	return rc;
}

const struct gf_gpu_layer gf_gpu_lstm = {
	.forward = forward,
	.backward = backward,
	.weight_bytes = weight_bytes,
	.saved_bytes = saved_bytes,
	.scratch_bytes = scratch_bytes,
	.needs_in = true,
	.needs_out = true,
};
