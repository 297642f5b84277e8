/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_NN_GPU_NET_H
#define GF_NN_GPU_NET_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda/gpu.h"
#include "gf_gpu_nn_kernels.h"
#include "nn/gpu_math.h"
#include "nn/graph.h"

/*
 * Places for things in one piece of memory, such that things that are alive together do not
 * overlap: the largest first, each at the lowest place that is free while it lives.
 */
struct gf_gpu_thing {
	size_t size_bytes;  /* 0: takes no place */
	size_t first, last; /* when it is alive, both included */
	size_t at;          /* out; a multiple of 256 */
};

/* Returns the bytes that all of them need. */
size_t gf_gpu_plan(struct gf_gpu_thing *things, size_t count);

/*
 * A net on a GPU (private to lib/nn). Values of layers have the net's precision. Their layout is
 * {N, C, H, W}; with channels_last it is {N, H, W, C}. All lie in one allocation, at places planned
 * beforehand (gpu_memory.c). The functions of layers only enqueue work.
 */
struct gf_gpu_net {
	struct gf_net *net;
	struct gf_gpu *gpu;
	struct gf_gpu_stream *stream;
	const struct gf_gpu_nn_kernels *kernels;
	enum gf_dtype dtype;
	bool channels_last;
	struct gf_gpu_blas *blas;
	struct gf_gpu_dnn *dnn; /* NULL without convolutions */
	struct gf_gpu_io *io;   /* per layer */
	char *memory;           /* all of it */
	void *input;            /* the samples in the net's precision; may be NULL */
	void *scratch, *work;
	size_t scratch_bytes, work_bytes;
	/* Larger workspaces than the one that was planned; `work` is the last. None is given up
	 * before the net is: a graph may hold it. */
	void **grown;
	size_t ngrown, grown_capacity;
	float *running;
	struct gf_gpu_samples *samples;
	struct gf_gpu_outcome *outcome, *ended; /* device, pinned host */
	struct gf_gpu_event *event;             /* ended is there */
	void *loss_work;
	float unscale; /* 1 / loss scale, in backward */
};

#define GF_GPU_MAX_PARAMS 4

struct gf_gpu_io {
	struct gf_gpu_net *g;
	const struct gf_layer *layer;
	size_t index, batch;
	bool training;
	const float *sample; /* the caller's samples, as they are */
	const void **in;
	void *out;
	void **din; /* NULL if no layer needs it */
	bool *add;  /* to the values in din */
	void *dout;
	const float *param[GF_GPU_MAX_PARAMS];
	float *dparam[GF_GPU_MAX_PARAMS]; /* NULL: frozen */
	void *weight;                     /* in the net's precision and layout */
	/* What is done together (gpu_fuse.c). Forward writes the output of layer `writes`, which
	 * layer `maker` of that output does; a layer that is silent has no output of its own. */
	size_t writes, maker;
	bool silent, forward_done, backward_done; /* by another layer */
	bool relu;       /* of batch norm: and the ReLU after it, both ways */
	bool adds;       /* of batch norm: and the sum with the output of */
	size_t addend;   /* this layer, and the ReLU, forward only */
	size_t gradient; /* the layer in whose memory dout lies */
	void *saved;     /* what forward keeps for backward */
	/* By batch size, the largest first, then as they were met. None is given up before the net
	 * is: a graph may hold its choices. */
	struct gf_gpu_conv_of {
		size_t batch;
		struct gf_gpu_conv *conv;
	} * convs;
	size_t nconvs, convs_capacity;
};

/* How backward leaves the first input's gradient: in memory of its own, in that of dout if dout may
 * go, or as dout itself, which is both inputs'. */
enum gf_gpu_gradient { GF_GPU_APART, GF_GPU_IN_PLACE, GF_GPU_AS_IT_IS };

struct gf_gpu_layer {
	int (*forward)(struct gf_gpu_io *io, struct gf_error *err);
	int (*backward)(struct gf_gpu_io *io, struct gf_error *err);
	/* (optional) Before memory is planned, for the largest batch. */
	int (*prepare)(struct gf_gpu_io *io, struct gf_error *err);
	/* (optional) Once memory is there; may wait. */
	int (*start)(struct gf_gpu_io *io, struct gf_error *err);
	/* (optional) bytes for batch samples of g */
	size_t (*weight_bytes)(const struct gf_gpu_io *io);
	size_t (*saved_bytes)(const struct gf_gpu_io *io, size_t batch);
	size_t (*scratch_bytes)(const struct gf_gpu_io *io, size_t batch);
	bool needs_in, needs_out; /* backward does */
	bool in_place;            /* out may be where in[0] was */
	enum gf_gpu_gradient passes;
};

/* By layer type (gpu_table.c). */
extern const struct gf_gpu_layer *const gf_gpu_layers[GF_LAYER_NTYPES];

#define GF_GPU_LAYER(NAME, name) extern const struct gf_gpu_layer gf_gpu_##name;
GF_COMPUTED_LAYERS(GF_GPU_LAYER)

/* Plans and takes the net's memory, in one piece and zeroed, and connects its layers. g has
 * everything that sizes depend on; *blas_work is GF_GPU_BLAS_BYTES of it. -ENOMEM says how much was
 * wanted for what. */
int gf_gpu_memory(struct gf_gpu_net *g, void **blas_work, struct gf_error *err);
/* Finds what is done together, and whose gradients share memory; before memory is planned. */
void gf_gpu_fuse(struct gf_gpu_net *g);

static inline size_t gf_gpu_bytes(const struct gf_gpu_net *g, size_t elems)
{
	return elems * gf_dtype_bytes(g->dtype);
}

static inline size_t gf_gpu_align(size_t bytes)
{
	return (bytes + 255) & ~(size_t)255;
}

/* The layer's output, or what has the shape of it, as channels. */
struct gf_gpu_view gf_gpu_view_of(const struct gf_gpu_net *g, const struct gf_shape *s,
				  size_t batch);

/* From plain f32 to the net's precision; outer matrices {a, b} are turned over if the net has
 * channels last. */
void gf_gpu_from_plain(const struct gf_gpu_net *g, const float *from, void *to,
		       const size_t sizes[3]);

/* A weight matrix to multiply by: the parameter itself in f32, else its copy `at` bytes from the
 * start of io->weight. */
const void *gf_gpu_weight(const struct gf_gpu_io *io, size_t which, size_t at);

#endif
