/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/runtime: runs the messages of a step while backward makes gradients. Here is what its parts
 * share: the messages, their memory, and the hooks around them. */
#ifndef GF_RUNTIME_WORK_H
#define GF_RUNTIME_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/algorithm.h"
#include "collectives/way.h"
#include "transport/message_element.h"
#include "documents/plan.h"
#include "base/error.h"
#include "transport/comm.h"
#include "cuda/gpu.h"

/*
 * The gradient memory pool (GradientFlow, section 3.1): one f32 buffer per rank. Tensors lie in
 * generation order without gaps, so that every message (a contiguous range of tensors) already is
 * one buffer.
 */
struct gf_pool {
	struct gf_comm *comm; /* borrowed; the memory's; NULL: not own */
	float *data;
	size_t count_elems;
	size_t *offsets; /* ntensors + 1, in elements */
	size_t ntensors;
	/* Messages lie in memory of the caller's, each from a multiple of 128 bytes on, and in the
	 * pool only now and then, where a tensor may take more f32 than it has elements. */
	bool lent;
	struct gf_gpu *gpu;       /* that it is pinned for; NULL: none */
	struct gf_shards *shards; /* of a plan that has them, borrowed (runtime/shard_list.h) */
};

struct gf_shards;

int gf_pool_init(struct gf_pool *p, struct gf_comm *comm, const size_t *count_elems,
		 size_t ntensors, struct gf_error *err);
/* A GPU, borrowed while the pool lives, will copy to and from it by itself. */
void gf_pool_release(struct gf_pool *p);
/* The tensor that an element belongs to. */
size_t gf_pool_tensor_at(const struct gf_pool *p, size_t element);

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

/* Of a rank so far. Streams spend no seconds. */
struct gf_totals {
	uint64_t sent_bytes; /* in messages that have ended, or (streams) were enqueued */
	/* In messages that were waited for: the same number in every run, even if further messages
	 * have ended by chance. */
	uint64_t waited_bytes;
	/* In a step, if the plan's gradients went in f32 by a ring, which sends the least: the
	 * measure of what a selection or a codec saves. 0 without a plan, and of a server. */
	uint64_t dense_bytes;
	double hooks_s, coding_s; /* in hooks; in codecs and merges of sets */
	/* Both together up to now, also within a step: the thread's time apart from moving data. */
	double handling_s;
	uint64_t copied_bytes; /* to and from a caller's memory, so far */
};

struct gf_lane_sets;

/* Of gf_work.after: every earlier message of the step. */
#define GF_AFTER_ALL SIZE_MAX

/*
 * What the engine moves in a step: a list of messages, in the order in which they start. A list may
 * be another one every step (chunks are chosen anew, warm-up changes their number), as long as all
 * ranks give the same.
 */
struct gf_work {
	size_t first, last; /* the tensors it waits for */
	/* 0, or 1 + the message of this step that must have ended: an all-gather's reduce-scatter;
	 * or GF_AFTER_ALL. */
	size_t after;
	bool simultaneous; /* else all earlier messages have ended */
	bool at_end;       /* waits for the end of backward */
	/* The algorithm, its stages, and the codec of f32, which is summed over ranks in place; a
	 * message of the plan has its lane. Borrowed. */
	const struct gf_message *how;
	/* Or sets, by an algorithm of gf_sparse_algorithms; or any elements, by any way. Both NULL:
	 * as `how` says. */
	const struct gf_algorithm *sparse;
	const struct gf_way *way;
	/* Streams: or steps of f32, whatever they do; borrowed. */
	const struct gf_schedule *schedule;
	size_t lane; /* streams: of a message that is not the plan's */
	enum gf_coll_half half;
	/* Of a half, borrowed: who owns what; NULL: the algorithm's own parts. */
	const struct gf_layout *owners;
	struct gf_element element; /* with `sparse` or `way` */
	/* Sets on a GPU (cuda/lanes/program.h); borrowed. Their size is then the largest when the
	 * engine first sees them. */
	const struct gf_lane_sets *sets;
	void *data;
	size_t count_elems;
	/* Streams: data lies so many elements past a multiple of GF_LANE_GRAIN_ELEMS, on every
	 * rank. */
	size_t skew_elems;
	const char *name; /* in failures; NULL: the message's number */
};

/* Are its tensors' gradients there? *seen, from 0 for each message, is how far that was asked
 * before. */
bool gf_work_ready(const struct gf_work *w, const bool *tensor_ready, size_t *seen);

/* When each message was ready (a message released by the end of backward: then), started and ended,
 * in gf_clock_s time. */
struct gf_message_times {
	double ready_s, start_s, end_s;
	/* Where a step cuts messages anew: what went, as which message of the plan, and its place
	 * among the step's; else all 0. */
	size_t elems, like, place;
};

/* The list that a plan's messages make, on a pool's memory: those in order, then the all-gathers of
 * split ones, the last message's first, since the next forward uses its tensors first. With shards
 * it is theirs (runtime/shard_list.h). */
size_t gf_work_count(const struct gf_plan *plan, const struct gf_pool *pool);
void gf_work_of_plan(const struct gf_plan *plan, const struct gf_pool *pool, struct gf_work *work);

/* The input of a message's schedule. It stays where it is: args refer to the factors of the way. */
struct gf_recipe {
	struct gf_way way;
	struct gf_coll_args args;
	struct gf_element element;
};

/* Without segments. The plan names the servers; it may be NULL for a message that brings its own
 * way. -EINVAL, -ENOTSUP: this build has no codec, or no algorithm, of that name. */
int gf_work_recipe(const struct gf_work *w, const struct gf_plan *plan, int ranks,
		   struct gf_recipe *r, struct gf_error *err);
/* "step 3, message 2 (tensors 4 to 6, a to b, 400 bytes)" for the message-th of a step's list; the
 * caller frees. plan NULL: the tensors are unknown. */
char *gf_work_name(const struct gf_work *w, const struct gf_plan *plan, uint64_t step,
		   size_t message);

#endif
