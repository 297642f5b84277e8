/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/trainer/optim: optimisers and their state, and schedules of the rate. */
#ifndef GF_OPTIM_OPTIMIZER_H
#define GF_OPTIM_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include "base/error.h"

/*
 * An optimiser: how a step changes parameters by their gradients, and the state that it keeps for
 * the next one. Parameters, gradients and each array of state are flat, one tensor after the other
 * in one order; the state starts as zeros. Every machine computes the same bits, so ranks with the
 * same gradients stay replicas.
 *
 * To add one: a file that steps a range of elements, with an entry, gf_optimizer_NAME: the arrays
 * of state, the settings and their defaults; and a row in documents/optimizer_bounds.c.
 * Checkpoints, exclusions, clipping, --optimizer, --list and the refusal of other optimisers'
 * options follow. A GPU computes it if the entry names one of the rules of trainer/device_update.c.
 * tests/unit/test_optim.c compares it with f64.
 */
#define GF_OPTIM_SLOTS 2 /* most arrays of state */

struct gf_optim_config {
	const char *name; /* of gf_optimizers */
	double momentum, weight_decay;
	double beta1, beta2; /* adamw */
	double eta;          /* lars */
	double epsilon;      /* adamw, lars */
	double clip_norm;    /* of the whole gradient; 0: not clipped */
	/* Tensors that get neither weight decay nor a rate of their own: a comma-separated list of
	 * "vectors" (biases and norms: one dimension) and of patterns for names (fnmatch); "none";
	 * NULL: what suits. */
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
	uint64_t steps; /* with this one */
	const float *grad;
	float *weight;
	float *slot[GF_OPTIM_SLOTS];
	size_t count_elems;
	/* Of the range's whole tensor: the squares of weights and of the gradient, each added up;
	 * NULL: what the step needs of them it adds up itself, of the part. Of some elements: those
	 * of the first range. */
	const double *squares;
};

/* The settings that some optimisers have and others refuse, as bits. */
enum gf_optim_setting {
	GF_OPTIM_MOMENTUM = 1 << 0,
	GF_OPTIM_BETAS = 1 << 1,
	GF_OPTIM_ETA = 1 << 2,
	GF_OPTIM_EPSILON = 1 << 3,
};

/* Which of a GPU's updates computes it. */
enum gf_optim_kernel { GF_OPTIM_NO_KERNEL, GF_OPTIM_SGD, GF_OPTIM_LARS, GF_OPTIM_ADAMW };

/* Values of an optimiser's own; NAN: the program's, which suit its data. */
struct gf_optim_defaults {
	double rate, weight_decay, epsilon, beta1, beta2;
};

struct gf_optimizer_ops {
	const char *name;
	const char *description; /* one line */
	unsigned place;          /* in listings, ascending (lib/list.sh) */
	const char *default_exclude;
	unsigned settings; /* enum gf_optim_setting */
	enum gf_optim_kernel kernel;
	struct gf_optim_defaults defaults;
	bool elementwise; /* neighbours may be stepped as one range */
	bool nesterov;
	bool rate_inside; /* the velocity has the rate in it */
	bool counts;      /* a step depends on how many there were */
	/* Its only state is a velocity u = momentum*u + ..., so that a selection may keep it, or
	 * move some elements of it alone. */
	bool velocity;
	const char *slots[GF_OPTIM_SLOTS + 1]; /* names of the state's arrays */
	/* A tensor's own rate, by the norms of its weights and of its gradient; not of those that
	 * are excluded. (optional: 1) */
	double (*ratio)(const struct gf_optim_config *c, double weight_norm, double grad_norm);
	void (*step)(const struct gf_optim_config *c, const struct gf_optim_part *p);
};

extern const struct gf_optimizer_ops *const gf_optimizers[]; /* NULL-ended */

/* In the middle of a step: weights first to first + count - 1 are new, and stay so until the next
 * one. (optional) */
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
	uint64_t steps;              /* that were begun */
	struct gf_optim_watch watch; /* the caller's to set */
};

/* NULL, with the names that there are in err: there is none of that name. */
const struct gf_optimizer_ops *gf_optimizer_find(const char *name, struct gf_error *err);

/* -EINVAL: no such optimiser, or a pattern that fits no tensor; -ENOMEM. */
int gf_optimizer_init(struct gf_optimizer *o, const struct gf_optim_config *config,
		      const struct gf_optim_tensor *tensors, size_t ntensors, struct gf_error *err);
void gf_optimizer_release(struct gf_optimizer *o);

/* |scale * grad| over all elements, the same bits on every machine. */
double gf_optimizer_norm(const struct gf_optimizer *o, float scale, const float *grad);
/* Before the gf_optimizer_step_some of a step; the others do it themselves. */
void gf_optimizer_begin(struct gf_optimizer *o);
/* Steps elements first to first + count - 1 alone; grad and weight are those of all. Elements that
 * are not whole tensors want all->squares of an optimiser that is not elementwise. Nothing is
 * clipped: all->scale has the factor in it. */
void gf_optimizer_step_some(struct gf_optimizer *o, const struct gf_optim_part *all, size_t first,
			    size_t count_elems);
/* What these elements add to the squares of each range, nranges pairs; and by what the gradient is
 * scaled when it is clipped, by those of all elements. */
void gf_optimizer_squares(const struct gf_optimizer *o, const float *grad, const float *weight,
			  size_t first, size_t count_elems, double *squares);
float gf_optimizer_clipped(const struct gf_optimizer *o, float scale, const double *squares);
/* grad is not changed; clipping scales it on the way. */
void gf_optimizer_step(struct gf_optimizer *o, double lr, float scale, const float *grad,
		       float *weight);

/* Some of a gradient: of elements first to first + count - 1. */
struct gf_optim_piece {
	size_t first, count_elems;
	const float *grad;
};

/*
 * Those elements only, pieces ascending; the others keep their state. With g = scale*grad +
 * decay*w: u = momentum*u + lr*q*g, w = w - u. The rate is inside u, so that a velocity which waits
 * is not scaled by a later rate.
 *
 * What looks at a whole tensor or at the whole gradient (q, LARS's ratio; a norm to clip at) looks
 * at what the pieces have of it, of weights as of gradients. pieces->grad is not changed. The
 * optimiser has a velocity.
 */
void gf_optimizer_step_pieces(struct gf_optimizer *o, double lr, float scale,
			      const struct gf_optim_piece *pieces, size_t npieces, float *weight);

/* The elements that a piece and a range have in common. */
struct gf_optim_common {
	size_t first, count_elems;
	const float *grad;
	bool excluded;
};

/* Calls back for the pieces cut at the optimiser's ranges, in order: for a step that is computed
 * elsewhere. */
void gf_optimizer_each_piece(const struct gf_optimizer *o, const struct gf_optim_piece *pieces,
			     size_t npieces,
			     void (*each)(void *ctx, const struct gf_optim_common *c), void *ctx);

#define GF_OPTIM_NO_DEFAULTS                                                                       \
	{                                                                                          \
		NAN, NAN, NAN, NAN, NAN                                                            \
	}

#endif
