/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_DEVICE_GRAPHS_H
#define GF_TRAINER_DEVICE_GRAPHS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cuda/gpu.h"

/*
 * Passes as graphs (cuda/gpu.h): what costs the host a launch per kernel costs it one per piece. A
 * pass is cut where a gradient is needed outside, so that messages and copies, which no graph
 * holds, are enqueued in the same order and overlap the rest as without graphs: a piece is
 * launched, then its gradients are told of, then the next piece is.
 *
 * Passes of one key are the same: same addresses, same sizes. The first is enqueued as it is and
 * prepares what a capture may not; the second is captured, piece by piece, and each piece launched;
 * from the third on they are launched alone.
 */
struct gf_train_graphs;

struct gf_train_graphs_config {
	struct gf_gpu *gpu; /* both borrowed */
	struct gf_gpu_stream *stream;
	size_t keys;
	size_t ntensors;
	const bool *cut; /* per tensor: cut after its gradient; copied */
};

/* -ENOTSUP: this device captures nothing. */
int gf_train_graphs_new(const struct gf_train_graphs_config *config, struct gf_train_graphs **g,
			struct gf_error *err);
/* NULL is allowed. After the stream has ended. */
void gf_train_graphs_free(struct gf_train_graphs *g);

/* Passes have changed: what was captured is given up, and captured anew when it is run next. After
 * the stream has ended. */
void gf_train_graphs_forget(struct gf_train_graphs *g);

struct gf_train_pass {
	/* Enqueues the pass, and calls made(made_ctx, tensor) after each gradient; the failure of
	 * either is its own. */
	int (*run)(void *ctx, void (*made)(void *made_ctx, size_t tensor), void *made_ctx,
		   struct gf_error *err);
	/* Enqueues, outside the graphs, the work that follows a gradient. (optional) */
	void (*on_grad)(void *ctx, size_t tensor);
	void *ctx;
};

/* g may be NULL: enqueues the pass as it is. */
int gf_train_graphs_run(struct gf_train_graphs *g, size_t key, const struct gf_train_pass *pass,
			struct gf_error *err);

#endif
