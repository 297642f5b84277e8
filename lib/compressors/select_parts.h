/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMPRESSORS_SELECT_PARTS_H
#define GF_COMPRESSORS_SELECT_PARTS_H

#include "compressors/select.h"

/*
 * What selections share behind select.h.
 *
 * FEEDBACK of errors (Seide et al. 2014; Karimireddy et al. 2019): what a step did not send is a
 * residual, which is added to the gradients of the next step.
 *
 * In a step, for elements [first, first + count) of the pool:
 *	gf_feedback_add		gradients += residual
 *	... the selection takes out of the gradients what it sends ...
 *	gf_feedback_commit	residual = gradients, gradients = 0
 * Until the commit the residual is that of the step before, so that a step whose gradients are not
 * finite leaves it alone.
 */

/* A step under way, as every selection has it. */
struct gf_select_slot {
	struct gf_select_step step; /* begun last */
	/* The step's messages, where they are not the plan's (gf_select_own_work), and their memory
	 * (gf_select_memory). */
	struct gf_work *list;
	size_t nlist;
	void *memory[2];
	struct gf_select_bad bad; /* `end` sets it */
	void *more;               /* ops->slot_bytes, zeroed, or what open_slot allocates */
};

struct gf_selector {
	const struct gf_select_ops *ops;
	struct gf_select_env env;
	struct gf_engine_hooks hooks; /* of ops, for the engine */
	struct gf_work **plan_work;   /* per slot: the plan's messages, */
	size_t nplan_work;            /* so many */
	struct gf_select_slot *slots; /* env.depth */
	float *residual;              /* with ops->residual: FEEDBACK; laid out as the pool */
	struct gf_optim_piece whole;
	void *priv; /* the selection's own state */
};

struct gf_select_ops {
	/* On the engine's thread; gf_select_open sets ctx, the selector, and `serial`. */
	struct gf_engine_hooks hooks;
	size_t slot_bytes; /* of struct gf_select_slot's `more` */
	/* The selection has error feedback, and so is the residual called in checkpoints; NULL:
	 * none */
	const char *residual;
	/* Allocates the state, on this rank alone, then each slot's; `close` follows also if they
	 * fail. (optional, all) */
	int (*open)(struct gf_selector *s, struct gf_error *err);
	int (*open_slot)(struct gf_selector *s, size_t slot, struct gf_error *err);
	void (*close)(struct gf_selector *s);
	/* Step `step` (from 1) begins in a slot: its messages, which stay the selection's. All
	 * ranks give the same. (optional: the slot's list, or the plan's) */
	void (*begin)(struct gf_selector *s, size_t slot, size_t step, const struct gf_work **list,
		      size_t *n);
	/* Messages of all sizes that may come: between steps, after `open` and after `restore`.
	 * They stay the selection's. (optional: the plan's) */
	const struct gf_work *(*expect)(struct gf_selector *s, size_t *n);
	/* The step has ended. Not asked for where a flag says it. (optional: the slot's) */
	struct gf_select_bad (*inspect)(struct gf_selector *s, size_t slot);
	/* (optional: the whole pool) */
	void (*sums)(struct gf_selector *s, size_t slot, struct gf_select_sums *sums);
	/* Those have been applied: what the step decided holds for the steps that begin from now
	 * on. (optional) */
	void (*adopt)(struct gf_selector *s, size_t slot);
	/* Adds the arrays, but for the residual, that must survive a stop. (optional) */
	void (*state)(struct gf_selector *s, struct gf_state *list);
	/* A step that has ended and is not applied, the age-th from the oldest: its sums go to
	 * `values`, laid out as the pool, and what else `sums` needs of it goes into the arrays of
	 * `state`; and back after a resume. bad: they are not finite. (optional, both: the pool is
	 * all that `sums` needs) */
	int (*keep)(struct gf_selector *s, size_t slot, size_t age, bool bad, float *values,
		    struct gf_error *err);
	int (*restore)(struct gf_selector *s, size_t slot, size_t age, const float *values,
		       struct gf_error *err);
	/* Between steps: the device's state goes to the host's copy, which `state` lists; and the
	 * copy, which the caller has changed, becomes the state. (optional, both: it is the
	 * state) */
	int (*fetch)(struct gf_selector *s, struct gf_error *err);
	int (*send)(struct gf_selector *s, struct gf_error *err);
};

/*
 * For selections. A message of sums is about to go, and has come; now, or on q: nothing to do
 * unless env.scaled.
 */
int gf_select_scale(const struct gf_selector *s, size_t slot, const struct gf_work *w,
		    struct gf_gpu_stream *q, struct gf_error *err);
int gf_select_unscale(const struct gf_selector *s, size_t slot, const struct gf_work *w,
		      struct gf_gpu_stream *q, struct gf_error *err);
/* FEEDBACK, of the pool's memory. */
void gf_feedback_add(const struct gf_selector *s, float *data, size_t first, size_t count);
void gf_feedback_commit(struct gf_selector *s, float *data, size_t first, size_t count);
/* The slot's own list of n messages, which begins as the plan's. */
struct gf_work *gf_select_own_work(struct gf_selector *s, size_t slot, size_t n);
/* Allocates the slot's `which`-th piece of memory for messages. */
int gf_select_memory(struct gf_selector *s, size_t slot, size_t which, size_t size_bytes,
		     struct gf_error *err);
/* Enqueues that no gradient of the slot's step is known to be bad. */
int gf_select_clear_flag(const struct gf_selector *s, size_t slot, struct gf_gpu_stream *q,
			 struct gf_error *err);
/* One value per element of the pool, between device and host; waits. */
int gf_select_copy(const struct gf_selector *s, void *to, const void *from, enum gf_gpu_copy kind,
		   struct gf_error *err);
/* The keys of the plan's selection: a struct of its record. */
static inline const void *gf_select_params(const struct gf_selector *s)
{
	return s->env.plan->selection.params;
}

/* Of a selection whose keys begin as struct gf_density: the density in a step (from 1), and the
 * greatest of all. A replay has no epochs: it shows what follows warm-up. */
double gf_select_density(const struct gf_selector *s, size_t step);
double gf_select_densest(const struct gf_selector *s);

/*
 * SETS OF A FIXED SIZE, one per rank and message, which are gathered: an open_slot that fills in
 * the slot's list. bytes: of the set of a message of so many elements.
 */
int gf_select_open_sets(struct gf_selector *s, size_t slot,
			size_t (*bytes)(const struct gf_selector *s, size_t count_elems),
			struct gf_error *err);
/* A rank's set in a message of that list. */
static inline unsigned char *gf_select_set(const struct gf_work *w, size_t rank)
{
	return (unsigned char *)w->data + rank * w->element.size_bytes;
}

/* An element of the pool is not finite. */
struct gf_select_bad gf_select_bad_at(const struct gf_pool *pool, size_t element);

#endif
