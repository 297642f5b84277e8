/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

#include <math.h>

#include "base/heap.h"

/*
 * Attention (ref_attention.c) in products of matrices, one per head of each sample, all of them in
 * one call. The call wants a pointer for each matrix; these stay as they are, so a table of them is
 * made once. In 16 bits it also wants every matrix aligned to 16 bytes; where that is not so, each
 * head is a call, whose matrices lie at equal distances.
 *	saved	 the softmax of the scores, {N, heads, T, T}
 *	scratch	 its gradient
 *	weight	 the table, {ARRAYS, N, heads}
 *
 * cuDNN has one kernel for all of attention, which keeps no scores. It would pay where a row of
 * scores is much longer than a head's row of values; in gpt-text it is twice as long.
 */
enum array {
	QUERIES,
	KEYS,
	VALUES,
	OUT,
	WEIGHTS,
	DWEIGHTS,
	DOUT,
	DQUERIES,
	DKEYS,
	DVALUES,
	ARRAYS
};

struct sizes {
	size_t steps, heads, width; /* width: of a head */
};

static struct sizes sizes_of(const struct gf_gpu_io *io)
{
	const struct gf_layer *l = io->layer;

	return (struct sizes){l->in.dims[0], l->heads, l->out.dims[1] / l->heads};
}

static bool is_square(enum array a)
{
	return a == WEIGHTS || a == DWEIGHTS;
}

/* Queries, keys and values are three inputs, or side by side in one. */
static char *input_of(const struct gf_gpu_io *io, void *const *from, size_t i)
{
	const bool one = io->layer->ninputs == 1;
	char *start = from[one ? 0 : i];

	return start && one ? start + gf_gpu_bytes(io->g, i * io->layer->out.dims[1]) : start;
}

static char *start_of(const struct gf_gpu_io *io, enum array a)
{
	switch (a) {
	case OUT:
		return io->out;
	case DOUT:
		return io->dout;
	case WEIGHTS:
		return io->saved;
	case DWEIGHTS:
		return io->g->scratch;
	case DQUERIES:
	case DKEYS:
	case DVALUES:
		return input_of(io, io->din, a - DQUERIES);
	default:
		return input_of(io, (void *const *)io->in, a);
	}
}

/* The matrix of a head of the first sample, and those of other samples. */
static struct gf_gpu_matrix matrix(const struct gf_gpu_io *io, enum array a, size_t head)
{
	const struct sizes s = sizes_of(io);
	const size_t row = is_square(a)            ? s.steps
			   : a == OUT || a == DOUT ? io->layer->out.dims[1]
						   : io->layer->in.dims[1];
	const size_t at = head * (is_square(a) ? s.steps * s.steps : s.width);
	char *start = start_of(io, a);

	return (struct gf_gpu_matrix){
		.at = start ? start + gf_gpu_bytes(io->g, at) : NULL,
		.row = row,
		.step = is_square(a) ? s.heads * s.steps * s.steps : s.steps * row,
	};
}

/* --- the table --------------------------------------------------------------
 */

static bool at_once(const struct gf_gpu_io *io)
{
	const struct sizes s = sizes_of(io);

	return io->g->dtype == GF_F32 || (s.width % 8 == 0 && s.steps % 8 == 0);
}

static size_t matrices(const struct gf_gpu_io *io)
{
	return io->g->net->max_batch * sizes_of(io).heads;
}

static size_t table_bytes(const struct gf_gpu_io *io)
{
	return at_once(io) ? ARRAYS * matrices(io) * sizeof(void *) : 0;
}

static int start(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;
	const size_t heads = sizes_of(io).heads, count = matrices(io);
	GF_FREED char **table = NULL;
	int rc;

	if (!at_once(io))
		return 0;
	table = gf_xcalloc(ARRAYS * count, sizeof(*table));
	for (size_t i = 0; i < ARRAYS * count; i++) {
		const struct gf_gpu_matrix m =
			matrix(io, (enum array)(i / count), i % count % heads);

		if (m.at)
			table[i] = (char *)m.at + gf_gpu_bytes(g, i % count / heads * m.step);
	}
	rc = g->gpu->ops->copy(g->gpu, g->stream, io->weight, table, table_bytes(io),
			       GF_GPU_TO_DEVICE, err);
	return rc ?: g->gpu->ops->stream_sync(g->gpu, g->stream, err);
}

/* --- the products -----------------------------------------------------------
 */

struct factor {
	enum array array;
	bool transposed;
};

static struct gf_gpu_matrix matrix_of(const struct gf_gpu_io *io, struct factor f, size_t head)
{
	struct gf_gpu_matrix m = matrix(io, f.array, head);

	m.transposed = f.transposed;
	if (at_once(io))
		m.each = (void **)io->weight + f.array * matrices(io);
	return m;
}

/* c = alpha * a b, or added to what is there: of scores, or of a head's columns */
static int multiply(const struct gf_gpu_io *io, struct factor a, struct factor b, enum array c,
		    float alpha, bool add, struct gf_error *err)
{
	const struct sizes s = sizes_of(io);
	const size_t calls = at_once(io) ? 1 : s.heads;
	struct gf_gpu_product p = {
		.type = io->g->dtype,
		.c_type = io->g->dtype,
		.m = s.steps,
		.n = is_square(c) ? s.steps : s.width,
		.k = is_square(c) ? s.width : s.steps,
		.count = io->batch * s.heads / calls,
		.alpha = alpha,
		.beta = add ? 1 : 0,
	};
	int rc = 0;

	for (size_t head = 0; head < calls && !rc; head++) {
		p.a = matrix_of(io, a, head);
		p.b = matrix_of(io, b, head);
		p.c = matrix_of(io, (struct factor){c, false}, head);
		rc = gf_gpu_multiply(io->g->blas, &p, err);
	}
	return rc;
}

static struct factor plain(enum array a)
{
	return (struct factor){a, false};
}

static struct factor transposed(enum array a)
{
	return (struct factor){a, true};
}

static struct gf_gpu_scores scores_of(const struct gf_gpu_io *io)
{
	const struct sizes s = sizes_of(io);

	return (struct gf_gpu_scores){
		.dtype = io->g->dtype,
		.p = io->saved,
		.dp = io->g->scratch,
		.scale = 1 / sqrtf((float)s.width),
		.rows = io->batch * s.heads * s.steps,
		.width = s.steps,
		.causal = io->layer->causal,
	};
}

static int forward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_scores s = scores_of(io);
	int rc = multiply(io, plain(QUERIES), transposed(KEYS), WEIGHTS, s.scale, false, err);

	if (rc)
		return rc;
	io->g->kernels->softmax(io->g->stream, &s);
	return multiply(io, plain(WEIGHTS), plain(VALUES), OUT, 1, false, err);
}

static int backward(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct {
		struct factor a, b;
	} inputs[] = {
		{plain(DWEIGHTS), plain(KEYS)},
		{transposed(DWEIGHTS), plain(QUERIES)},
		{transposed(WEIGHTS), plain(DOUT)},
	};
	const struct gf_gpu_scores s = scores_of(io);
	int rc = multiply(io, plain(DOUT), transposed(VALUES), DWEIGHTS, 1, false, err);

	if (rc)
		return rc;
	io->g->kernels->softmax_backward(io->g->stream, &s);
	for (size_t i = 0; i < 3 && !rc; i++) {
		const size_t from = io->layer->ninputs == 1 ? 0 : i;

		if (io->din[from])
			rc = multiply(io, inputs[i].a, inputs[i].b, (enum array)(DQUERIES + i), 1,
				      io->add[from], err);
	}
	return rc;
}

static size_t saved_bytes(const struct gf_gpu_io *io, size_t batch)
{
	const struct sizes s = sizes_of(io);

	return gf_gpu_bytes(io->g, batch * s.heads * s.steps * s.steps);
}

const struct gf_gpu_layer gf_gpu_attention = {
	.forward = forward,
	.backward = backward,
	.start = start,
	.weight_bytes = table_bytes,
	.saved_bytes = saved_bytes,
	.scratch_bytes = saved_bytes,
	.needs_in = true,
};
