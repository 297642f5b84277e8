/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/models/model.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/array.h"
#include "base/heap.h"
#include "documents/models/layer.h"
#include "documents/shared_records.h"
#include "json/record.h"
#include "json/record_schema.h"

/* Tensors, each of which a few bytes of a document make. */
#define PARAMS_MOST 20000

size_t gf_shape_elems(const struct gf_shape *s)
{
	size_t product = 1, i;

	for (i = 0; i < s->rank; i++)
		product *= s->dims[i];
	return product;
}

/* --- inference ----------------------------------------------------------- */

const char *gf_shape_text(const struct gf_shape *s, char out[96])
{
	size_t used = 0, i;

	for (i = 0; i < s->rank; i++)
		used += (size_t)snprintf(out + used, 96 - used, "%s%zu", i ? ", " : "{",
					 s->dims[i]);
	snprintf(out + used, 96 - used, "}");
	return out;
}

const struct gf_shape *gf_infer_input(const struct gf_infer *c, size_t k)
{
	int from = c->layer->inputs[k];

	return from < 0 ? &c->model->input : &c->model->layers[from].out;
}

void gf_infer_param(struct gf_infer *c, const char *suffix, struct gf_shape shape)
{
	struct gf_param *p = gf_array_push(&c->model->params, &c->model->nparams, &c->capacity);

	p->name = gf_xasprintf("%s.%s", c->layer->name, suffix);
	p->shape = shape;
	p->layer = c->index;
	c->layer->nparams++;
}

int gf_infer_refuse(const struct gf_infer *c, const char *key, const char *fmt, ...)
{
	char place[64], reason[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	snprintf(place, sizeof(place), "layers/%zu%s%s", c->index, key ? "/" : "", key ? key : "");
	return gf_json_refuse(c->at, place, c->err, "%s", reason);
}

int gf_infer_refuse_shape(const struct gf_infer *c, const struct gf_shape *got, const char *want)
{
	char shape[96];

	return gf_infer_refuse(c, NULL, "want an input %s, got %s", want,
			       gf_shape_text(got, shape));
}

void gf_infer_multiply(struct gf_infer *c, double forward)
{
	const int from = c->layer->inputs[0];
	const bool trained_before = from >= 0 && c->model->layers[from].trained;

	c->layer->forward_flops = forward;
	c->layer->backward_flops = forward * (trained_before ? 2 : 1);
}

void gf_infer_elementwise(struct gf_infer *c, double forward, double backward)
{
	double elems = (double)gf_shape_elems(&c->layer->out);

	c->layer->forward_flops = forward * elems;
	c->layer->backward_flops = backward * elems;
}

/* Keeps products of shapes far from overflow. */
static bool too_large(const struct gf_shape *s)
{
	double product = 1;

	for (size_t i = 0; i < s->rank; i++)
		product *= (double)s->dims[i];
	return product > 0x1p44;
}

/* A frozen layer hands no gradient on, so nothing trained may lie before. */
static int infer_training(struct gf_infer *c)
{
	struct gf_layer *l = c->layer;
	bool before = false;

	for (size_t i = 0; i < l->ninputs; i++)
		if (l->inputs[i] >= 0)
			before |= c->model->layers[l->inputs[i]].trained;
	if (l->frozen && before)
		return gf_infer_refuse(
			c, "frozen",
			"want all layers before it frozen, too, got one that is trained");
	l->trained = before || (gf_layer_uses(l) && !l->frozen);
	if (!l->trained)
		l->backward_flops = 0;
	if (!l->frozen)
		c->model->ntrained += l->nparams;
	return 0;
}

static int infer_layer(struct gf_infer *c)
{
	struct gf_layer *l = c->layer;
	char shape[96];
	int rc;

	l->in = *gf_infer_input(c, 0);
	l->first_param = c->model->nparams;
	rc = gf_layer_kinds[l->type]->infer(c);
	rc = rc ?: infer_training(c);
	if (rc)
		return rc;
	if (c->model->nparams > PARAMS_MOST)
		return gf_infer_refuse(
			c, NULL, "want at most %d tensors of parameters in all layers, got more",
			PARAMS_MOST);
	if (too_large(&l->out))
		return gf_infer_refuse(c, NULL, "want an output of at most 2^44 elements, got %s",
				       gf_shape_text(&l->out, shape));
	for (size_t i = 0; i < l->nparams; i++) {
		const struct gf_shape *s = &c->model->params[l->first_param + i].shape;

		if (too_large(s))
			return gf_infer_refuse(c, NULL,
					       "want parameters of at most 2^44 elements, got %s",
					       gf_shape_text(s, shape));
	}
	return 0;
}

static int infer(const struct gf_json_at *at, struct gf_model *m, struct gf_error *err)
{
	struct gf_infer c = {.at = at, .model = m, .err = err};
	const struct gf_shape *out;
	char shape[96];
	int rc = 0;

	for (c.index = 0; c.index < m->nlayers && !rc; c.index++) {
		c.layer = &m->layers[c.index];
		rc = infer_layer(&c);
	}
	if (rc)
		return rc;
	out = &c.layer->out;
	if (out->rank > 2 || out->dims[out->rank - 1] != m->classes)
		return gf_json_refuse(at, "classes", err,
				      "want the last layer's outputs, %s, got %zu",
				      gf_shape_text(out, shape), m->classes);
	return 0;
}

/* --- the document -------------------------------------------------------- */

static int finish(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	struct gf_model *m = item;

	if (too_large(&m->input))
		return gf_json_refuse(at, "input", err, "want at most 2^44 elements, got more");
	return infer(at, m, err);
}

static int read_shape(struct gf_json_at *at, const char *key, void *place, struct gf_error *err)
{
	struct gf_shape *s = place;
	struct gf_json_at row;
	int rc = gf_json_array(at, key, &row, &s->rank, err);

	if (rc)
		return rc;
	if (s->rank < 1 || s->rank > 3)
		return gf_json_refuse(at, key, err, "want 1 to 3 dimensions, got %zu", s->rank);
	for (size_t i = 0; i < s->rank && !rc; i++)
		rc = gf_json_size(gf_json_item(&row, i), NULL, 1, (size_t)GF_MAX_COUNT, &s->dims[i],
				  err);
	return rc;
}

static void write_shape(struct gf_json_writer *w, const char *key, const void *place)
{
	const struct gf_shape *s = place;

	gf_json_open_row(w, key);
	for (size_t i = 0; i < s->rank; i++)
		gf_json_put_size(w, NULL, s->dims[i]);
	gf_json_close_array(w);
}

static void shape_schema(struct gf_text *out)
{
	gf_text_addf(out, "{\"type\": \"array\", \"minItems\": 1, \"maxItems\": 3, \"items\": ");
	gf_schema_size(1, GF_MAX_COUNT, out);
	gf_text_addf(out, "}");
}

static const struct gf_field_own own_shape = {
	.read = read_shape,
	.write = write_shape,
	.schema = shape_schema,
};

#define AT(member) offsetof(struct gf_model, member)
static const struct gf_field model_fields[] = {
	{GF_MEMBER(producer, GF_FIELD_STRING, GF_OMITTED)},
	{GF_MEMBER(name, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(input, GF_FIELD_OWN, GF_REQUIRED), .own = &own_shape},
	{GF_MEMBER(classes, GF_FIELD_SIZE, GF_REQUIRED), .low = 1, .high = GF_MAX_COUNT},
	{"layers", GF_FIELD_OWN, .own = &gf_model_layers_own},
	{NULL},
};

static const struct gf_record model_record = {
	GF_RECORD(struct gf_model, model_fields),
	.finish = finish,
};

const struct gf_document_format gf_document_model = {
	.name = "gf-model",
	.description = "the layers of a network",
	.record = &model_record,
};

int gf_model_read(const struct gf_json *root, const char *file, struct gf_model *m,
		  struct gf_error *err)
{
	return gf_document_read(root, file, &gf_document_model, m, err);
}

char *gf_model_write(const struct gf_model *m)
{
	return gf_document_write(&gf_document_model, m);
}

void gf_model_release(struct gf_model *m)
{
	gf_record_release(&model_record, m);
}

size_t *gf_model_generation_order(const struct gf_model *m)
{
	size_t *order = gf_xcalloc(m->nparams + 1, sizeof(*order)), i;
	size_t trained = 0, frozen = m->ntrained;

	for (i = m->nparams; i-- > 0;)
		order[m->layers[m->params[i].layer].frozen ? frozen++ : trained++] = i;
	return order;
}

size_t gf_model_param_count(const struct gf_model *m)
{
	size_t sum = 0, i;

	for (i = 0; i < m->nparams; i++)
		sum += gf_shape_elems(&m->params[i].shape);
	return sum;
}

size_t gf_layer_uses(const struct gf_layer *l)
{
	return l->nparams + (l->tied != NULL);
}

size_t gf_layer_use(const struct gf_layer *l, size_t i)
{
	if (!l->tied)
		return l->first_param + i;
	return i == 0 ? l->shared : l->first_param + i - 1;
}

size_t gf_model_positions(const struct gf_model *m)
{
	return gf_shape_elems(&m->layers[m->nlayers - 1].out) / m->classes;
}

size_t gf_model_vocabulary(const struct gf_model *m)
{
	size_t entries = 0, i, k;

	for (i = 0; i < m->nlayers; i++) {
		const struct gf_layer *l = &m->layers[i];

		if (l->type != GF_LAYER_EMBEDDING || l->positional)
			continue;
		for (k = 0; k < l->ninputs; k++)
			if (l->inputs[k] < 0 && (entries == 0 || l->entries < entries))
				entries = l->entries;
	}
	return entries;
}
