/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/graph.h"

#include <limits.h>

/*
 * Can a layer of each type be computed? lib/documents has inferred the shapes; a model can be
 * well-formed and still ask for something that no backend does.
 */
static int want(int ok, struct gf_error *err, const char *what)
{
	return ok ? 0 : gf_error_set(err, -EINVAL, "want %s", what);
}

static int want_image(const struct gf_layer *l, struct gf_error *err)
{
	if (l->in.rank == 3 && l->out.rank == 3)
		return 0;
	return gf_error_set(err, -EINVAL,
			    "want an input of channels, height and width, got %zu dimensions",
			    l->in.rank);
}

static int window(const struct gf_layer *l, struct gf_error *err)
{
	const size_t kernel[] = {l->kernel, l->kernel_w};
	const size_t pad[] = {l->pad, l->pad_w};
	int rc = want_image(l, err);

	if (!rc)
		rc = want(l->kernel > 0 && l->kernel_w > 0 && l->stride > 0, err,
			  "a kernel and a stride of at least 1");
	for (size_t d = 0; d < 2 && !rc; d++) {
		size_t padded = l->in.dims[1 + d] + 2 * pad[d];

		if (pad[d] > INT_MAX || padded < kernel[d])
			rc = gf_error_set(err, -EINVAL,
					  "want a kernel of at most the padded input, %zu, got %zu",
					  padded, kernel[d]);
		else
			rc = want(l->out.dims[1 + d] == (padded - kernel[d]) / l->stride + 1, err,
				  "the output that the window gives");
	}
	return rc;
}

static int conv(const struct gf_layer *l, struct gf_error *err)
{
	int rc = window(l, err);

	if (rc)
		return rc;
	if (l->groups == 0 || l->in.dims[0] % l->groups || l->filters % l->groups)
		return gf_error_set(err, -EINVAL,
				    "want groups that divide %zu and %zu channels, got %zu",
				    l->in.dims[0], l->filters, l->groups);
	return want(l->out.dims[0] == l->filters, err, "as many output channels as filters");
}

static int pool(const struct gf_layer *l, struct gf_error *err)
{
	int rc = window(l, err);

	if (rc)
		return rc;
	/* Otherwise a window could see nothing but padding. */
	if (l->pad >= l->kernel || l->pad_w >= l->kernel_w)
		return want(0, err, "a pad below the kernel");
	return want(l->in.dims[0] == l->out.dims[0], err, "as many output channels as inputs");
}

static int globalpool(const struct gf_layer *l, struct gf_error *err)
{
	if (l->in.rank != 3)
		return want_image(l, err);
	return want(l->out.rank == 1 && l->out.dims[0] == l->in.dims[0], err,
		    "one output per channel");
}

static int fc(const struct gf_layer *l, struct gf_error *err)
{
	if (l->in.rank == 2) /* each position on its own */
		return want(l->out.rank == 2 && l->out.dims[0] == l->in.dims[0] &&
				    l->out.dims[1] == l->filters,
			    err, "an output per position");
	return want(l->out.rank == 1 && l->out.dims[0] == l->filters, err, "a flat output");
}

static int same(const struct gf_layer *l, struct gf_error *err)
{
	return want(gf_shape_elems(&l->in) == gf_shape_elems(&l->out), err,
		    "an output of the input's shape");
}

static int batchnorm(const struct gf_layer *l, struct gf_error *err)
{
	int rc = same(l, err);

	if (rc)
		return rc;
	if (l->in.rank != 1 && l->in.rank != 3)
		return gf_error_set(err, -EINVAL, "want 1 or 3 dimensions, got %zu", l->in.rank);
	return want(l->epsilon > 0 && l->momentum >= 0 && l->momentum <= 1, err,
		    "epsilon > 0 and momentum in 0 to 1");
}

static int sequence(const struct gf_layer *l, struct gf_error *err)
{
	if (l->in.rank != 2)
		return gf_error_set(err, -EINVAL,
				    "want a sequence of positions, got %zu dimensions", l->in.rank);
	return 0;
}

static int lstm(const struct gf_layer *l, struct gf_error *err)
{
	int rc = sequence(l, err);

	if (rc)
		return rc;
	return want(l->out.rank == 2 && l->out.dims[0] == l->in.dims[0] &&
			    l->out.dims[1] == l->filters,
		    err, "an output per position");
}

static int attention(const struct gf_layer *l, struct gf_error *err)
{
	int rc = sequence(l, err);

	if (rc)
		return rc;
	if (l->kv_heads || l->rotary)
		return gf_error_set(err, -ENOTSUP, "no backend computes attention with %s",
				    l->rotary ? "rotary positions" : "fewer heads of keys");
	return want((l->ninputs == 1 ? l->in.dims[1] == 3 * l->out.dims[1] : l->ninputs == 3) &&
			    l->heads > 0 && l->out.dims[1] % l->heads == 0,
		    err, "queries, keys and values that the heads divide");
}

static int take_position(const struct gf_layer *l, struct gf_error *err)
{
	int rc = sequence(l, err);

	if (rc)
		return rc;
	return want(l->position < l->in.dims[0] && l->out.dims[0] == l->in.dims[1], err,
		    "a position inside the sequence");
}

/* Its numbers must be known before the pass, so that they can be checked. */
static int embedding(const struct gf_layer *l, struct gf_error *err)
{
	if (l->inputs[0] != -1)
		return gf_error_set(err, -ENOTSUP, "want the sample itself as its input");
	return want(l->in.rank == 1 && l->out.rank == 2 && l->out.dims[0] == l->in.dims[0] &&
			    l->out.dims[1] == l->filters &&
			    l->entries > (l->positional ? (l->in.dims[0] - 1) / l->stretch : 0),
		    err, "a row of the table per number");
}

static int dropout(const struct gf_layer *l, struct gf_error *err)
{
	return same(l, err) ?: want(l->rate >= 0 && l->rate < 1, err, "a rate in 0 to 1");
}

static int concat(const struct gf_layer *l, struct gf_error *err)
{
	return want(l->in.rank == l->out.rank, err, "an output with the input's dimensions");
}

int (*const gf_net_layer_checks[GF_LAYER_NTYPES])(const struct gf_layer *l,
						  struct gf_error *err) = {
	[GF_LAYER_CONV] = conv,
	[GF_LAYER_BATCHNORM] = batchnorm,
	[GF_LAYER_RELU] = same,
	[GF_LAYER_MAXPOOL] = pool,
	[GF_LAYER_AVGPOOL] = pool,
	[GF_LAYER_GLOBALPOOL] = globalpool,
	[GF_LAYER_FC] = fc,
	[GF_LAYER_ADD] = same,
	[GF_LAYER_CONCAT] = concat,
	[GF_LAYER_DROPOUT] = dropout,
	[GF_LAYER_LAYERNORM] = same,
	[GF_LAYER_GELU] = same,
	[GF_LAYER_TANH] = same,
	[GF_LAYER_EMBEDDING] = embedding,
	[GF_LAYER_ATTENTION] = attention,
	[GF_LAYER_SELECT] = take_position,
	[GF_LAYER_LSTM] = lstm,
};
