/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_NN_GRAPH_H
#define GF_NN_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nn/net.h"

/*
 * The common part of every backend's net (private to lib/nn). A backend's net_new calls
 * gf_net_init, its net_free gf_net_release, and its own state hangs on priv.
 */
enum gf_net_stage {
	GF_NET_IDLE,
	GF_NET_FORWARD, /* activations of a pass stand */
	GF_NET_LOSS,    /* and dlogits */
};

struct gf_net {
	const struct gf_model *model; /* borrowed */
	size_t max_batch;
	int threads; /* 0: what the environment says */
	enum gf_dtype precision;
	bool in_place;
	float loss_scale;

	/* Per parameter, in the model's (registration) order. */
	size_t *param_at;     /* where it starts in the flat arrays */
	size_t *param_tensor; /* its place in generation order */
	/* Per layer. */
	bool *adds; /* to the gradient of its first parameter, which a later layer that shares it
		     * has begun */
	size_t *consumers;  /* how many inputs read its output */
	bool *on_path;      /* does its output reach the logits */
	bool *has_gradient; /* on_path, and something at or before it is trained */
	size_t *running_at; /* batch norm: mean, then variance, in `running` */

	float *running;
	size_t nrunning;
	size_t positions;        /* of a sample's logits */
	size_t labels;           /* of a sample: as many or fewer */
	float *logits, *dlogits; /* {batch, positions, classes} */
	double loss;             /* the latest; has_loss: there is one */
	size_t correct;
	bool has_loss;
	uint64_t dropout_seed, first_sample;
	/* (optional) after gf_net_set_samples or _loss_scale */
	void (*tell)(struct gf_net *net);
	void (*on_need)(void *ctx, size_t tensor); /* gf_net_set_need */
	void *need_ctx;
	struct gf_net_memory memory, *layer_memory;
	enum gf_net_stage stage;
	size_t batch; /* of the last forward */
	bool training;
	void *priv;
};

/* One after the last that a backend computes. */
#define GF_LAYER_NTYPES (GF_LAYER_LSTM + 1)

/* By layer type; NULL: no backend computes it. */
extern int (*const gf_net_layer_checks[GF_LAYER_NTYPES])(const struct gf_layer *l,
							 struct gf_error *err);

/* Checks that every layer can be computed, naming the layer that cannot. */
int gf_net_init(struct gf_net *net, const struct gf_model *m, size_t max_batch,
		const struct gf_net_options *options, struct gf_error *err);
void gf_net_release(struct gf_net *net);

/* to += m, or -= m. */
void gf_net_memory_add(struct gf_net_memory *to, const struct gf_net_memory *m, bool less);

/* The order of calls: forward, loss, backward; sets stage and batch. The numbers that an embedding
 * looks up are checked unless input is NULL. */
int gf_net_begin_forward(struct gf_net *net, const float *input, size_t batch, int training,
			 struct gf_error *err);
int gf_net_begin_loss(struct gf_net *net, struct gf_error *err);
int gf_net_begin_backward(struct gf_net *net, struct gf_error *err);

/* Reports the gradients of one layer in generation order. */
void gf_net_emit(const struct gf_net *net, size_t layer, void (*on_grad)(void *ctx, size_t tensor),
		 void *ctx);

/* The first of a layer's uses (gf_layer_use) whose gradient no other layer has begun or will add
 * to. */
static inline size_t gf_net_first_own(const struct gf_net *net, size_t layer)
{
	return net->adds[layer] || net->model->layers[layer].tied;
}

/* A pass is about to read a layer's parameters, and what it shares. */
void gf_net_need(const struct gf_net *net, size_t layer);

/* The gradients of a layer that the logits do not depend on; not that of a weight which another one
 * shares. */
void gf_net_zero_gradients(const struct gf_net *net, float *grads, size_t l);

/* The failures of a loss or a result for a bad label and a bad number; `at` counts from the batch's
 * first. */
int gf_net_bad_label(const struct gf_net *net, size_t at, int32_t label, struct gf_error *err);
int gf_net_bad_number(const struct gf_net *net, size_t layer, size_t at, float number,
		      struct gf_error *err);

/* Mean softmax cross-entropy of net->logits; fills net->dlogits. */
int gf_net_softmax_loss(struct gf_net *net, const int32_t *labels, struct gf_error *err);
int gf_net_result(struct gf_net *net, double *loss, size_t *correct, struct gf_error *err);

float *gf_net_running(struct gf_net *net, size_t *count);

/* Running statistics after a batch with these (biased) statistics over `samples` values per
 * channel: PyTorch's rule, the variance made unbiased. */
void gf_net_update_running(const struct gf_net *net, size_t layer, const float *mean,
			   const float *variance, size_t samples);

/* {C, H, W} and {F} seen as channels times the rest. */
static inline size_t gf_shape_spatial(const struct gf_shape *s)
{
	return s->rank == 3 ? s->dims[1] * s->dims[2] : 1;
}

/* The last dimension is the features of a row: {F} has one row, {T, F} T. */
static inline size_t gf_shape_rows(const struct gf_shape *s)
{
	return s->rank == 2 ? s->dims[0] : 1;
}

extern const struct gf_backend gf_backend_ref;
extern const struct gf_backend gf_backend_onednn;
extern const struct gf_backend gf_backend_cuda;

#endif
