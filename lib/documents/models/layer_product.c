/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/models/layer.h"

#include <string.h>

/* Layers that multiply matrices, on flat inputs and on sequences {T, F}. */

#define AT(member) offsetof(struct gf_layer, member)

static int want_sequence(const struct gf_infer *c, const struct gf_shape *s)
{
	if (s->rank == 2)
		return 0;
	return gf_infer_refuse_shape(c, s, "{T, F}");
}

/* --- fc ------------------------------------------------------------------ */

static const struct gf_field fc_fields[] = {
	{"outputs", GF_FIELD_SIZE, .offset = AT(filters), .low = 1, .high = GF_MAX_COUNT},
	{GF_MEMBER(bias, GF_FIELD_BOOL, GF_DEFAULTED), .absent = 1},
	{GF_MEMBER(tied, GF_FIELD_STRING, GF_OMITTED)},
	{GF_MEMBER(frozen, GF_FIELD_BOOL, GF_OMITTED)},
	{NULL},
};

/* Finds the layer that `tied` names. Its weight must have the shape that this layer needs, and both
 * layers are trained or neither is. */
static int find_tied(const struct gf_infer *c, const struct gf_shape *weight)
{
	const struct gf_model *m = c->model;

	for (size_t i = 0; i < c->index; i++) {
		const struct gf_layer *l = &m->layers[i];

		if (strcmp(l->name, c->layer->tied) != 0 || !l->nparams ||
		    !gf_layer_kinds[l->type]->lends_weight ||
		    memcmp(&m->params[l->first_param].shape, weight, sizeof(*weight)) != 0)
			continue;
		if (l->frozen != c->layer->frozen)
			return gf_infer_refuse(
				c, "frozen",
				"want %s, as layer %.60s has it whose weight this one shares",
				l->frozen ? "true" : "false", l->name);
		c->layer->shared = l->first_param;
		return 0;
	}
	return gf_infer_refuse(
		c, "tied",
		"want an earlier fc or embedding with a weight of %zu x %zu, got \"%.60s\"",
		weight->dims[0], weight->dims[1], c->layer->tied);
}

static int infer_fc(struct gf_infer *c)
{
	struct gf_layer *l = c->layer;
	bool sequence = l->in.rank == 2;
	size_t inputs = sequence ? l->in.dims[1] : gf_shape_elems(&l->in);
	struct gf_shape weight = {2, {l->filters, inputs}};
	int rc;

	if (sequence)
		l->out = (struct gf_shape){2, {l->in.dims[0], l->filters}};
	else
		l->out = (struct gf_shape){1, {l->filters}};
	if (l->tied) {
		rc = find_tied(c, &weight);
		if (rc)
			return rc;
	} else {
		gf_infer_param(c, "weight", weight);
	}
	if (l->bias)
		gf_infer_param(c, "bias", (struct gf_shape){1, {l->filters}});
	gf_infer_multiply(c, 2.0 * (double)inputs * (double)gf_shape_elems(&l->out));
	return 0;
}

const struct gf_layer_kind gf_layer_fc = {
	.lends_weight = true,
	.inputs = {1, 1},
	.fields = fc_fields,
	.infer = infer_fc,
};

/* --- embedding ----------------------------------------------------------- */

static const struct gf_field embedding_fields[] = {
	{GF_MEMBER(entries, GF_FIELD_SIZE, GF_REQUIRED), .low = 1, .high = GF_MAX_COUNT},
	{"outputs", GF_FIELD_SIZE, .offset = AT(filters), .low = 1, .high = GF_MAX_COUNT},
	{GF_MEMBER(positional, GF_FIELD_BOOL, GF_OMITTED)},
	{GF_MEMBER(stretch, GF_FIELD_SIZE, GF_OMITTED), .absent = 1, .low = 1,
	 .high = GF_MAX_COUNT},
	{GF_MEMBER(frozen, GF_FIELD_BOOL, GF_OMITTED)},
	{NULL},
};

static int infer_embedding(struct gf_infer *c)
{
	struct gf_layer *l = c->layer;
	size_t rows;

	if (l->in.rank != 1)
		return gf_infer_refuse_shape(c, &l->in, "{T}");
	if (l->stretch > 1 && !l->positional)
		return gf_infer_refuse(c, "stretch", "want it with positional, got it without");
	rows = (l->in.dims[0] - 1) / l->stretch + 1;
	if (l->positional && l->entries < rows)
		return gf_infer_refuse(c, "entries", "want at least %zu, one per %s, got %zu", rows,
				       l->stretch > 1 ? "stretch of positions" : "position",
				       l->entries);
	l->out = (struct gf_shape){2, {l->in.dims[0], l->filters}};
	gf_infer_param(c, "weight", (struct gf_shape){2, {l->entries, l->filters}});
	gf_infer_elementwise(c, 0, 1); /* a look-up; backward adds rows */
	return 0;
}

const struct gf_layer_kind gf_layer_embedding = {
	.lends_weight = true,
	.inputs = {1, 1},
	.fields = embedding_fields,
	.infer = infer_embedding,
};

/* --- attention ----------------------------------------------------------- */

static const struct gf_field attention_fields[] = {
	{GF_MEMBER(heads, GF_FIELD_SIZE, GF_REQUIRED), .low = 1, .high = GF_MAX_COUNT},
	{GF_MEMBER(kv_heads, GF_FIELD_SIZE, GF_OMITTED), .low = 1, .high = GF_MAX_COUNT},
	{GF_MEMBER(causal, GF_FIELD_BOOL, GF_OMITTED)},
	{GF_MEMBER(rotary, GF_FIELD_BOOL, GF_OMITTED)},
	{NULL},
};

/* Keys and values of all heads, or of some that several heads share. */
static int check_inputs(const struct gf_infer *c)
{
	const struct gf_layer *l = c->layer;
	struct gf_shape want = *gf_infer_input(c, 0);
	int rc;

	if (l->rotary && l->ninputs == 1)
		return gf_infer_refuse(c, "rotary", "want three inputs, got 1");
	if (l->kv_heads && (l->ninputs == 1 || l->heads % l->kv_heads))
		return gf_infer_refuse(c, "kv_heads",
				       "want three inputs, and a divisor of %zu, got %zu and %zu",
				       l->heads, l->ninputs, l->kv_heads);
	for (size_t k = 0; k < l->ninputs; k++) {
		rc = want_sequence(c, gf_infer_input(c, k));
		if (rc)
			return rc;
		if (k == 1 && l->kv_heads)
			want.dims[1] = want.dims[1] * l->kv_heads / l->heads;
		if (memcmp(&want, gf_infer_input(c, k), sizeof(want)) != 0)
			return gf_infer_refuse(c, "from",
					       "want three inputs of one shape, got others");
	}
	return 0;
}

/* softmax(Q K' / sqrt(F / heads)) V, of three inputs {T, F}, or of one {T, 3F}
 * in which they stand side by side. */
static int infer_attention(struct gf_infer *c)
{
	struct gf_layer *l = c->layer;
	const struct gf_shape *first = gf_infer_input(c, 0);
	int rc = check_inputs(c);
	size_t features;
	double t, f;

	if (rc)
		return rc;
	if (l->ninputs == 2)
		return gf_infer_refuse(c, "from",
				       "want 3 names for attention, or 1 for all three, got 2");
	if (l->ninputs == 1 && first->dims[1] % 3)
		return gf_infer_refuse(c, "from",
				       "want 3 names for attention, or 1 whose features are a "
				       "multiple of 3, got %zu",
				       first->dims[1]);
	features = l->ninputs == 1 ? first->dims[1] / 3 : first->dims[1];
	if (features % l->heads)
		return gf_infer_refuse(c, "heads", "want a divisor of %zu, got %zu", features,
				       l->heads);
	l->out = (struct gf_shape){2, {first->dims[0], features}};
	t = (double)first->dims[0];
	f = (double)features;
	/* two products of t*t*f, a softmax of 5 operations per score; a mask is not counted */
	l->forward_flops = 4 * t * t * f + 5 * (double)l->heads * t * t;
	if (l->rotary) /* two products and a sum per query, and per key */
		l->forward_flops += 3 * t * (f + (double)gf_infer_input(c, 1)->dims[1]);
	l->backward_flops = 2 * l->forward_flops;
	return 0;
}

const struct gf_layer_kind gf_layer_attention = {
	.inputs = {1, 3},
	.fields = attention_fields,
	.infer = infer_attention,
};

/* --- lstm ---------------------------------------------------------------- */

static const struct gf_field lstm_fields[] = {
	{"outputs", GF_FIELD_SIZE, .offset = AT(filters), .low = 1, .high = GF_MAX_COUNT},
	{NULL},
};

/* Four gates; two biases, as in cuDNN and PyTorch. */
static int infer_lstm(struct gf_infer *c)
{
	struct gf_layer *l = c->layer;
	size_t gates = 4 * l->filters;
	int rc = want_sequence(c, &l->in);

	if (rc)
		return rc;
	l->out = (struct gf_shape){2, {l->in.dims[0], l->filters}};
	gf_infer_param(c, "weight_ih", (struct gf_shape){2, {gates, l->in.dims[1]}});
	gf_infer_param(c, "weight_hh", (struct gf_shape){2, {gates, l->filters}});
	gf_infer_param(c, "bias_ih", (struct gf_shape){1, {gates}});
	gf_infer_param(c, "bias_hh", (struct gf_shape){1, {gates}});
	gf_infer_multiply(c, 2.0 * (double)gates * (double)(l->in.dims[1] + l->filters) *
				     (double)l->in.dims[0]);
	return 0;
}

const struct gf_layer_kind gf_layer_lstm = {
	.inputs = {1, 1},
	.fields = lstm_fields,
	.infer = infer_lstm,
};
