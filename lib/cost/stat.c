/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/stat.h"

#include <assert.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double at(const double *sorted, size_t count, double q)
{
	double place = q * (double)(count - 1);
	size_t below = (size_t)place;
	double part = place - (double)below;

	if (below + 1 >= count)
		return sorted[count - 1];
	return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

double gf_stat_quantile(double *values, size_t count, double q)
{
	assert(count > 0 && q >= 0 && q <= 1);
	qsort(values, count, sizeof(*values), ascending);
	return at(values, count, q);
}

double gf_stat_median(double *values, size_t count)
{
	return gf_stat_quantile(values, count, 0.5);
}

double gf_stat_spread(double *values, size_t count)
{
	double low = gf_stat_quantile(values, count, 0.25);

	return at(values, count, 0.75) - low;
}
