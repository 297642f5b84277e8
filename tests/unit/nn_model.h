/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_NN_MODEL_H
#define GF_TESTS_NN_MODEL_H

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "doc/model.h"

/* Until lib/doc reads models. */
#define WEAK __attribute__((weak))
WEAK const char *const gf_layer_type_names[] = {
	"conv",       "batchnorm", "relu", "maxpool", "avgpool",
	"globalpool", "fc",        "add",  NULL};
WEAK size_t gf_shape_elems(const struct gf_shape *s)
{
	size_t n = 1;

	for (size_t d = 0; d < s->rank; d++)
		n *= s->dims[d];
	return n;
}
WEAK size_t gf_model_param_count(const struct gf_model *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->nparams; i++)
		n += gf_shape_elems(&m->params[i].shape);
	return n;
}
WEAK size_t *gf_model_generation_order(const struct gf_model *m)
{
	size_t *order = gf_xcalloc(m->nparams + 1, sizeof(*order)), n = 0;

	for (size_t l = m->nlayers; l-- > 0;)
		for (size_t i = m->layers[l].nparams; i-- > 0;)
			order[n++] = m->layers[l].first_param + i;
	return order;
}
WEAK void gf_model_release(struct gf_model *m)
{
	for (size_t i = 0; i < m->nlayers; i++)
		free(m->layers[i].name);
	for (size_t i = 0; i < m->nparams; i++)
		free(m->params[i].name);
	free(m->layers);
	free(m->params);
	free(m->name);
}

/*
 * Small models for the tests of lib/nn, from one line per layer. a and b are
 * the layer's inputs, counted from 1; a = 0 is the layer before it.
 */
#define INPUT (-1)

struct spec {
	enum gf_layer_type type;
	int a, b;
	size_t filters, kernel, stride, pad, groups;
	bool no_bias;
};

static struct gf_shape window_shape(const struct gf_layer *l, size_t channels)
{
	struct gf_shape s = {3, {channels, 0, 0, 0}};

	for (int d = 1; d < 3; d++)
		s.dims[d] =
			(l->in.dims[d] + 2 * l->pad - l->kernel) / l->stride +
			1;
	return s;
}

static void add_param(struct gf_model *m, size_t layer, const char *name,
		      struct gf_shape shape)
{
	m->params =
		gf_xreallocarray(m->params, m->nparams + 1, sizeof(*m->params));
	m->params[m->nparams++] = (struct gf_param){
		.name = gf_xasprintf("%s.%s", m->layers[layer].name, name),
		.shape = shape,
		.layer = layer,
	};
	m->layers[layer].nparams++;
}

static void infer_layer(struct gf_model *m, size_t i)
{
	struct gf_layer *l = &m->layers[i];
	struct gf_shape flat = {1, {l->in.dims[0], 0, 0, 0}};
	struct gf_shape filters = {1, {l->filters, 0, 0, 0}};

	l->out = l->in;
	if (l->type == GF_LAYER_CONV) {
		struct gf_shape w = {4,
				     {l->filters, l->in.dims[0] / l->groups,
				      l->kernel, l->kernel}};
		l->out = window_shape(l, l->filters);
		add_param(m, i, "weight", w);
	} else if (l->type == GF_LAYER_FC) {
		struct gf_shape w = {
			2, {l->filters, gf_shape_elems(&l->in), 0, 0}};
		l->out = filters;
		add_param(m, i, "weight", w);
	} else if (l->type == GF_LAYER_BATCHNORM) {
		add_param(m, i, "weight", flat);
		add_param(m, i, "bias", flat);
	} else if (l->type == GF_LAYER_MAXPOOL || l->type == GF_LAYER_AVGPOOL) {
		l->out = window_shape(l, l->in.dims[0]);
	} else if (l->type == GF_LAYER_GLOBALPOOL) {
		l->out = flat;
	}
	if (l->bias)
		add_param(m, i, "bias", filters);
}

static void add_layer(struct gf_model *m, const struct spec *s)
{
	size_t i = m->nlayers++;
	bool weights = s->type == GF_LAYER_CONV || s->type == GF_LAYER_FC;
	struct gf_layer *l;

	m->layers = gf_xreallocarray(m->layers, i + 1, sizeof(*m->layers));
	l = &m->layers[i];
	*l = (struct gf_layer){
		.name = gf_xasprintf("%s%zu", gf_layer_type_names[s->type], i),
		.type = s->type,
		.from = {s->a > 0   ? s->a - 1
			 : s->a < 0 ? -1
				    : (int)i - 1,
			 s->type == GF_LAYER_ADD ? s->b > 0 ? s->b - 1 : -1
						 : -2},
		.filters = s->filters,
		.kernel = s->kernel ? s->kernel : 1,
		.stride = s->stride ? s->stride : 1,
		.pad = s->pad,
		.groups = s->groups ? s->groups : 1,
		.bias = weights && !s->no_bias,
		.epsilon = 1e-5,
		.momentum = 0.1,
		.first_param = m->nparams,
	};
	l->in = l->from[0] < 0 ? m->input : m->layers[l->from[0]].out;
	infer_layer(m, i);
}

static struct gf_model *build_model(const size_t input[3],
				    const struct spec *specs, size_t count)
{
	struct gf_model *m = gf_xcalloc(1, sizeof(*m));

	m->name = gf_xstrdup("test");
	m->input.rank = input[1] ? 3 : 1;
	memcpy(m->input.dims, input, 3 * sizeof(*input));
	for (size_t i = 0; i < count; i++)
		add_layer(m, &specs[i]);
	m->classes = gf_shape_elems(&m->layers[count - 1].out);
	return m;
}

static void free_model(struct gf_model *m)
{
	gf_model_release(m);
	free(m);
}

#endif
