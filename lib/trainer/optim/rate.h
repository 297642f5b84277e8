/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_OPTIM_RATE_H
#define GF_OPTIM_RATE_H

#include <stddef.h>

/*
 * The learning rate of each step, a pure function of the step's number: a resumed run needs nothing
 * but that number. It is made by sums, products and quotients alone, so that ranks on hosts with
 * different mathematical libraries come to the same bits.
 *
 * Linear scaling (Goyal et al. 2017): a rate chosen for a global batch of `reference` samples is
 * multiplied by batch / reference. Warm-up: step s of the first `warmup_steps` uses (s + 1) /
 * warmup_steps of the rate. After it the rate follows its shape down to the last step: linear,
 * cosine and poly fall to 0, cosine to a floor if it has one, poly as the share that is left to the
 * power `power`; step multiplies the rate by `factor` at each of `drops`.
 */
enum gf_rate_shape { GF_RATE_CONSTANT, GF_RATE_LINEAR, GF_RATE_COSINE, GF_RATE_STEP, GF_RATE_POLY };

struct gf_rate {
	double peak;
	enum gf_rate_shape shape;
	size_t warmup_steps;
	size_t total_steps; /* linear, cosine and poly end there */
	double power;
	double factor;
	const size_t *drops; /* borrowed, ascending: steps from 0 */
	size_t ndrops;
	double floor; /* cosine ends at this share of the peak */
};

static inline double gf_rate_scaled(double rate, double reference_batch, double global_batch)
{
	return rate * global_batch / reference_batch;
}
double gf_rate_at(const struct gf_rate *r, size_t step);

#endif
