/* SPDX-License-Identifier: BSD-3-Clause */
#include "outer/outer.h"

#include <string.h>

void gf_outer_difference(float *d, const float *w, const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		d[i] = w[i] - x[i];
}

void gf_outer_update(float *w, float *v, const float *d, float share, float r,
		     float m, size_t n)
{
	size_t i;

	for (i = 0; !v && i < n; i++)
		w[i] -= r * (share * d[i]);
	for (i = 0; v && i < n; i++) {
		const float mean = share * d[i];

		v[i] = m * v[i] + mean;
		w[i] -= r * (mean + m * v[i]);
	}
}

void gf_outer_mix(float *x, const float *w, float a, size_t n)
{
	size_t i;

	if (a == 0)
		memcpy(x, w, n * sizeof(*x));
	for (i = 0; a != 0 && i < n; i++)
		x[i] = a * x[i] + (1 - a) * w[i];
}
