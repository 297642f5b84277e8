/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_OPTIM_SGD_H
#define GF_OPTIM_SGD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * SGD with momentum and weight decay, in place, on flat arrays of one tensor:
 *	g = scale*grad + weight_decay*w;  u = momentum*u + g;  w = w - lr*u
 * (PyTorch's form; with nesterov w = w - lr*(g + momentum*u)). scale turns a sum over ranks into a
 * mean. The same bits on every machine.
 */
struct gf_sgd {
	double lr, momentum, weight_decay;
	bool nesterov;
};

/* An update between passes whose time is measured, at a rate by which nothing grows, however many
 * passes there are. */
extern const struct gf_sgd gf_sgd_between_passes;

/* With the rate inside u, so that a velocity which waits is not scaled by a later one: u =
 * momentum*u + lr*g, where the gradient's scale has lr, too. */
struct gf_sgd gf_sgd_folded(const struct gf_sgd *o);

void gf_sgd_update(const struct gf_sgd *o, float scale, const float *grad, float *weight,
		   float *velocity, size_t count_elems);

/*
 * LARS (You, Gitman and Ginsburg 2017): SGD whose rate is scaled per tensor, so that no layer's
 * step is large beside its weights. With g = scale*grad:
 *	trust = eta * |w| / (|g| + weight_decay*|w| + epsilon)
 *	u = momentum*u + trust*(g + weight_decay*w);  w = w - lr*u
 * or, with the rate inside u, as the paper's algorithm 1 has it,
 *	u = momentum*u + lr*trust*(g + weight_decay*w);  w = w - u
 * A rate that changes then holds for the gradients of its own step, not for the older ones in u.
 * With a constant rate both are the same.
 *
 * trust is 1 where |w| or |g| is 0. Biases and norms are commonly left out:
 * they are `plain`. The same bits on every machine.
 */
struct gf_lars {
	struct gf_sgd sgd;
	double eta;     /* commonly 0.001 */
	double epsilon; /* against a vanishing divisor; may be 0 */
	bool inside;    /* the rate */
	bool plain;     /* trust is 1 and nothing decays */
};

/* The trust ratio of one tensor. */
double gf_lars_trust(const struct gf_lars *o, float scale, const float *grad, const float *weight,
		     size_t count_elems);
void gf_lars_update(const struct gf_lars *o, float scale, const float *grad, float *weight,
		    float *velocity, size_t count_elems);

#endif
