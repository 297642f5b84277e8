/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/layer.h"

#include <string.h>

/* Fully connected layers, and those that work element by element. */

#define AT(member) offsetof(struct gf_layer, member)

static const struct gf_field no_fields[] = {
	{NULL},
};

/* --- fc ------------------------------------------------------------------ */

static const struct gf_field fc_fields[] = {
	{"outputs", GF_FIELD_SIZE, .offset = AT(filters), .low = 1,
	 .high = GF_MAX_COUNT},
	{"bias", GF_FIELD_BOOL, GF_DEFAULTED, .offset = AT(bias), .absent = 1},
	{NULL},
};

static int infer_fc(struct gf_infer *c)
{
	struct gf_layer *l = c->layer;
	bool sequence = l->in.rank == 2;
	size_t inputs = sequence ? l->in.dims[1] : gf_shape_elems(&l->in);

	if (sequence)
		l->out = (struct gf_shape){2, {l->in.dims[0], l->filters}};
	else
		l->out = (struct gf_shape){1, {l->filters}};
	gf_infer_param(c, "weight", (struct gf_shape){2, {l->filters, inputs}});
	if (l->bias)
		gf_infer_param(c, "bias", (struct gf_shape){1, {l->filters}});
	l->forward_flops =
		2.0 * (double)inputs * (double)gf_shape_elems(&l->out);
	l->backward_flops =
		l->forward_flops * (gf_infer_data_gradient(c) ? 2 : 1);
	return 0;
}

const struct gf_layer_kind gf_layer_fc = {
	.name = "fc",
	.min_inputs = 1,
	.max_inputs = 1,
	.fields = fc_fields,
	.infer = infer_fc,
};

/* --- batchnorm ----------------------------------------------------------- */

static const struct gf_field batchnorm_fields[] = {
	{"epsilon", GF_FIELD_REAL, GF_OMITTED, .offset = AT(epsilon),
	 .low = 1e-12, .high = 1, .absent = 1e-5},
	{"momentum", GF_FIELD_REAL, GF_OMITTED, .offset = AT(momentum),
	 .high = 1, .absent = 0.1},
	{NULL},
};

static int infer_batchnorm(struct gf_infer *c)
{
	struct gf_layer *l = c->layer;
	char shape[96];

	if (l->in.rank != 3 && l->in.rank != 1)
		return gf_infer_refuse(c, NULL,
				       "want an input {C, H, W} or {F}, got %s",
				       gf_shape_text(&l->in, shape));
	l->out = l->in;
	gf_infer_param(c, "weight", (struct gf_shape){1, {l->in.dims[0]}});
	gf_infer_param(c, "bias", (struct gf_shape){1, {l->in.dims[0]}});
	/* forward: mean, variance (2), scale and shift (2); backward: two sums
	 * (3) and the gradient (5) */
	gf_infer_elementwise(c, 5, 8);
	return 0;
}

const struct gf_layer_kind gf_layer_batchnorm = {
	.name = "batchnorm",
	.min_inputs = 1,
	.max_inputs = 1,
	.fields = batchnorm_fields,
	.infer = infer_batchnorm,
};
#undef AT

/* --- relu, add ----------------------------------------------------------- */

static int infer_relu(struct gf_infer *c)
{
	c->layer->out = c->layer->in;
	gf_infer_elementwise(c, 1, 1);
	return 0;
}

const struct gf_layer_kind gf_layer_relu = {
	.name = "relu",
	.min_inputs = 1,
	.max_inputs = 1,
	.fields = no_fields,
	.infer = infer_relu,
};

static int infer_add(struct gf_infer *c)
{
	const struct gf_shape *a = gf_infer_input(c, 0);
	const struct gf_shape *b = gf_infer_input(c, 1);
	char first[96], second[96];

	if (memcmp(a, b, sizeof(*a)) != 0)
		return gf_infer_refuse(c, "from",
				       "want two inputs of one shape, got %s "
				       "and %s",
				       gf_shape_text(a, first),
				       gf_shape_text(b, second));
	c->layer->out = *a;
	gf_infer_elementwise(c, 1, 1);
	return 0;
}

const struct gf_layer_kind gf_layer_add = {
	.name = "add",
	.min_inputs = 2,
	.max_inputs = 2,
	.fields = no_fields,
	.infer = infer_add,
};
