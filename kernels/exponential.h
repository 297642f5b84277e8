/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_EXPONENTIAL_H
#define GF_KERNELS_EXPONENTIAL_H

#include "vectorise.h"

/*
 * The exponential, made of sums and products, so that the compiler makes vectors of it and every
 * set comes to the same bits: within 3e-7 of the value, relatively (Moshier's Cephes has the
 * polynomial, and that of tanh).
 */

/* Without a branch, which would keep vectors away. */
GF_VECTOR float choose(int first, float a, float b)
{
	const uint32_t mask = -(uint32_t)first;

	return float_of((bits_of(a) & mask) | (bits_of(b) & ~mask));
}

/* 0 < result < infinity: x is held within -87 and 88; NaN stays. */
GF_VECTOR float exponential(float x)
{
	const float round = 0x1.8p23f; /* the sum has no fraction */
	float n, r, p;
	uint32_t scale;

	x = choose(x > 88, 88, x);
	x = choose(x < -87, -87, x);
	n = x * 1.44269504f + round;
	scale = (bits_of(n) + 127) << 23;
	n -= round;
	r = x - n * 0.693359375f + n * 2.12194440e-4f; /* ln 2 in two parts */
	p = 1.9875691500e-4f;
	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	return (p * r * r + r + 1) * float_of(scale);
}

#endif
