/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/documents/models: layers of models, with the shapes, tensors and operations that follow from
 * them. */
#ifndef GF_MODELS_MODEL_H
#define GF_MODELS_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "json/json.h"

/*
 * gf-model: an architecture (gf-model(5)). Layers stand in forward order; each reads earlier layers
 * (two for add), "input" being the sample. Shapes are per sample: {C, H, W}, {F} when flat, {T, F}
 * for a sequence of T positions.
 *
 * gf_model_read also infers every layer's output shape, parameters and FLOPs (multiply and add
 * counted as two), so that a planner needs no lib/nn.
 */
#define GF_MODEL_MAX_RANK 4

struct gf_shape {
	size_t rank;
	size_t dims[GF_MODEL_MAX_RANK];
};
size_t gf_shape_elems(const struct gf_shape *s);

/* The types of layers, in the order of all tables of them: those that are computed, and those that
 * are for estimates and have no backend. */
#define GF_COMPUTED_LAYERS(ROW)                                                                    \
	ROW(CONV, conv)                                                                            \
	ROW(BATCHNORM, batchnorm)                                                                  \
	ROW(RELU, relu)                                                                            \
	ROW(MAXPOOL, maxpool)                                                                      \
	ROW(AVGPOOL, avgpool)       /* the mean of the window, padding counted */                  \
	ROW(GLOBALPOOL, globalpool) /* average over H and W: {C} */                                \
	ROW(FC, fc)                 /* flattens {C, H, W}; per position on {T, F} */               \
	ROW(ADD, add)                                                                              \
	ROW(CONCAT, concat) /* along the first dimension */                                        \
	ROW(DROPOUT, dropout)                                                                      \
	ROW(LAYERNORM, layernorm) /* over the last dimension */                                    \
	ROW(GELU, gelu)                                                                            \
	ROW(TANH, tanh)                                                                            \
	ROW(EMBEDDING, embedding) /* {T} numbers to {T, outputs} */                                \
	ROW(ATTENTION, attention) /* of queries, keys, values: three {T, F}, or one {T, 3F} */     \
	ROW(SELECT, select)       /* one position of {T, F}: {F} */                                \
	ROW(LSTM, lstm)           /* {T, F} to {T, outputs} */
#define GF_LAYERS(ROW)                                                                             \
	GF_COMPUTED_LAYERS(ROW)                                                                    \
	ROW(RMSNORM, rmsnorm)                                                                      \
	ROW(SILU, silu)                                                                            \
	ROW(MUL, mul)                                                                              \
	ROW(PATCHES, patches) /* {C, H, W} to {1 + H * W, C} */

#define GF_LAYER_NUMBER(NAME, name) GF_LAYER_##NAME,
enum gf_layer_type { GF_LAYERS(GF_LAYER_NUMBER) };
extern const char *const gf_layer_type_names[]; /* NULL-terminated */

/* A parameter tensor of a layer: "<layer>.weight", "<layer>.bias", ... */
struct gf_param {
	char *name;
	struct gf_shape shape;
	size_t layer; /* index of its layer */
};

struct gf_layer {
	char *name;
	enum gf_layer_type type;
	int from[2]; /* layer index, -1 the input; from[1] for add, else -2 */
	int *inputs; /* all of them; from repeats the first two */
	size_t ninputs;
	/* conv, pools: windows are kernel high and kernel_w wide */
	size_t filters; /* conv: output channels; fc, embedding, lstm: outputs */
	size_t kernel, kernel_w, stride, pad, pad_w, groups;
	bool bias;
	bool frozen;              /* conv, fc, embedding: parameters stay as they begin */
	double epsilon, momentum; /* batchnorm: running = (1 - momentum) * running + momentum * of
				   * this batch */
	double rate;              /* dropout: the share that becomes 0 */
	size_t entries;           /* embedding: rows of the table */
	bool positional;          /* embedding: of positions, not of numbers */
	size_t stretch;           /* positional: neighbours that share a row */
	size_t heads;             /* attention: divides F */
	size_t kv_heads;          /* of keys and values, if these are fewer; or 0 */
	bool rotary;              /* attention: queries and keys turn by their position */
	bool causal;              /* attention: not to later positions */
	size_t position;          /* select */
	char *tied;               /* fc: the earlier layer whose weight it uses; or NULL */
	size_t shared;            /* inferred: of the params, that weight, if tied */
	struct gf_shape in, out;  /* inferred; in: of the first input */
	size_t first_param, nparams;          /* in the model's params */
	bool trained;                         /* inferred: something at or before it is trained */
	double forward_flops, backward_flops; /* per sample */
	char *extra;
};

struct gf_model {
	char *producer;
	char *name;
	struct gf_shape input;
	size_t classes; /* last dimension of the last layer's output */
	struct gf_layer *layers;
	size_t nlayers;
	struct gf_param *params; /* forward (registration) order */
	size_t nparams;
	size_t ntrained; /* of the params: those of layers not frozen */
	char *extra;
};

int gf_model_read(const struct gf_json *root, const char *file, struct gf_model *m,
		  struct gf_error *err);
char *gf_model_write(const struct gf_model *m);
void gf_model_release(struct gf_model *m);

/* Generation order: the i-th gradient that backward makes is parameter order[i]. Layers last to
 * first; inside a layer bias before weight (the reverse of registration). The m->ntrained
 * parameters with a gradient come first, then those of frozen layers in the same order. Caller
 * frees. */
size_t *gf_model_generation_order(const struct gf_model *m);
size_t gf_model_param_count(const struct gf_model *m); /* elements */

/* What a layer computes with: the weight it shares, if it is tied, then its own parameters.
 * gf_layer_uses counts them; the i-th is m->params[gf_layer_use]. A shared weight is one tensor, of
 * the earlier layer: its gradient is the sum of all uses, and complete with that layer's, the last
 * one in backward. */
size_t gf_layer_uses(const struct gf_layer *l);
size_t gf_layer_use(const struct gf_layer *l, size_t i);

struct gf_model_profile;
/*
 * What forward keeps for backward beside parameters, in bytes per layer: as PyTorch's autograd, by
 * the table in activations.c, in values of element_bytes. A value that several layers keep is
 * counted once, for the first of them in forward, whose backward is the last to want it. What the
 * loss keeps counts with the last layer, and before the first trained layer nothing is kept.
 */
void gf_model_activations(const struct gf_model *m, size_t batch, size_t element_bytes,
			  double *bytes);
/* Gives bytes per layer to the tensors of m's profile: a layer's own to the last of its tensors in
 * generation order, a layer's without trained tensors to those of the nearest layer before it that
 * has some. */
void gf_model_keep(const struct gf_model *m, const double *bytes, struct gf_model_profile *p);

/* Labels that a sample has: one per position of the last layer's output. */
size_t gf_model_positions(const struct gf_model *m);
/* What stands for the label of a position that has none. */
#define GF_NO_LABEL INT32_MIN
/* If samples are word numbers, which an embedding looks up: all lie below this; 0 if samples are
 * values. */
size_t gf_model_vocabulary(const struct gf_model *m);

#endif
