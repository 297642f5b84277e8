/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/nn: layers and nets, forward and backward: in plain C, on oneDNN, and on cuDNN with
 * cuBLAS. */
#ifndef GF_NN_NET_H
#define GF_NN_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "documents/models/model.h"

struct gf_gpu;
struct gf_gpu_stream;

/*
 * A model ready to compute: forward, loss, backward, on one backend. The model is borrowed and must
 * outlive the net; a net is used by one thread at a time, always the same one.
 *
 * Parameters and gradients are flat f32 arrays that the caller owns. Tensors lie in generation
 * order without gaps (gf_model_generation_order), in plain layouts (conv weight {O, I/groups, H,
 * W}, fc weight {O, I}); frozen ones come last and have no gradient. Backends may keep other
 * layouts inside, never outside. Parameters are read anew in each call.
 *
 * Backward calls on_grad(ctx, tensor) as soon as a gradient lies complete in `grads`, in generation
 * order: lib/nn knows nothing of communication.
 *
 * Same inputs, same bits, for a fixed backend and number of threads. NaN and infinity are no errors
 * here; not every backend carries them to the loss (oneDNN's ReLU makes NaN 0), but gradients show
 * them.
 *
 * ON A DEVICE every array lies in device memory, and a call enqueues on the net's stream and
 * returns: its inputs must stay in place until the stream is past it. A pass does not make the host
 * wait, allocates nothing and keeps no address. So it can be captured into a graph (cuda/gpu.h)
 * once a pass of the same batch size has run. on_grad is called once the kernels that complete a
 * gradient are enqueued. `result` reports wrong labels and word numbers.
 */
struct gf_net;

/* How a net computes. Zeros: in f32, on as many threads as the OpenMP environment says. */
struct gf_net_options {
	int threads; /* 0: the environment's; ref always uses one */
	/* How many positions of each sample have a label, the others GF_NO_LABEL; 0: all. */
	size_t labels;
	/* Weights and activations are GF_F32, GF_F16 or GF_BF16 (of onednn the factors of products
	 * alone); sums are f32 in any case, and so are parameters and gradients outside. net_new
	 * refuses a precision that the backend lacks. */
	enum gf_dtype precision;
	/* Weights come and go: onednn keeps no copies of those of fully connected layers in f32. */
	bool in_place;
	struct gf_gpu *gpu; /* of a backend on_device; borrowed */
	struct gf_gpu_stream *stream;
};

/* Memory of a net; on a device all of it is taken in net_new. */
struct gf_net_memory {
	size_t weights_bytes;     /* copies in another precision or layout */
	size_t activations_bytes; /* with what forward keeps for backward */
	size_t gradients_bytes;   /* of activations; on a device shared where they can be */
	size_t workspace_bytes;   /* shared by all layers */
};
/* All that it has by now, and what a layer has in passes of max_batch samples in training. On a
 * device, where layers share what they can, that is what stays from the layer's forward to its
 * backward. */
struct gf_net_memory gf_net_memory(const struct gf_net *net);
struct gf_net_memory gf_net_layer_memory(const struct gf_net *net, size_t layer);

struct gf_backend {
	const char *name; /* ref, onednn, cuda */
	bool on_device;
	/* Why it is slow, and what is faster; told where a run takes it without having named it
	 * (optional). */
	const char *slow;
	/* -EINVAL or -ENOTSUP names the layer that cannot be computed. */
	int (*net_new)(const struct gf_model *m, size_t max_batch,
		       const struct gf_net_options *options, struct gf_net **net,
		       struct gf_error *err);
	void (*net_free)(struct gf_net *net);
	/* Logits of batch samples into the net; keeps activations. training: batch statistics; else
	 * running statistics. The first pass of each batch size prepares it; later ones allocate
	 * nothing. */
	int (*forward)(struct gf_net *net, const float *params, const float *input, size_t batch,
		       int training, struct gf_error *err);
	/* Softmax cross-entropy, its mean over labels, and correct count; prepares backward. One
	 * label per sample, or per position if the logits are a sequence. */
	int (*loss)(struct gf_net *net, const int32_t *labels, struct gf_error *err);
	/* Those of the latest loss; waits for that on a device. */
	int (*result)(struct gf_net *net, double *loss, size_t *correct, struct gf_error *err);
	/* After forward (training) and loss, with the same params and input still in place. grads
	 * is overwritten. on_grad may be NULL. */
	int (*backward)(struct gf_net *net, const float *params, float *grads,
			void (*on_grad)(void *ctx, size_t tensor), void *ctx, struct gf_error *err);
	/* Running statistics of batch norm, flat; *count 0 without any. Per layer in forward order:
	 * means, then variances. */
	float *(*running)(struct gf_net *net, size_t *count);
};

extern const struct gf_backend *const gf_backends[]; /* NULL-terminated */
/* "auto" or NULL: the fastest on the host. NULL if there is none so named. */
const struct gf_backend *gf_backend_find(const char *name);

/* Gradients are `scale` times as large inside the backward passes that follow (a power of two), so
 * that f16 does not lose small ones. Gradients outside are divided by it again: too large a scale
 * shows as infinity or NaN in them. At the start 1; in f16 such that no gradient of a logit is
 * above 16. A graph keeps that of its capture. */
void gf_net_set_loss_scale(struct gf_net *net, float scale);

/* Both passes call on_need(ctx, tensor) before a layer reads a trained tensor, layer by layer, and
 * read it only then: its weights may change until the call returns. In backward a layer may read
 * them after its gradients, and has done so once the next layer calls. Not on a device, whose
 * passes are begun ahead. NULL: no calls. */
void gf_net_set_need(struct gf_net *net, void (*on_need)(void *ctx, size_t tensor), void *ctx);

/* Seeds the dropout of the following passes. The values that sample i of a batch loses depend on
 * the seed and on first + i alone, the sample's number in the whole run. So ranks that share a
 * batch drop the same values as one rank with the whole batch. A resumed run drops the same values
 * as an uninterrupted run. On a device the call enqueues, and passes that a graph replays follow
 * it, too. */
void gf_net_set_samples(struct gf_net *net, uint64_t seed, uint64_t first);

/* Normal weights: variance 2 / inputs before ReLU ("Delving deep into rectifiers", 2015), 1 /
 * inputs else, 1 for embeddings; ones and zeros for norms, zeros for biases. In a model with tied
 * layers embeddings have variance 1 / outputs. Generation order; the same on every rank for one
 * seed. */
void gf_net_init_params(const struct gf_model *m, uint64_t seed, float *params);

#endif
