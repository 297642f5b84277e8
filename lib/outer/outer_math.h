/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_OUTER_OUTER_MATH_H
#define GF_OUTER_OUTER_MATH_H

#include <stddef.h>

/* The equations of doc/period.h, of n elements each. */

/* d = w - x */
void gf_outer_difference(float *d, const float *w, const float *x, size_t n);
/* v = m v + share d; w = w - r (share d + m v). v NULL: m is 0. */
void gf_outer_update(float *w, float *v, const float *d, float share, float r,
		     float m, size_t n);
/* x = a x + (1 - a) w */
void gf_outer_mix(float *x, const float *w, float a, size_t n);

#endif
