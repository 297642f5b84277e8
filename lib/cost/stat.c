/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/stat.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"

GF_ORDER(ascending, double, GF_BY(*x, *y))

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

/* Student's t, 0.95-quantile, by degrees of freedom. */
static double student(size_t freedom)
{
	static const double t[] = {INFINITY, 6.314, 2.920, 2.353, 2.132, 2.015,
				   1.943,    1.895, 1.860, 1.833, 1.812};
	const size_t n = sizeof(t) / sizeof(*t);

	return freedom < n ? t[freedom] : 1.645 + 1.7 / (double)freedom;
}

double gf_stat_next(const double *values, size_t count)
{
	double sum = 0, squares = 0, n = (double)count, mean;

	for (size_t i = 0; i < count; i++)
		sum += values[i];
	mean = sum / n;
	for (size_t i = 0; i < count; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	if (count < 2 || !(mean > 0))
		return INFINITY;
	return student(count - 1) * sqrt(squares / (n - 1) * (1 + 1 / n)) / mean;
}

double gf_stat_next_difference(const double *values, size_t count)
{
	double squares = 0;

	for (size_t i = 0; i < count; i++)
		squares += values[i] * values[i];
	return count < 1 ? INFINITY : student(count) * sqrt(squares / (double)count);
}
