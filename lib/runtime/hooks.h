/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_RUNTIME_HOOKS_H
#define GF_RUNTIME_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct gf_gpu_stream;

/*
 * A selection's part in an exchange: work that the engine has done for the messages of a step, in
 * `slot`. All ranks come to the same calls in the same order but for `meanwhile`. All are optional.
 * A failure ends the engine as that of the message does.
 *
 * q decides how the work is done. NULL: now, on the thread that moves messages (with one rank, the
 * compute thread). Else gradients are on a GPU, and the compute thread enqueues the work on the
 * stream q. The stream waits for all work that the hook relies on, and work that relies on the hook
 * waits for the stream. All `prepare` go on one stream, beside the messages before; `finish` goes
 * on the message's lane.
 */
struct gf_engine_hooks {
	/* The message is about to go: its data is wanted; its tensors' gradients are there. */
	int (*prepare)(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		       struct gf_error *err);
	/* It has come. */
	int (*finish)(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		      struct gf_error *err);
	/* All of the step have. Once for each step, in order. */
	int (*end)(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err);
	/* Nothing moves at the moment: does a small piece of work on the step in `slot`, whose
	 * first `nready` tensors are ready; false: there is none. Only on a thread. */
	bool (*meanwhile)(void *ctx, size_t slot, size_t nready);
	/* The engine has failed, with that negative errno: nothing more will come. Once. Only of an
	 * engine with a thread or one rank. */
	void (*failed)(void *ctx, int rc);
	void *ctx;
	/* No message of a step starts before `end` of the step before. */
	bool serial;
};

#endif
