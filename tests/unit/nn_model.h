/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_NN_MODEL_H
#define GF_TESTS_NN_MODEL_H

#include "test.h"

#include "base/heap.h"
#include "base/text.h"
#include "documents/models/model.h"

/*
 * Small models for the tests of lib/nn: one line per layer, made into a document that gf_model_read
 * reads. Layers are named after their type and place. a, b and c are the layer's inputs, counted
 * from 1; a = 0 is the layer before it, b and c = 0 is none.
 */
#define INPUT (-1)

#define CONV       .type = GF_LAYER_CONV
#define FC         .type = GF_LAYER_FC
#define NORM       .type = GF_LAYER_BATCHNORM
#define RELU       .type = GF_LAYER_RELU
#define MAXPOOL    .type = GF_LAYER_MAXPOOL
#define AVGPOOL    .type = GF_LAYER_AVGPOOL
#define GLOBALPOOL .type = GF_LAYER_GLOBALPOOL
#define ADD        .type = GF_LAYER_ADD
#define CONCAT     .type = GF_LAYER_CONCAT
#define DROPOUT    .type = GF_LAYER_DROPOUT
#define LAYERNORM  .type = GF_LAYER_LAYERNORM
#define GELU       .type = GF_LAYER_GELU
#define TANH       .type = GF_LAYER_TANH
#define EMBEDDING  .type = GF_LAYER_EMBEDDING
#define ATTENTION  .type = GF_LAYER_ATTENTION
#define SELECT     .type = GF_LAYER_SELECT
#define LSTM       .type = GF_LAYER_LSTM

struct spec {
	enum gf_layer_type type;
	int a, b, c;
	size_t filters, kernel, stride, pad, groups;
	size_t kernel_w, pad_w; /* if not square */
	bool no_bias, causal, positional;
	size_t entries, heads, position, stretch;
	int tied; /* fc: to this layer, counted from 1; 0: to none */
	double rate;
};

static void put_input(struct gf_text *t, const struct spec *specs, int from)
{
	if (from < 0)
		gf_text_addf(t, "\"input\"");
	else
		gf_text_addf(t, "\"%s%d\"", gf_layer_type_names[specs[from - 1].type], from - 1);
}

static void put_inputs(struct gf_text *t, const struct spec *specs, size_t i)
{
	const struct spec *s = &specs[i];
	int before = i ? (int)i : INPUT;

	gf_text_addf(t, ", \"from\": [");
	put_input(t, specs, s->a ? s->a : before);
	if (s->b) {
		gf_text_addf(t, ", ");
		put_input(t, specs, s->b);
	}
	if (s->c) {
		gf_text_addf(t, ", ");
		put_input(t, specs, s->c);
	}
	gf_text_addf(t, "]");
}

static void put_window(struct gf_text *t, const struct spec *s)
{
	size_t kernel = s->kernel ? s->kernel : 1;

	gf_text_addf(t, ", \"kernel\": [%zu, %zu], \"stride\": %zu", kernel,
		     s->kernel_w ? s->kernel_w : kernel, s->stride ? s->stride : 1);
	gf_text_addf(t, ", \"pad\": [%zu, %zu]", s->pad, s->kernel_w ? s->pad_w : s->pad);
}

static void put_layer(struct gf_text *t, const struct spec *specs, size_t i)
{
	const struct spec *s = &specs[i];
	const char *type = gf_layer_type_names[s->type];

	gf_text_addf(t, "%s{\"name\": \"%s%zu\", \"type\": \"%s\"", i ? ", " : "", type, i, type);
	put_inputs(t, specs, i);
	if (s->type == GF_LAYER_CONV || s->type == GF_LAYER_MAXPOOL || s->type == GF_LAYER_AVGPOOL)
		put_window(t, s);
	if (s->type == GF_LAYER_CONV)
		gf_text_addf(t, ", \"filters\": %zu, \"groups\": %zu", s->filters,
			     s->groups ? s->groups : 1);
	if (s->type == GF_LAYER_FC || s->type == GF_LAYER_EMBEDDING || s->type == GF_LAYER_LSTM)
		gf_text_addf(t, ", \"outputs\": %zu", s->filters);
	if (s->type == GF_LAYER_EMBEDDING)
		gf_text_addf(t, ", \"entries\": %zu, \"positional\": %s", s->entries,
			     s->positional ? "true" : "false");
	if (s->stretch)
		gf_text_addf(t, ", \"stretch\": %zu", s->stretch);
	if (s->tied) {
		gf_text_addf(t, ", \"tied\": ");
		put_input(t, specs, s->tied);
	}
	if (s->type == GF_LAYER_ATTENTION)
		gf_text_addf(t, ", \"heads\": %zu, \"causal\": %s", s->heads,
			     s->causal ? "true" : "false");
	if (s->type == GF_LAYER_SELECT)
		gf_text_addf(t, ", \"position\": %zu", s->position);
	if (s->type == GF_LAYER_DROPOUT)
		gf_text_addf(t, ", \"rate\": %g", s->rate);
	if (s->type == GF_LAYER_CONV || s->type == GF_LAYER_FC)
		gf_text_addf(t, ", \"bias\": %s", s->no_bias ? "false" : "true");
	gf_text_addf(t, "}");
}

static struct gf_model *read_model(const char *text)
{
	struct gf_model *m = gf_xcalloc(1, sizeof(*m));
	struct gf_error err = {""};
	struct gf_json *root = NULL;

	if (gf_json_parse(text, strlen(text), "model", &root, &err) ||
	    gf_model_read(root, "model", m, &err)) {
		printf("%s\n%s\n", err.text, text);
		exit(1);
	}
	gf_json_free(root);
	return m;
}

/* The layers end before the first empty spec, or after `most`. input: {channels, height, width},
 * {positions, features} or {values}. The classes are the last layer's last dimension. */
static struct gf_model *build_model(const size_t input[3], const struct spec *specs, size_t most)
{
	static const struct spec none;
	struct gf_text t = {0};
	struct gf_model *m;
	size_t count = 0;

	while (count < most && memcmp(&specs[count], &none, sizeof(none)) != 0)
		count++;
	gf_text_addf(&t,
		     "{\"format\": \"gf-model\", \"version\": 1, \"name\": \"test\", \"input\": [");
	for (size_t d = 0; d < 3 && input[d]; d++)
		gf_text_addf(&t, "%s%zu", d ? ", " : "", input[d]);
	gf_text_addf(&t, "], \"classes\": %zu, \"layers\": [", specs[count - 1].filters);
	for (size_t i = 0; i < count; i++)
		put_layer(&t, specs, i);
	gf_text_addf(&t, "]}");
	m = read_model(t.data);
	gf_text_release(&t);
	return m;
}

static void free_model(struct gf_model *m)
{
	gf_model_release(m);
	free(m);
}

#endif
