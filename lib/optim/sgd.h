/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_OPTIM_SGD_H
#define GF_OPTIM_SGD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * SGD with momentum and weight decay, in place, on flat arrays of one tensor:
 *	g = scale*grad + weight_decay*w;  u = momentum*u + g;  w = w - lr*u
 * (PyTorch's form; with nesterov w = w - lr*(g + momentum*u)). scale turns a
 * sum over ranks into a mean. The same bits on every machine.
 */
struct gf_sgd {
	double lr, momentum, weight_decay;
	bool nesterov;
};

/* An update between passes whose time is measured, at a rate by which nothing
 * grows, however many passes there are. */
extern const struct gf_sgd gf_sgd_between_passes;

/* With the rate inside u, so that a velocity which waits is not scaled by a
 * later one: u = momentum*u + lr*g, where the gradient's scale has lr, too. */
struct gf_sgd gf_sgd_folded(const struct gf_sgd *o);

void gf_sgd_update(const struct gf_sgd *o, float scale, const float *grad,
		   float *weight, float *velocity, size_t count_elems);

#endif
