/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COST_STAT_H
#define GF_COST_STAT_H

#include <stddef.h>

/* Order statistics of measured times. Each sorts the values in place; count must be > 0. */

/* The q-quantile, 0 <= q <= 1, linear between neighbours. */
double gf_stat_quantile(double *values, size_t count, double q);
double gf_stat_median(double *values, size_t count);
/* Interquartile range: what this project calls spread. */
double gf_stat_spread(double *values, size_t count);

/* Half of the interval, about their mean, that one more value of this kind lies in with a
 * probability of 0.9; as a share of the mean, and infinite for one value. Does not sort. */
double gf_stat_next(const double *values, size_t count);
/* Half of the interval about 0 that one more difference lies in with a probability of 0.9. */
double gf_stat_next_difference(const double *values, size_t count);

#endif
