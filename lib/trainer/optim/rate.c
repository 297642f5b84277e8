/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/optim/rate.h"

#include <math.h>
#include <stdbool.h>

/* --- functions whose last bit does not depend on the library ---------------
 */

/* sin(pi/2 * x), 0 <= x <= 1: the series on whichever side of 1/2 is short. */
static double sine_quarter(double x)
{
	bool small = x <= 0.5;
	double y = M_PI_2 * (small ? x : 1 - x);
	double term = small ? y : 1, sum = term;

	for (int k = small ? 2 : 1; k < 22; k += 2) {
		term *= -y * y / (k * (k + 1));
		sum += term;
	}
	return sum;
}

/* ln x = 2 artanh((m - 1) / (m + 1)) + e ln 2, x = m 2^e, m about 1. */
static double logarithm(double x)
{
	int e, k;
	double m = frexp(x, &e), s, power, sum = 0;

	if (m < M_SQRT1_2) {
		m *= 2;
		e--;
	}
	power = s = (m - 1) / (m + 1);
	for (k = 1; k < 27; k += 2, power *= s * s)
		sum += power / k;
	return 2 * sum + e * M_LN2;
}

static double exponential(double x)
{
	double e = floor(x / M_LN2 + 0.5), r = x - e * M_LN2, term = 1, sum = 1;

	for (int k = 1; k < 20; k++) {
		term *= r / k;
		sum += term;
	}
	return e < -2000 ? 0 : ldexp(sum, (int)e);
}

/* 0 < x <= 1 */
static double power_of(double x, double power)
{
	return x == 1 ? 1 : exponential(power * logarithm(x));
}

/* --- rates ------------------------------------------------------------------
 */

static double stepped(const struct gf_rate *r, size_t step)
{
	double rate = r->peak;

	for (size_t i = 0; i < r->ndrops && r->drops[i] <= step; i++)
		rate *= r->factor;
	return rate;
}

double gf_rate_at(const struct gf_rate *r, size_t step)
{
	double left, sine;

	if (step < r->warmup_steps)
		return r->peak * (double)(step + 1) / (double)r->warmup_steps;
	if (r->shape == GF_RATE_CONSTANT)
		return r->peak;
	if (r->shape == GF_RATE_STEP)
		return stepped(r, step);
	if (step >= r->total_steps)
		return r->shape == GF_RATE_COSINE ? r->peak * r->floor : 0;
	left = (double)(r->total_steps - step) / (double)(r->total_steps - r->warmup_steps);
	if (r->shape == GF_RATE_LINEAR)
		return r->peak * left;
	if (r->shape == GF_RATE_POLY)
		return r->peak * power_of(left, r->power);
	sine = sine_quarter(left);
	/* sine * sine is (1 - cos(pi * left)) / 2 */
	return r->peak * sine * sine * (1 - r->floor) + r->peak * r->floor;
}
