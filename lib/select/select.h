/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECT_SELECT_H
#define GF_SELECT_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ckpt/state.h"
#include "doc/model.h"
#include "doc/plan.h"
#include "engine/hooks.h"
#include "engine/pool.h"
#include "engine/work.h"
#include "gpu/gpu.h"
#include "optim/optimizer.h"

/*
 * The running half of a selection: which of a step's gradients go out, and what
 * becomes of the rest. The plan's `selection` names it; lib/doc has its keys.
 * A selection is one file, NAME.c, and one line in registry.c.
 *
 * A selection owns what it remembers from step to step: a residual, a history,
 * a velocity, the chunks chosen. It does not know the engine, which runs its
 * hooks and moves its messages, nor the optimiser, which takes its sums. Up to
 * `depth` steps may be under way, each in a slot, and each slot has a pool that
 * backward fills and a scale. The caller chooses when a step is
 * applied.
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
 * SCALED. With env.scaled a selection whose messages are sums of gradients
 * multiplies them by scale/ranks before they go (gf_select_scale) and divides
 * them by the scale when they have come: they arrive as means.
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
	/* Gradients lie on a GPU, in one array for all slots, and are made by
	 * that stream: messages alone are on the host. NULL: in the pools. */
	struct gf_gpu *gpu;
	float *device_grads;
	struct gf_gpu_stream *stream;
};

/* The first gradient that is infinite or not a number, the same on all
 * ranks. */
struct gf_select_bad {
	bool found;
	size_t tensor, element; /* of the tensor */
};

/* What came of a step: ascending ranges of the pool with their values, which
 * times `share` are means over the ranks. Elements in no range are not updated:
 * they keep the optimiser's state, too. */
struct gf_select_sums {
	const struct gf_optim_piece *pieces; /* the selection's */
	size_t npieces;
	float share;
};

struct gf_selector {
	const struct gf_select_ops *ops;
	struct gf_select_env env;
	struct gf_engine_hooks hooks; /* of ops, for the engine */
	struct gf_work **plan_work;   /* per slot: the plan's messages, */
	size_t nplan_work;            /* so many */
	double *scale; /* per slot; the caller sets it before `begin` */
	struct gf_optim_piece whole;
	void *priv; /* the selection's own state */
};

struct gf_select_ops {
	/* Of all sums: `sums` has only some of the elements; the sums of each
	 * of the plan's messages are in the pool, and complete, as soon as that
	 * message has come. */
	bool pieces, by_message;
	/* On the engine's thread; ctx is the selector (gf_select_open sets it).
	 * A selection whose steps each need the state that the step before
	 * leaves says `serial`. */
	struct gf_engine_hooks hooks;
	/* Is there a reason not to run this plan? (optional) */
	int (*check)(const struct gf_plan *plan, struct gf_error *err);
	/* Allocates the state, on this rank alone; `close` follows also if it
	 * fails. (optional, both) */
	int (*open)(struct gf_selector *s, struct gf_error *err);
	void (*close)(struct gf_selector *s);
	/* Step `step` (from 1) begins in a slot: its messages, which stay the
	 * selection's. All ranks give the same. (optional: the plan's) */
	void (*begin)(struct gf_selector *s, size_t slot, size_t step,
		      const struct gf_work **list, size_t *n);
	/* The step has ended. */
	struct gf_select_bad (*inspect)(struct gf_selector *s, size_t slot);
	/* (optional: the whole pool) */
	int (*sums)(struct gf_selector *s, size_t slot,
		    struct gf_select_sums *sums, struct gf_error *err);
	/* Those have been applied: what the step decided holds for the steps
	 * that begin from now on. (optional) */
	void (*adopt)(struct gf_selector *s, size_t slot);
	/* Times by the plan's messages, from those of the list that the step
	 * sent; ready_s is per tensor. (optional: the list begins with them) */
	void (*times)(const struct gf_selector *s, size_t slot,
		      const struct gf_message_times *sent,
		      const double *ready_s, struct gf_message_times *times);
	/* Adds the arrays that must survive a stop. (optional) */
	void (*state)(struct gf_selector *s, struct gf_state *list);
	/* A step that has ended and is not applied, the age-th from the oldest:
	 * its sums go to `values`, laid out as the pool, and what else `sums`
	 * needs of it goes into the arrays of `state`; and back after a resume.
	 * (optional, both: the pool is all that `sums` needs) */
	void (*keep)(struct gf_selector *s, size_t slot, size_t age,
		     float *values);
	void (*restore)(struct gf_selector *s, size_t slot, size_t age,
			const float *values);
	/* (optional, all four) Gradients may lie on a GPU. Enqueued on q, after
	 * that tensor's gradient, of the step begun last: what is wanted of it
	 * on the host. Enqueued on q: the state there becomes that of the step
	 * taken last, which has ended. Between steps: the state there goes to
	 * the host's copy, and back. */
	int (*ready)(struct gf_selector *s, size_t slot, size_t tensor,
		     struct gf_gpu_stream *q, struct gf_error *err);
	int (*commit)(struct gf_selector *s, size_t slot,
		      struct gf_gpu_stream *q, struct gf_error *err);
	int (*fetch)(struct gf_selector *s, struct gf_error *err);
	int (*send)(struct gf_selector *s, struct gf_error *err);
};

/* registry.c: the running half of each of gf_select_names; {NULL} at the end.
 */
struct gf_selection_entry {
	const char *name, *description;
	const struct gf_select_ops *ops;
};
extern const struct gf_selection_entry gf_selections[];

/* NULL: the plan's selection has no running half. */
const struct gf_select_ops *gf_select_find(const struct gf_plan *plan);
/* -ENOTSUP: there is none, or it does not run this plan. */
int gf_select_check(const struct gf_plan *plan, struct gf_error *err);
/* The same where gradients stay on a GPU while messages go by the host. */
int gf_select_check_on_gpu(const struct gf_plan *plan, struct gf_error *err);

/* The plan has passed gf_select_check. gf_select_close follows also if this
 * fails. */
int gf_select_open(struct gf_selector *s, const struct gf_select_env *env,
		   struct gf_error *err);
void gf_select_close(struct gf_selector *s);
/* As the operations of these names, the optional ones filled in. */
void gf_select_begin(struct gf_selector *s, size_t slot, size_t step,
		     const struct gf_work **list, size_t *n);
int gf_select_sums(struct gf_selector *s, size_t slot,
		   struct gf_select_sums *sums, struct gf_error *err);
void gf_select_adopt(struct gf_selector *s, size_t slot);
void gf_select_times(const struct gf_selector *s, size_t slot,
		     const struct gf_message_times *sent, const double *ready_s,
		     struct gf_message_times *times);
void gf_select_keep(struct gf_selector *s, size_t slot, size_t age,
		    float *values);
void gf_select_restore(struct gf_selector *s, size_t slot, size_t age,
		       const float *values);

/* For selections. A message of sums is about to go, and has come: nothing to do
 * unless env.scaled. */
void gf_select_scale(const struct gf_selector *s, size_t slot,
		     const struct gf_work *w);
void gf_select_unscale(const struct gf_selector *s, size_t slot,
		       const struct gf_work *w);
/* A `check`: messages are not split into halves. */
int gf_select_check_whole(const struct gf_plan *plan, struct gf_error *err);
/* An element of the pool is not finite. */
struct gf_select_bad gf_select_bad_at(const struct gf_pool *pool,
				      size_t element);
/* The first of `count` elements of the pool, from `first` on, that is not
 * finite; their values are at `values`. */
struct gf_select_bad gf_select_find_bad(const struct gf_pool *pool,
					const float *values, size_t first,
					size_t count);

#endif
