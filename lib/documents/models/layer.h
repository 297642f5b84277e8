/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MODELS_LAYER_H
#define GF_MODELS_LAYER_H

#include "documents/models/model.h"
#include "json/record.h"

/*
 * A type of layer: its keys, and the shapes, parameters and FLOPs that follow from them. A new type
 * is one struct gf_layer_kind and one row of GF_LAYERS. Private to lib/documents.
 */
struct gf_infer {
	const struct gf_json_at *at; /* the document */
	struct gf_model *model;
	struct gf_layer *layer;
	size_t index;    /* of the layer */
	size_t capacity; /* of the model's params */
	struct gf_error *err;
};

struct gf_layer_kind {
	struct {
		size_t least, most;
	} inputs;
	const struct gf_field *fields; /* beside name, type and from */
	bool lends_weight;             /* to layers that are tied to it */
	/* Sets out, the FLOPs, and adds parameters; in is set already. */
	int (*infer)(struct gf_infer *c);
};

#define GF_LAYER_KIND(NAME, name) extern const struct gf_layer_kind gf_layer_##name;
GF_LAYERS(GF_LAYER_KIND)

/* By enum gf_layer_type. */
extern const struct gf_layer_kind *const gf_layer_kinds[];

/* Helpers of infer callbacks. */
const struct gf_shape *gf_infer_input(const struct gf_infer *c, size_t k);
/* "<layer>.<suffix>" */
void gf_infer_param(struct gf_infer *c, const char *suffix, struct gf_shape shape);
/* "{3, 32, 32}" */
const char *gf_shape_text(const struct gf_shape *s, char out[96]);
int gf_infer_refuse(const struct gf_infer *c, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* "want an input {T, F}, got ..." */
int gf_infer_refuse_shape(const struct gf_infer *c, const struct gf_shape *got, const char *want);
/* Sets FLOPs of a layer of products. Backward makes the gradient of the weights and, unless nothing
 * before the layer is trained, that of its input: each costs as much as forward. */
void gf_infer_multiply(struct gf_infer *c, double forward);
/* Sets FLOPs of a layer without products: per element of its output. */
void gf_infer_elementwise(struct gf_infer *c, double forward, double backward);

#endif
