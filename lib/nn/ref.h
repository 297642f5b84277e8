/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_NN_REF_H
#define GF_NN_REF_H

#include "nn/graph.h"

/* A row-major matrix whose rows lie `pitch` apart. */
struct gf_ref_matrix {
	const float *at;
	size_t pitch;
	bool transposed;
};

/* c = a * b, or c += a * b, c of m x n with rows `pitch` apart, k products each. Shapes were
 * checked when the net was made, so this cannot fail. */
struct gf_ref_product {
	struct gf_ref_matrix a, b;
	size_t m, n, k;
	bool adds;
	float *c;
	size_t pitch;
};

/*
 * One layer's arrays in the reference backend, in plain layouts: {N, C, H, W}, {N, T, F} or {N, F}
 * (private to lib/nn). forward writes out and, if training, saved. backward overwrites the
 * parameters' gradients; with `adds` it adds to dparam[0]. It adds to din, which the caller has
 * zeroed: a value with several consumers gets the sum. din is NULL if no layer needs it.
 */
#define GF_REF_MAX_PARAMS 4

struct gf_ref_io {
	const struct gf_net *net;
	size_t index; /* of the layer */
	const struct gf_layer *layer;
	size_t batch;
	bool training, adds;
	const float **in; /* layer->ninputs of them */
	float *out;
	float **din;
	const float *dout;
	union {
		const float *param[GF_REF_MAX_PARAMS];
		struct {
			const float *weight, *bias;
		};
	};
	union {
		float *dparam[GF_REF_MAX_PARAMS];
		struct {
			float *dweight, *dbias;
		};
	};
	void *saved;          /* what forward keeps for backward */
	const float *running; /* batch norm: means, then variances */
	/* ref_table.c's, or what a backend has in its place */
	void (*multiply)(const struct gf_ref_product *p);
};

struct gf_ref_layer {
	void (*forward)(const struct gf_ref_io *io);
	void (*backward)(const struct gf_ref_io *io);
	/* (optional) bytes of saved, for a batch */
	size_t (*saved_bytes)(const struct gf_layer *l, size_t batch);
};

/* By layer type (ref_table.c). */
extern const struct gf_ref_layer *const gf_ref_layers[GF_LAYER_NTYPES];

/* Pointers of layer l; params and grads (or NULL) as the backend has them.
 * in, out, din, dout and saved are the caller's to set. */
void gf_ref_io_init(struct gf_ref_io *io, const struct gf_net *net, size_t l);
void gf_ref_io_bind(struct gf_ref_io *io, const float *params, float *grads);
void gf_ref_io_release(struct gf_ref_io *io);

#define GF_REF_LAYER(NAME, name) extern const struct gf_ref_layer gf_ref_##name;
GF_COMPUTED_LAYERS(GF_REF_LAYER)

#endif
