/* SPDX-License-Identifier: BSD-3-Clause */
#include "optim/rate.h"

#include <math.h>

double gf_rate_scaled(double rate, double reference_batch, double global_batch)
{
	return rate * global_batch / reference_batch;
}

static double stepped(const struct gf_rate *r, size_t step)
{
	double rate = r->peak;
	size_t i;

	for (i = 0; i < r->ndrops && r->drops[i] <= step; i++)
		rate *= r->factor;
	return rate;
}

double gf_rate_at(const struct gf_rate *r, size_t step)
{
	double left;

	if (step < r->warmup_steps)
		return r->peak * (double)(step + 1) / (double)r->warmup_steps;
	if (r->shape == GF_RATE_CONSTANT)
		return r->peak;
	if (r->shape == GF_RATE_STEP)
		return stepped(r, step);
	if (step >= r->total_steps)
		return 0;
	left = (double)(r->total_steps - step) /
	       (double)(r->total_steps - r->warmup_steps);
	if (r->shape == GF_RATE_LINEAR)
		return r->peak * left;
	if (r->shape == GF_RATE_POLY)
		return r->peak * pow(left, r->power);
	return r->peak * 0.5 * (1 - cos(M_PI * left));
}
