/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_MINIFLOAT_H
#define GF_KERNELS_MINIFLOAT_H

#include <stddef.h>

#include "bits.h"

/*
 * fp8 and fp4: floating point of 8 and 4 bits in blocks that share a scale.
 *
 * Elements: e4m3 (OCP, 8-bit Floating Point Specification, 2023) has a sign, 4 bits of exponent
 * (bias 7) and 3 of fraction; it ends at 448, has no infinity, and S.1111.111 is NaN. e2m1 (OCP,
 * Microscaling Formats v1.0, 2023) has a sign, 2 bits of exponent (bias 1) and 1 of fraction: 0,
 * .5, 1, 1.5, 2, 3, 4,
 * 6. With exponent e and fraction f, of m bits, a code c means
 *	c = 2^(e - bias) * (1 + f/2^m), or with e = 0: 2^(1 - bias) * f/2^m.
 *
 * Scale: e8m0 of the same specification, X = 2^(s - 127) for the byte s; 255 is NaN. A block is s,
 * then the codes of x/X, to nearest even; two of e2m1 share a byte, the first in the low half.
 * Back: c*X, which is exact. With a the
 * largest |x| of the block,
 *	fp4: X = 2^(floor(log2 a) - 2), as the specification has it. a/X lies
 *	in [4, 8), and what is above 6 becomes 6: at most a/4 is lost.
 *	fp8: X = 2^(floor(log2 a) - 8), or twice that if a would round beyond
 *	448. So a/X lies in (232, 464], nothing is cut off, and the error is at
 *	most 1/17 of a value (1/1024 of X below X/64).
 * s is never below 0. A block with infinity or NaN (fp8: or with 1.8125*2^127 and above) has s =
 * 255 and decodes to NaN.
 *
 * Why fp8's scale is a power of two, too, and not a/448: elements with an exponent of their own
 * lose no precision by it, dividing and multiplying are exact, and decoded values encode to the
 * same bytes again. Ranks that pass a sum on thus keep the bits of those that made it.
 *
 * Example: 100, -30, 0.3, 0. a = 100 has exponent 6.
 *	fp4: X = 16, s = 131; x/X = 6.25, -1.875, 0.019, 0 become 6, -2, 0, 0:
 *	codes 7, 12, 0, 0, bytes 131 199 0. Back: 96, -32, 0, 0.
 *	fp8: X = 1/4, s = 125; x/X = 400, -120, 1.2, 0 become 384 (half way to
 *	416: even), -120, 1.25, 0: bytes 125 124 239 58 0. Back: 96, -30,
 *	0.3125, 0.
 */
struct minifloat {
	uint32_t bits, fraction, bias;
	uint32_t largest;  /* finite magnitude, as a code */
	uint32_t exponent; /* of that; the scale's is so much less than a's */
	/* Added to a's bits, carries into the exponent if a would round beyond the largest. */
	uint32_t carry;
};

GF_INLINE struct minifloat e4m3(void)
{
	const struct minifloat f = {8, 3, 7, 0x7e, 8, 0x17ffff};

	return f;
}

GF_INLINE struct minifloat e2m1(void)
{
	const struct minifloat f = {4, 1, 1, 7, 2, 0};

	return f;
}

/* The bits of the f32s that conversions are made of. */
GF_INLINE uint32_t minifloat_rebias(struct minifloat f)
{
	return (127 - f.bias) << 23;
}

GF_INLINE uint32_t minifloat_least_normal(struct minifloat f)
{
	return (128 - f.bias) << 23;
}

/* The distance between the numbers below that. */
GF_INLINE uint32_t minifloat_step(struct minifloat f)
{
	return (128 - f.bias - f.fraction) << 23;
}

/* An f32 of that size has the same distance to the next. */
GF_INLINE uint32_t minifloat_rounder(struct minifloat f)
{
	return minifloat_step(f) + (23u << 23);
}

/* x is no NaN. */
GF_INLINE uint32_t minifloat_of(struct minifloat f, float x)
{
	const uint32_t a = magnitude(x), shift = 23 - f.fraction;
	const uint32_t sign = bits_of(x) >> 31 << (f.bits - 1);
	const uint32_t rounder = minifloat_rounder(f);
	uint32_t code;

	if (a < minifloat_least_normal(f)) /* the sum rounds */
		code = bits_of(float_of(a) + float_of(rounder)) - rounder;
	else
		code = (a + (1u << (shift - 1)) - 1 + (a >> shift & 1) - minifloat_rebias(f)) >>
		       shift;
	return sign | (code < f.largest ? code : f.largest);
}

GF_INLINE float minifloat_to(struct minifloat f, uint32_t code)
{
	const uint32_t top = 1u << (f.bits - 1), a = code & (top - 1);
	const uint32_t sign = (code & top) << (32 - f.bits);

	if (a > f.largest)
		return float_of(sign | 0x7fc00000);
	if (a >> f.fraction == 0)
		return float_of(sign | bits_of((float)a * float_of(minifloat_step(f))));
	return float_of(sign | ((a << (23 - f.fraction)) + minifloat_rebias(f)));
}

/* --- scales --------------------------------------------------------------- */

#define GF_SCALE_BYTES 1
#define GF_SCALE_NAN   255

/* A block has the largest magnitude with these bits. */
GF_INLINE uint8_t scale_of(struct minifloat f, uint32_t largest)
{
	const uint32_t exponent = (largest + f.carry) >> 23;

	if (exponent >= 255)
		return GF_SCALE_NAN;
	return (uint8_t)(exponent > f.exponent ? exponent - f.exponent : 0);
}

/* 2^(scale - 127), or NaN. */
GF_INLINE float scale_to(uint8_t scale)
{
	if (scale == GF_SCALE_NAN)
		return float_of(0x7fc00000);
	return float_of(scale ? (uint32_t)scale << 23 : 0x00400000);
}

/* 2^(127 - scale); not of a NaN's. */
GF_INLINE float scale_inverse(uint8_t scale)
{
	return float_of((254u - scale) << 23);
}

/* --- blocks --------------------------------------------------------------- */

GF_INLINE size_t minifloat_bytes(struct minifloat f, size_t n)
{
	return GF_SCALE_BYTES + (n * f.bits + 7) / 8;
}

GF_INLINE size_t fp8_bytes(size_t n)
{
	return minifloat_bytes(e4m3(), n);
}

GF_INLINE size_t fp4_bytes(size_t n)
{
	return minifloat_bytes(e2m1(), n);
}

/* A code's place in its byte. */
GF_INLINE uint32_t minifloat_shift(struct minifloat f, size_t i)
{
	return (uint32_t)i * f.bits % 8;
}

/* Elements i to n - 1 follow; i begins a byte. `to` and `from` are a block's.
 */
GF_INLINE void minifloat_encode(struct minifloat f, uint8_t *to, const float *from, size_t i,
				size_t n)
{
	const float inverse = scale_inverse(*to);

	to += GF_SCALE_BYTES;
	for (; i < n; i++) {
		const uint32_t code = minifloat_of(f, from[i] * inverse);
		uint8_t *byte = to + i * f.bits / 8;
		const uint32_t shift = minifloat_shift(f, i);

		*byte = (uint8_t)(shift ? *byte | code << shift : code);
	}
}

GF_INLINE void minifloat_decode(struct minifloat f, float *to, const uint8_t *from, size_t i,
				size_t n, int add)
{
	const float scale = scale_to(*from);

	from += GF_SCALE_BYTES;
	for (; i < n; i++) {
		const uint32_t byte = from[i * f.bits / 8];
		const uint32_t code = byte >> minifloat_shift(f, i) & ((1u << f.bits) - 1);
		const float x = minifloat_to(f, code) * scale;

		to[i] = add ? to[i] + x : x;
	}
}

#endif
