/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_HALF_H
#define GF_KERNELS_HALF_H

#include "bits.h"

/* Sixteen-bit floating point. f16: 1 + 5 + 10 bits; bf16: 1 + 8 + 7. */

GF_INLINE uint16_t f16_of(float x)
{
	const uint32_t b = bits_of(x), a = b & 0x7fffffff;
	const uint32_t sign = b >> 16 & 0x8000;

	if (a > 0x7f800000) /* NaN, made quiet */
		return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x3ff));
	if (a >= 0x477ff000) /* rounds to 65536 or more */
		return (uint16_t)(sign | 0x7c00);
	/* Below 2^-14 f16 counts in 2^-24, as f32 does between 0.5 and 1: the sum rounds. */
	if (a < 0x38800000)
		return (uint16_t)(sign | (bits_of(float_of(a) + 0.5f) - 0x3f000000));
	return (uint16_t)(sign | (a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13);
}

GF_INLINE float f16_to(uint16_t h)
{
	const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	const uint32_t exponent = h >> 10 & 31, fraction = h & 0x3ff;

	if (exponent == 31)
		return float_of(sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000 : 0));
	if (exponent == 0)
		return float_of(sign | bits_of((float)fraction * 0x1p-24f));
	return float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

GF_INLINE uint16_t bf16_of(float x)
{
	const uint32_t b = bits_of(x);

	if ((b & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(b >> 16 | 0x40);
	return (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

GF_INLINE uint16_t trunc16_of(float x)
{
	const uint32_t b = bits_of(x);

	/* A NaN whose bits are all in the lower half would become infinity. */
	if ((b & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(b >> 16 | 0x40);
	return (uint16_t)(b >> 16);
}

GF_INLINE float bf16_to(uint16_t h)
{
	return float_of((uint32_t)h << 16);
}

#endif
