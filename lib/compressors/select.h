/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/compressors: gradient compression by selections: which gradients go out, and what becomes of
 * the rest. */
#ifndef GF_COMPRESSORS_SELECT_H
#define GF_COMPRESSORS_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "checkpoints/state.h"
#include "documents/models/model.h"
#include "documents/plan.h"
#include "runtime/work.h"
#include "cuda/gpu.h"
#include "trainer/optim/optimizer.h"
#include "compressors/sums.h"

/*
 * The running half of a selection: which of a step's gradients go out, and what becomes of the
 * rest. The plan's `selection` names it; lib/documents has its keys. A selection is one file,
 *NAME.c, with an entry (selections.h); NAME_gpu.c is the same where gradients are on a GPU.
 *
 * A selection owns what it remembers from step to step: a residual, a history, a velocity, the
 * chunks chosen. It does not know the engine, which runs its hooks and moves its messages, nor the
 * optimiser, which takes its sums. Up to `depth` steps may be under way, each in a slot, and each
 * slot has a pool that backward fills and a scale. The caller chooses when a step is applied.
 *
 * A step in slot s, in this order:
 *	begin		the messages that the step sends
 *	prepare, finish	for each message; on the thread that moves messages
 *	end		when all have come: the state becomes this step's,
 *			unless a gradient is not finite; then it stays as it was
 *	inspect		was there such a gradient?
 *	sums, adopt	if not: what came, to be applied; it is applied
 * Between `end` and `sums` further steps may begin and end.
 *
 * ON A GPU gradients are made by the stream env.place.stream. They stay there and go from GPU to
 * GPU: pools are the device's, hooks enqueue on the queue that they are given, and `end` sets the
 * slot's flag if a gradient is not finite, which the host learns later. Sums lie on the device.
 *
 * SCALED. With env.scaled a selection whose messages are sums of gradients multiplies them by
 * scale/ranks before they go (gf_select_scale) and divides them by the scale when they have come:
 * they arrive as means.
 */
struct gf_select_env {
	const struct gf_plan *plan; /* bound; all pointers are borrowed */
	int rank;
	size_t depth;                  /* steps under way at once, >= 1 */
	struct gf_pool *pools;         /* depth; where backward writes */
	const struct gf_shape *shapes; /* of the tensors; NULL: a replay */
	size_t epoch_steps;            /* for warm-up by epochs; 0: a replay */
	double momentum;               /* the optimiser's */
	bool scaled;
	struct gf_place place; /* of the pools; zeros: on the host */
};

struct gf_select_step {
	size_t number;
	double scale;
	uint32_t *flag;
};

struct gf_selector;
struct gf_select_ops; /* compressors/select_parts.h */

/* The running half of a selection. */
struct gf_selection_entry {
	const struct gf_select_plan *plan;
	const struct gf_select_ops *ops, *on_gpu; /* NULL: there is none */
};
/* Has that selection a running half? For gradients on the host. */
bool gf_selection_runs(const struct gf_select_plan *plan);

/* -ENOTSUP: the plan's selection has no running half for gradients on the host, or it does not run
 * this plan. */
int gf_select_check(const struct gf_plan *plan, struct gf_error *err);
/* -ENOTSUP: the plan's selection has no running half for gradients on a GPU, or it does not run
 * this plan, or no selection runs such a plan between GPUs. */
int gf_select_check_gpu(const struct gf_plan *plan, struct gf_error *err);

/* -ENOTSUP as above; gf_select_close follows also if this fails. */
int gf_select_open(struct gf_selector **s, const struct gf_select_env *env, struct gf_error *err);
/* Accepts NULL. */
void gf_select_close(struct gf_selector *s);
/* What it was opened with, and the hooks of its steps. */
const struct gf_select_env *gf_select_env(const struct gf_selector *s);
const struct gf_engine_hooks *gf_select_hooks(const struct gf_selector *s);
/* The plan's messages (gf_work_count) in a slot's pool: a selection without messages of its own
 * sends these. The caller may move them elsewhere. */
struct gf_work *gf_select_messages(const struct gf_selector *s, size_t slot);
/* Does what a step sends depend on how the one before has ended? */
bool gf_select_decides(const struct gf_selector *s);
/* The run's step `number` (from 1) begins in a slot: its messages, which stay the selection's. The
 * scale is that of its gradients; the flag is a word on the device, of gradients that go from GPU
 * to GPU. */
void gf_select_begin(struct gf_selector *s, size_t slot, const struct gf_select_step *step,
		     const struct gf_work **list, size_t *n);
/* As the operations of these names, the optional ones filled in. */
const struct gf_work *gf_select_expect(struct gf_selector *s, size_t *n);
struct gf_select_bad gf_select_inspect(struct gf_selector *s, size_t slot);
void gf_select_sums(struct gf_selector *s, size_t slot, struct gf_select_sums *sums);
void gf_select_adopt(struct gf_selector *s, size_t slot);
void gf_select_state(struct gf_selector *s, struct gf_state *list);
int gf_select_keep(struct gf_selector *s, size_t slot, size_t age, bool bad, float *values,
		   struct gf_error *err);
int gf_select_restore(struct gf_selector *s, size_t slot, size_t age, const float *values,
		      struct gf_error *err);
int gf_select_fetch(struct gf_selector *s, struct gf_error *err);
int gf_select_send(struct gf_selector *s, struct gf_error *err);
/* Times of the plan's messages, from those of a step's list: a message has come with the one that
 * brings its last tensor. ready_s is per tensor; NULL: not known. */
void gf_select_times(const struct gf_plan *plan, const struct gf_work *list, size_t n,
		     const struct gf_message_times *sent, const double *ready_s,
		     struct gf_message_times *times);
/* The message's values times `by`; now, or on q. */
int gf_select_multiply(const struct gf_selector *s, const struct gf_work *w, double by,
		       struct gf_gpu_stream *q, struct gf_error *err);
/* How many of the values are finite before the first that is not; count if all are. At the speed of
 * memory as long as they are. */
size_t gf_finite_prefix(const float *values, size_t count);
/* The first of `count` elements of the pool, from `first` on, that is not finite; their values are
 * at `values`. */
struct gf_select_bad gf_select_find_bad(const struct gf_pool *pool, const float *values,
					size_t first, size_t count);

#endif
