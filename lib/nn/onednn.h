/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_NN_ONEDNN_H
#define GF_NN_ONEDNN_H

#include <stdbool.h>
#include <stddef.h>

#include "nn/graph.h"
#include "nn/onednn_version.h"

/*
 * A model as two lists of oneDNN primitives, forward and backward, for one batch size and one mode,
 * with every memory object made beforehand: a pass only walks the lists (private to the onednn
 * files of lib/nn).
 *
 * Building keeps the first error: after it every function does nothing and gives harmless values,
 * so that a layer's builder reads straight on and the driver looks once at the end.
 *
 * A value (a layer's output) keeps the layout that suits its producer best, and its gradient has
 * the same; a consumer that needs another layout gets a reorder.
 *
 * All values are f32. In bf16 the factors of products are rounded, by reorders before them, and
 * their sums are f32.
 *
 * Memory descriptions live until the build ends, as those of primitives do.
 */
#define GF_ONEDNN_MAX_ARGS 12

struct gf_onednn_value {
	const_dnnl_memory_desc_t md;
	dnnl_memory_t data;
	dnnl_memory_t gradient; /* NULL until a consumer gave one */
};

struct gf_onednn;

/* Either a primitive, or a plain function of a layer. */
struct gf_onednn_op {
	dnnl_primitive_t primitive;
	dnnl_exec_arg_t args[GF_ONEDNN_MAX_ARGS];
	int nargs;
	void (*call)(struct gf_onednn *p, size_t layer);
	size_t layer;
};

struct gf_onednn_ops {
	struct gf_onednn_op *items;
	size_t count, capacity;
};

/* The caller's arrays, known only when a pass begins. */
enum gf_onednn_base {
	GF_ONEDNN_INPUT,
	GF_ONEDNN_PARAMS,
	GF_ONEDNN_GRADS,
	GF_ONEDNN_NBASES,
};

struct gf_onednn_binding {
	dnnl_memory_t memory;
	enum gf_onednn_base base;
	size_t at; /* elements */
};

struct gf_onednn_copy {
	dnnl_memory_t from, to;
	const_dnnl_memory_desc_t md; /* of to */
};

struct gf_onednn {
	struct gf_net *net;
	size_t batch;
	bool training;
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	struct gf_onednn_ops forward, backward;

	struct gf_onednn_value input;
	struct gf_onednn_value **values;      /* per layer; a fused ReLU shares its producer's */
	bool *fused;                          /* this ReLU runs inside its producer */
	dnnl_primitive_desc_t *hints;         /* of each layer's forward, borrowed */
	dnnl_memory_t *weight;                /* of each layer, as the caller has it */
	dnnl_memory_t *workspace;             /* pools, batch norm with ReLU */
	dnnl_memory_t *mean, *variance;       /* norms */
	struct gf_onednn_plain_layer **plain; /* of onednn_plain.c */

	const float *base[GF_ONEDNN_NBASES]; /* what is bound now */
	struct gf_onednn_binding *bindings;
	size_t nbindings, bindings_capacity;
	struct gf_onednn_copy *copies; /* reorders made so far */
	size_t ncopies, copies_capacity;
	dnnl_memory_t *memories;
	size_t nmemories, memories_capacity;
	/* Until the build ends. */
	dnnl_primitive_desc_t *descs;
	size_t ndescs, descs_capacity;
	const_dnnl_memory_desc_t *mds;
	size_t nmds, mds_capacity;
	dnnl_primitive_attr_t attr, relu_attr; /* with a ReLU of the result */
	dnnl_memory_t *scratchpads;            /* all share one buffer */
	size_t nscratchpads, scratchpads_capacity, scratchpad_bytes;
	void *scratchpad;
	/* What it has, in all and per layer, and the kind of what is made next. */
	struct gf_net_memory memory, *layer_memory;
	bool makes_backward, makes_weights;

	/* Arguments of the function ops of a running backward. */
	float *grads;
	void (*on_grad)(void *ctx, size_t tensor);
	void *ctx;

	/* The first error of the build. */
	int rc;
	size_t layer; /* being built */
	struct gf_error *err;
};

struct gf_onednn_layer {
	void (*forward)(struct gf_onednn *p, size_t l);
	void (*backward)(struct gf_onednn *p, size_t l);
};

extern const struct gf_onednn_layer gf_onednn_conv, gf_onednn_fc, gf_onednn_batchnorm,
	gf_onednn_layernorm, gf_onednn_eltwise, gf_onednn_add, gf_onednn_maxpool, gf_onednn_avgpool,
	gf_onednn_globalpool, gf_onednn_plain_ops;

/* Building blocks (onednn_build.c). */
bool gf_onednn_ok(struct gf_onednn *p, dnnl_status_t status, const char *what);
/* A description of f32 values, which p owns; NULL after an error. */
const_dnnl_memory_desc_t gf_onednn_tagged(struct gf_onednn *p, const dnnl_dims_t dims, int ndims,
					  dnnl_format_tag_t tag);
/* Row-major, and the same with its layout left open. */
const_dnnl_memory_desc_t gf_onednn_plain(struct gf_onednn *p, const dnnl_dims_t dims, int ndims);
const_dnnl_memory_desc_t gf_onednn_any(struct gf_onednn *p, const_dnnl_memory_desc_t md);
/* The same for a factor of a product, in the net's precision. */
const_dnnl_memory_desc_t gf_onednn_factor(struct gf_onednn *p, const_dnnl_memory_desc_t md);
/* The same dims, row-major. */
const_dnnl_memory_desc_t gf_onednn_plain_of(struct gf_onednn *p, const_dnnl_memory_desc_t md);
bool gf_onednn_same(const_dnnl_memory_desc_t a, const_dnnl_memory_desc_t b);

/* The layer that is built has so much more memory. */
void gf_onednn_count(struct gf_onednn *p, size_t bytes);
/* handle: an address that stays, or DNNL_MEMORY_ALLOCATE. */
dnnl_memory_t gf_onednn_memory(struct gf_onednn *p, const_dnnl_memory_desc_t md, void *handle);
dnnl_memory_t gf_onednn_bound(struct gf_onednn *p, const_dnnl_memory_desc_t md,
			      enum gf_onednn_base base, size_t at);
/* The same contents in another layout; a reorder only where it is needed. */
dnnl_memory_t gf_onednn_as(struct gf_onednn *p, struct gf_onednn_ops *ops, dnnl_memory_t memory,
			   const_dnnl_memory_desc_t md);
void gf_onednn_reorder(struct gf_onednn *p, struct gf_onednn_ops *ops, dnnl_memory_t from,
		       dnnl_memory_t to);

/* The direction of forward primitives: training or inference. */
dnnl_prop_kind_t gf_onednn_forward(const struct gf_onednn *p);
/* The attributes of l's forward primitive: with the ReLU that l computes, too, if there is one. */
dnnl_primitive_attr_t gf_onednn_result(const struct gf_onednn *p, size_t l);
/* Keeps the primitive's description that a call made, if its status is good. */
dnnl_primitive_desc_t gf_onednn_describe(struct gf_onednn *p, dnnl_status_t status,
					 dnnl_primitive_desc_t pd, const char *what);
/* A description that pd owns, or NULL. */
const_dnnl_memory_desc_t gf_onednn_md(struct gf_onednn *p, const_dnnl_primitive_desc_t pd,
				      dnnl_query_t what, int index);
/* For what l's forward primitive, p->hints[l], keeps for its backward, if that is anything. */
void gf_onednn_make_workspace(struct gf_onednn *p, size_t l);
/* The op is valid until the next one is added. */
struct gf_onednn_op *gf_onednn_add_op(struct gf_onednn *p, struct gf_onednn_ops *ops,
				      const_dnnl_primitive_desc_t pd);
void gf_onednn_arg(struct gf_onednn_op *op, int index, dnnl_memory_t memory);
void gf_onednn_add_call(struct gf_onednn *p, struct gf_onednn_ops *ops,
			void (*call)(struct gf_onednn *p, size_t layer), size_t layer);

/* Values and gradients (onednn_value.c). */
/* Plain memory of a batch. The positions of a sequence {T, F} count as samples. */
const_dnnl_memory_desc_t gf_onednn_samples(struct gf_onednn *p, const struct gf_shape *s);
struct gf_onednn_value *gf_onednn_input(struct gf_onednn *p, size_t l, size_t i);
/* Makes l's output, which relu's output shares if l computes that, too. */
struct gf_onednn_value *gf_onednn_output(struct gf_onednn *p, size_t l,
					 const_dnnl_memory_desc_t md);
/* The ReLU that alone reads l and that l shall compute, too; or false. */
bool gf_onednn_fuses_relu(const struct gf_onednn *p, size_t l);
/* Turns the gradient of ReLU(x) into that of x, in place. */
void gf_onednn_relu_gradient(struct gf_onednn *p, struct gf_onednn_value *v);
bool gf_onednn_wants_gradient(const struct gf_onednn *p, size_t l, size_t i);
/* The memory, in layout md, for a gradient of layer l's input i; afterwards gf_onednn_gave adds it
 * to the gradients from other consumers. */
dnnl_memory_t gf_onednn_target(struct gf_onednn *p, size_t l, size_t i,
			       const_dnnl_memory_desc_t md);
void gf_onednn_gave(struct gf_onednn *p, size_t l, size_t i, dnnl_memory_t gradient);
/* Backward adds `more` to `to`, both laid out as md says. */
void gf_onednn_add_to(struct gf_onednn *p, dnnl_memory_t to, const_dnnl_memory_desc_t md,
		      dnnl_memory_t more);
/* Layer l's parameter gradients stand from here on. */
void gf_onednn_report(struct gf_onednn *p, size_t l);

void gf_onednn_free_plain(struct gf_onednn_plain_layer *plain);

#endif
