/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_OPTIM_OPTIMIZER_H
#define GF_OPTIM_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * An optimiser: how a step changes parameters by their gradients, and the state
 * that it keeps for the next one. Parameters, gradients and each array of state
 * are flat, one tensor after the other in one order; the state starts as zeros.
 * Every machine computes the same bits, so ranks with the same gradients stay
 * replicas.
 *
 * One file each, one entry in registry.c.
 */
#define GF_OPTIM_SLOTS 2 /* most arrays of state */

struct gf_optim_config {
	const char *name; /* of gf_optimizers */
	double momentum, weight_decay;
	double eta, epsilon; /* lars */
	double clip_norm;    /* of the whole gradient; 0: not clipped */
	/* Tensors that get neither weight decay nor a rate of their own: a
	 * comma-separated list of "vectors" (biases and norms: one dimension)
	 * and of patterns for names (fnmatch); "none"; NULL: what suits. */
	const char *exclude;
};

struct gf_optim_tensor {
	const char *name; /* borrowed while gf_optimizer_init runs */
	size_t rank;      /* dimensions */
	size_t count_elems;
};

/* A range of elements that are treated alike: a tensor, or neighbours. */
struct gf_optim_range {
	size_t first, count_elems;
	bool excluded;
};

/* One step of one range; pointers are to its first element. */
struct gf_optim_part {
	double lr;
	float scale; /* of the gradient, before anything else */
	bool excluded;
	const float *grad;
	float *weight;
	float *slot[GF_OPTIM_SLOTS];
	size_t count_elems;
};

struct gf_optimizer_ops {
	const char *name;
	const char *description; /* one line */
	const char *default_exclude;
	bool elementwise; /* neighbours may be stepped as one range */
	bool nesterov;
	const char *slots[GF_OPTIM_SLOTS + 1]; /* names of the state's arrays */
	/* A tensor's own rate, by the norms of its weights and of its gradient;
	 * not of those that are excluded. (optional: 1) */
	double (*ratio)(const struct gf_optim_config *c, double weight_norm,
			double grad_norm);
	void (*step)(const struct gf_optim_config *c,
		     const struct gf_optim_part *p);
};

extern const struct gf_optimizer_ops *const gf_optimizers[]; /* NULL-ended */

/* In the middle of a step: weights first to first + count - 1 are new, and
 * stay so until the next one. (optional) */
struct gf_optim_watch {
	void (*changed)(void *ctx, size_t first, size_t count_elems);
	void *ctx;
};

struct gf_optimizer {
	const struct gf_optimizer_ops *ops;
	struct gf_optim_config config; /* its strings are borrowed */
	struct gf_optim_range *ranges;
	size_t nranges, count_elems;
	float *slot[GF_OPTIM_SLOTS];
	struct gf_optim_watch watch; /* the caller's to set */
};

/* -EINVAL: no such optimiser, or a pattern that fits no tensor; -ENOMEM. */
int gf_optimizer_init(struct gf_optimizer *o,
		      const struct gf_optim_config *config,
		      const struct gf_optim_tensor *tensors, size_t ntensors,
		      struct gf_error *err);
void gf_optimizer_release(struct gf_optimizer *o);

/* |scale * grad| over all elements, the same bits on every machine. */
double gf_optimizer_norm(const struct gf_optimizer *o, float scale,
			 const float *grad);
/* Steps elements first to first + count - 1 alone, which are whole tensors;
 * grad and weight are those of all. Clipping is not possible here, because the
 * norm of all gradients is unknown: the optimiser must not clip. */
void gf_optimizer_step_some(struct gf_optimizer *o,
			    const struct gf_optim_part *all, size_t first,
			    size_t count_elems);
/* grad is not changed; clipping scales it on the way. */
void gf_optimizer_step(struct gf_optimizer *o, double lr, float scale,
		       const float *grad, float *weight);

/* Some of a gradient: of elements first to first + count - 1. */
struct gf_optim_piece {
	size_t first, count_elems;
	const float *grad;
};

/*
 * Those elements only, pieces ascending; the others keep their state. With
 * g = scale*grad + decay*w: u = momentum*u + lr*q*g, w = w - u. The rate is
 * inside u, so that a velocity which waits is not scaled by a later rate.
 *
 * What looks at a whole tensor or at the whole gradient (q, LARS's ratio; a
 * norm to clip at) looks at what the pieces have of it, of weights as of
 * gradients. pieces->grad is not changed.
 */
void gf_optimizer_step_pieces(struct gf_optimizer *o, double lr, float scale,
			      const struct gf_optim_piece *pieces,
			      size_t npieces, float *weight);

/* The elements that a piece and a range have in common. */
struct gf_optim_common {
	size_t first, count_elems;
	const float *grad;
	bool excluded;
};

/* Calls back for the pieces cut at the optimiser's ranges, in order: for a step
 * that is computed elsewhere. */
void gf_optimizer_each_piece(
	const struct gf_optimizer *o, const struct gf_optim_piece *pieces,
	size_t npieces,
	void (*each)(void *ctx, const struct gf_optim_common *c), void *ctx);

#endif
