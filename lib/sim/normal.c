/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/normal.h"

#include <float.h>
#include <math.h>

/* P(X <= x), without cancellation in the left tail. */
static double cumulative(double x)
{
	return 0.5 * erfc(-x / sqrt(2));
}

/*
 * Newton's method on the lower half, where probabilities keep their digits,
 * from the tail's asymptote x = -sqrt(-2 ln p). The distribution is log-concave
 * there: Newton on its logarithm converges from any start.
 */
static double lower_half(double p)
{
	double x = -sqrt(fmax(-2 * log(2 * p), 0));
	int i;

	for (i = 0; i < 60; i++) {
		double c = cumulative(x);
		double density = exp(-x * x / 2) / sqrt(2 * M_PI);
		double step = (log(c) - log(p)) * c / density;

		x -= step;
		if (fabs(step) <= 1e-15 * fmax(1, fabs(x)))
			break;
	}
	return x;
}

double gf_normal_largest(double u, double n)
{
	double below, above; /* of one deviate at the largest's quantile u */

	u = fmin(fmax(u, DBL_MIN), 1 - DBL_EPSILON / 2);
	below = exp(log(u) / n);
	above = -expm1(log(u) / n);
	return below <= 0.5 ? lower_half(below) : -lower_half(above);
}
