/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_NORMAL_H
#define GF_SIM_NORMAL_H

/* The quantile u, 0 < u < 1, of the largest of n standard normal deviates:
 * a draw of the largest for a uniform u, whatever n is. */
double gf_normal_largest(double u, double n);

#endif
