/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_OPTIM_EMA_H
#define GF_OPTIM_EMA_H

#include <stdbool.h>
#include <stddef.h>

/*
 * An exponential moving average of weights, PyTorch's get_ema_multi_avg_fn: the weights of the
 * first step, and after each later one
 *	average = decay*average + (1 - decay)*weight
 * The same bits on every machine.
 */
struct gf_ema {
	double decay;
	float *values; /* NULL: none is wanted */
	size_t count_elems;
	bool begun; /* a resumed one is */
};

/* Room for so many weights. -ENOMEM. */
int gf_ema_init(struct gf_ema *e, double decay, size_t count_elems);
void gf_ema_release(struct gf_ema *e);

void gf_ema_note(struct gf_ema *e, const float *weight);
/* Changes places with the weights, and back. */
void gf_ema_swap(struct gf_ema *e, float *weight);

#endif
