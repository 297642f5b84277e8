/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/select: the running half of selections: which gradients go out, and
 * what becomes of the rest. */
#ifndef GF_SELECT_SELECT_H
#define GF_SELECT_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ckpt/state.h"
#include "doc/model.h"
#include "doc/plan.h"
#include "work/hooks.h"
#include "work/work.h"
#include "gpu/gpu.h"
#include "optim/optimizer.h"
#include "select/feedback.h"
#include "select/sums.h"

/*
 * The running half of a selection: which of a step's gradients go out, and what
 * becomes of the rest. The plan's `selection` names it; lib/doc has its keys.
 * A selection is one file, NAME.c, and one line in registry.c; NAME_gpu.c is
 * the same where gradients are on a GPU.
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
 * ON A GPU gradients are made by the stream env.place.stream. They stay there
 * and go from GPU to GPU: pools are the device's, hooks enqueue on the queue
 * that they are given, and `end` sets the slot's flag if a gradient is not
 * finite, which the host learns later. Sums lie on the device.
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
	struct gf_place place; /* of the pools; zeros: on the host */
};

/* A step under way, as every selection has it. */
struct gf_select_slot {
	size_t step; /* begun last, from 1 */
	/* The step's messages, where they are not the plan's
	 * (gf_select_own_work), and their memory (gf_select_memory). */
	struct gf_work *list;
	size_t nlist;
	void *memory[2];
	struct gf_select_bad bad; /* `end` sets it */
	void *more; /* ops->slot_bytes, zeroed, or what open_slot allocates */
};

struct gf_selector {
	const struct gf_select_ops *ops;
	struct gf_select_env env;
	struct gf_engine_hooks hooks; /* of ops, for the engine */
	struct gf_work **plan_work;   /* per slot: the plan's messages, */
	size_t nplan_work;            /* so many */
	/* Per slot; the caller sets them before the step's first hook. The flag
	 * is a word on the device, of gradients that go from GPU to GPU. */
	double *scale;
	uint32_t **flag;
	struct gf_select_slot *slots;
	struct gf_feedback feedback; /* with ops->residual */
	struct gf_optim_piece whole;
	void *priv; /* the selection's own state */
};

struct gf_select_ops {
	/* The sums of each of the plan's messages are in the pool, and
	 * complete, as soon as that message has come. */
	bool by_message;
	/* On the engine's thread; ctx is the selector (gf_select_open sets it).
	 * A selection whose steps each need the state that the step before
	 * leaves says `serial`. */
	struct gf_engine_hooks hooks;
	size_t slot_bytes; /* of struct gf_select_slot's `more` */
	/* The selection has error feedback, and so is the residual called in
	 * checkpoints; NULL: none */
	const char *residual;
	/* Is there a reason not to run this plan? (optional) */
	int (*check)(const struct gf_plan *plan, struct gf_error *err);
	/* Allocates the state, on this rank alone, then each slot's; `close`
	 * follows also if they fail. (optional, all) */
	int (*open)(struct gf_selector *s, struct gf_error *err);
	int (*open_slot)(struct gf_selector *s, size_t slot,
			 struct gf_error *err);
	void (*close)(struct gf_selector *s);
	/* Step `step` (from 1) begins in a slot: its messages, which stay the
	 * selection's. All ranks give the same. (optional: the slot's list, or
	 * the plan's) */
	void (*begin)(struct gf_selector *s, size_t slot, size_t step,
		      const struct gf_work **list, size_t *n);
	/* Messages of all sizes that may come: between steps, after `open` and
	 * after `restore`. They stay the selection's. (optional: the plan's) */
	const struct gf_work *(*expect)(struct gf_selector *s, size_t *n);
	/* The step has ended. Not asked for where a flag says it. (optional:
	 * the slot's) */
	struct gf_select_bad (*inspect)(struct gf_selector *s, size_t slot);
	/* (optional: the whole pool) */
	void (*sums)(struct gf_selector *s, size_t slot,
		     struct gf_select_sums *sums);
	/* Those have been applied: what the step decided holds for the steps
	 * that begin from now on. (optional) */
	void (*adopt)(struct gf_selector *s, size_t slot);
	/* Adds the arrays, but for the residual, that must survive a stop.
	 * (optional) */
	void (*state)(struct gf_selector *s, struct gf_state *list);
	/* A step that has ended and is not applied, the age-th from the oldest:
	 * its sums go to `values`, laid out as the pool, and what else `sums`
	 * needs of it goes into the arrays of `state`; and back after a resume.
	 * bad: they are not finite. (optional, both: the pool is all that
	 * `sums` needs) */
	int (*keep)(struct gf_selector *s, size_t slot, size_t age, bool bad,
		    float *values, struct gf_error *err);
	int (*restore)(struct gf_selector *s, size_t slot, size_t age,
		       const float *values, struct gf_error *err);
	/* Between steps: the device's state goes to the host's copy, which
	 * `state` lists; and the copy, which the caller has changed, becomes
	 * the state. (optional, both: it is the state) */
	int (*fetch)(struct gf_selector *s, struct gf_error *err);
	int (*send)(struct gf_selector *s, struct gf_error *err);
};

/* registry.c: the running halves of selections; {NULL} at the end. */
struct gf_selection_entry {
	const char *name;                         /* of the pure half */
	const struct gf_select_ops *ops, *on_gpu; /* NULL: there is none */
};
extern const struct gf_selection_entry gf_selections[];

/* -ENOTSUP: the plan's selection has no running half for gradients on the host,
 * or it does not run this plan. */
int gf_select_check(const struct gf_plan *plan, struct gf_error *err);
/* -ENOTSUP: the plan's selection has no running half for gradients on a GPU, or
 * it does not run this plan, or no selection runs such a plan between GPUs. */
int gf_select_check_gpu(const struct gf_plan *plan, struct gf_error *err);

/* -ENOTSUP as above; gf_select_close follows also if this fails. */
int gf_select_open(struct gf_selector *s, const struct gf_select_env *env,
		   struct gf_error *err);
void gf_select_close(struct gf_selector *s);
/* As the operations of these names, the optional ones filled in. */
void gf_select_begin(struct gf_selector *s, size_t slot, size_t step,
		     const struct gf_work **list, size_t *n);
const struct gf_work *gf_select_expect(struct gf_selector *s, size_t *n);
struct gf_select_bad gf_select_inspect(struct gf_selector *s, size_t slot);
void gf_select_sums(struct gf_selector *s, size_t slot,
		    struct gf_select_sums *sums);
void gf_select_adopt(struct gf_selector *s, size_t slot);
void gf_select_state(struct gf_selector *s, struct gf_state *list);
int gf_select_keep(struct gf_selector *s, size_t slot, size_t age, bool bad,
		   float *values, struct gf_error *err);
int gf_select_restore(struct gf_selector *s, size_t slot, size_t age,
		      const float *values, struct gf_error *err);
int gf_select_fetch(struct gf_selector *s, struct gf_error *err);
int gf_select_send(struct gf_selector *s, struct gf_error *err);
/* Times of the plan's messages, from those of a step's list: a message has come
 * with the one that brings its last tensor. ready_s is per tensor; NULL: not
 * known. */
void gf_select_times(const struct gf_plan *plan, const struct gf_work *list,
		     size_t n, const struct gf_message_times *sent,
		     const double *ready_s, struct gf_message_times *times);

/*
 * For selections. A message of sums is about to go, and has come; now, or on q:
 * nothing to do unless env.scaled.
 */
int gf_select_scale(const struct gf_selector *s, size_t slot,
		    const struct gf_work *w, struct gf_gpu_stream *q,
		    struct gf_error *err);
int gf_select_unscale(const struct gf_selector *s, size_t slot,
		      const struct gf_work *w, struct gf_gpu_stream *q,
		      struct gf_error *err);
/* The message's values times `by`; now, or on q. */
int gf_select_multiply(const struct gf_selector *s, const struct gf_work *w,
		       double by, struct gf_gpu_stream *q,
		       struct gf_error *err);
/* The slot's own list of n messages, which begins as the plan's. */
struct gf_work *gf_select_own_work(struct gf_selector *s, size_t slot,
				   size_t n);
/* Allocates the slot's `which`-th piece of memory for messages. */
int gf_select_memory(struct gf_selector *s, size_t slot, size_t which,
		     size_t size_bytes, struct gf_error *err);
/* Enqueues that no gradient of the slot's step is known to be bad. */
int gf_select_clear_flag(const struct gf_selector *s, size_t slot,
			 struct gf_gpu_stream *q, struct gf_error *err);
/* One value per element of the pool, between device and host; waits. */
int gf_select_copy(const struct gf_selector *s, void *to, const void *from,
		   enum gf_gpu_copy kind, struct gf_error *err);
/* `keep` and `restore` of a slot's pool, wherever it is. */
int gf_select_keep_pool(const struct gf_selector *s, size_t slot, float *values,
			struct gf_error *err);
int gf_select_restore_pool(const struct gf_selector *s, size_t slot,
			   const float *values, struct gf_error *err);
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
