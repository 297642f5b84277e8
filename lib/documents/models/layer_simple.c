/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/models/layer.h"

#include <limits.h>
#include <string.h>

/* Layers that work element by element, and those that only move elements. */

#define AT(member) offsetof(struct gf_layer, member)

static const struct gf_field no_fields[] = {
	{NULL},
};

/* --- normalisation ------------------------------------------------------- */

/* Operations per element. Forward: mean, variance (2), scale and shift (2);
 * backward: two sums (3) and the gradient (5). */
#define NORM_FORWARD  5
#define NORM_BACKWARD 8

static const struct gf_field batchnorm_fields[] = {
	{GF_MEMBER(epsilon, GF_FIELD_REAL, GF_OMITTED), .low = 1e-12, .high = 1, .absent = 1e-5},
	{GF_MEMBER(momentum, GF_FIELD_REAL, GF_OMITTED), .high = 1, .absent = 0.1},
	{NULL},
};

static void scale_and_shift(struct gf_infer *c, size_t features)
{
	c->layer->out = c->layer->in;
	gf_infer_param(c, "weight", (struct gf_shape){1, {features}});
	gf_infer_param(c, "bias", (struct gf_shape){1, {features}});
	gf_infer_elementwise(c, NORM_FORWARD, NORM_BACKWARD);
}

static int infer_batchnorm(struct gf_infer *c)
{
	const struct gf_shape *in = &c->layer->in;

	if (in->rank != 3 && in->rank != 1)
		return gf_infer_refuse_shape(c, in, "{C, H, W} or {F}");
	scale_and_shift(c, in->dims[0]);
	return 0;
}

const struct gf_layer_kind gf_layer_batchnorm = {
	.inputs = {1, 1},
	.fields = batchnorm_fields,
	.infer = infer_batchnorm,
};

static const struct gf_field layernorm_fields[] = {
	{GF_MEMBER(epsilon, GF_FIELD_REAL, GF_OMITTED), .low = 1e-12, .high = 1, .absent = 1e-5},
	{NULL},
};

static int infer_layernorm(struct gf_infer *c)
{
	const struct gf_shape *in = &c->layer->in;

	if (in->rank > 2)
		return gf_infer_refuse_shape(c, in, "{T, F} or {F}");
	scale_and_shift(c, in->dims[in->rank - 1]);
	return 0;
}

const struct gf_layer_kind gf_layer_layernorm = {
	.inputs = {1, 1},
	.fields = layernorm_fields,
	.infer = infer_layernorm,
};

/* A layernorm without the mean and the shift (Zhang, Sennrich 2019). */
static int infer_rmsnorm(struct gf_infer *c)
{
	const struct gf_shape *in = &c->layer->in;

	if (in->rank > 2)
		return gf_infer_refuse_shape(c, in, "{T, F} or {F}");
	c->layer->out = *in;
	gf_infer_param(c, "weight", (struct gf_shape){1, {in->dims[in->rank - 1]}});
	gf_infer_elementwise(c, 4, 6);
	return 0;
}

const struct gf_layer_kind gf_layer_rmsnorm = {
	.inputs = {1, 1},
	.fields = layernorm_fields,
	.infer = infer_rmsnorm,
};

/* --- one input, the same shape ------------------------------------------- */

static int infer_relu(struct gf_infer *c)
{
	c->layer->out = c->layer->in;
	gf_infer_elementwise(c, 1, 1);
	return 0;
}

const struct gf_layer_kind gf_layer_relu = {
	.inputs = {1, 1},
	.fields = no_fields,
	.infer = infer_relu,
};

/* gelu, silu, tanh: a transcendental function, taken as 8 operations. */
static int infer_transcendental(struct gf_infer *c)
{
	c->layer->out = c->layer->in;
	gf_infer_elementwise(c, 8, 8);
	return 0;
}

const struct gf_layer_kind gf_layer_gelu = {
	.inputs = {1, 1},
	.fields = no_fields,
	.infer = infer_transcendental,
};

const struct gf_layer_kind gf_layer_silu = {
	.inputs = {1, 1},
	.fields = no_fields,
	.infer = infer_transcendental,
};

const struct gf_layer_kind gf_layer_tanh = {
	.inputs = {1, 1},
	.fields = no_fields,
	.infer = infer_transcendental,
};

static const struct gf_field dropout_fields[] = {
	{GF_MEMBER(rate, GF_FIELD_REAL, GF_DEFAULTED), .high = 0.999999, .absent = 0.5},
	{NULL},
};

const struct gf_layer_kind gf_layer_dropout = {
	.inputs = {1, 1}, .fields = dropout_fields, .infer = infer_relu, /* one operation, too */
};

/* --- several inputs ------------------------------------------------------ */

static int infer_pair(struct gf_infer *c, double backward)
{
	const struct gf_shape *a = gf_infer_input(c, 0);
	const struct gf_shape *b = gf_infer_input(c, 1);
	char first[96], second[96];

	if (memcmp(a, b, sizeof(*a)) != 0)
		return gf_infer_refuse(c, "from", "want two inputs of one shape, got %s and %s",
				       gf_shape_text(a, first), gf_shape_text(b, second));
	c->layer->out = *a;
	gf_infer_elementwise(c, 1, backward);
	return 0;
}

static int infer_add(struct gf_infer *c)
{
	return infer_pair(c, 1);
}

static int infer_mul(struct gf_infer *c)
{
	return infer_pair(c, 2);
}

const struct gf_layer_kind gf_layer_mul = {
	.inputs = {2, 2},
	.fields = no_fields,
	.infer = infer_mul,
};

const struct gf_layer_kind gf_layer_add = {
	.inputs = {2, 2},
	.fields = no_fields,
	.infer = infer_add,
};

static int infer_concat(struct gf_infer *c)
{
	struct gf_layer *l = c->layer;
	char first[96], other[96];

	l->out = l->in;
	for (size_t k = 1; k < l->ninputs; k++) {
		struct gf_shape next = *gf_infer_input(c, k);
		size_t added = next.dims[0];

		next.dims[0] = l->in.dims[0];
		if (memcmp(&next, &l->in, sizeof(next)) != 0)
			return gf_infer_refuse(c, "from",
					       "want inputs that differ in the first dimension "
					       "only, got %s and %s",
					       gf_shape_text(&l->in, first),
					       gf_shape_text(gf_infer_input(c, k), other));
		l->out.dims[0] += added;
	}
	gf_infer_elementwise(c, 0, 0);
	return 0;
}

const struct gf_layer_kind gf_layer_concat = {
	.inputs = {2, INT_MAX},
	.fields = no_fields,
	.infer = infer_concat,
};

/* --- patches -------------------------------------------------------------- */

/* An image becomes a sequence, its channels the features: a learned position comes before those of
 * the image, and each has something learned added to it. */
static int infer_patches(struct gf_infer *c)
{
	struct gf_layer *l = c->layer;
	const size_t features = l->in.dims[0];

	if (l->in.rank != 3)
		return gf_infer_refuse_shape(c, &l->in, "{C, H, W}");
	l->out = (struct gf_shape){2, {1 + l->in.dims[1] * l->in.dims[2], features}};
	gf_infer_param(c, "cls_token", (struct gf_shape){3, {1, 1, features}});
	gf_infer_param(c, "position_embeddings",
		       (struct gf_shape){3, {1, l->out.dims[0], features}});
	gf_infer_elementwise(c, 1, 1);
	return 0;
}

const struct gf_layer_kind gf_layer_patches = {
	.inputs = {1, 1},
	.fields = no_fields,
	.infer = infer_patches,
};

/* --- select -------------------------------------------------------------- */

static const struct gf_field select_fields[] = {
	{GF_MEMBER(position, GF_FIELD_SIZE, GF_REQUIRED), .high = GF_MAX_COUNT},
	{NULL},
};

static int infer_select(struct gf_infer *c)
{
	struct gf_layer *l = c->layer;

	if (l->in.rank != 2)
		return gf_infer_refuse_shape(c, &l->in, "{T, F}");
	if (l->position >= l->in.dims[0])
		return gf_infer_refuse(c, "position", "want an integer < %zu, got %zu",
				       l->in.dims[0], l->position);
	l->out = (struct gf_shape){1, {l->in.dims[1]}};
	gf_infer_elementwise(c, 0, 0);
	return 0;
}

const struct gf_layer_kind gf_layer_select = {
	.inputs = {1, 1},
	.fields = select_fields,
	.infer = infer_select,
};
