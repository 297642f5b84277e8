/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_X86_MINIFLOAT_LANES_H
#define GF_KERNELS_X86_MINIFLOAT_LANES_H

#include <immintrin.h>
#include <string.h>

#include "minifloat.h"
#include "sets.h"
#include "vectorise.h"

typedef uint32_t gf_bits_lanes __attribute__((vector_size(4 * GF_LANES)));

/* Each set of instructions has its own of these four. This one gives a where x < y, else b. */
GF_VECTOR gf_bits_lanes below(gf_bits_lanes x, uint32_t y, gf_bits_lanes a, gf_bits_lanes b);
GF_VECTOR gf_bits_lanes least(gf_bits_lanes x, uint32_t y);
/* Codes to and from the wire. */
GF_VECTOR void put(struct minifloat f, uint8_t *to, gf_bits_lanes codes);
GF_VECTOR gf_bits_lanes get(struct minifloat f, const uint8_t *from);

/* minifloat_of */
GF_VECTOR gf_bits_lanes codes_of(struct minifloat f, gf_lanes v)
{
	const uint32_t shift = 23 - f.fraction, rounder = minifloat_rounder(f);
	const gf_bits_lanes b = (gf_bits_lanes)v, a = b & 0x7fffffff;
	const gf_bits_lanes small = (gf_bits_lanes)((gf_lanes)a + float_of(rounder)) - rounder;
	gf_bits_lanes code = a + ((1u << (shift - 1)) - 1 - minifloat_rebias(f));

	code = (code + (a >> shift & 1)) >> shift;
	code = below(a, minifloat_least_normal(f), small, code);
	return b >> 31 << (f.bits - 1) | least(code, f.largest);
}

/* minifloat_to */
GF_VECTOR gf_lanes values_of(struct minifloat f, gf_bits_lanes codes)
{
	const uint32_t top = 1u << (f.bits - 1);
	const gf_bits_lanes a = codes & (top - 1), sign = (codes & top) << (32 - f.bits);
	const gf_lanes small = __builtin_convertvector((gf_int_lanes)a, gf_lanes);
	gf_bits_lanes value = (a << (23 - f.fraction)) + minifloat_rebias(f);

	value = below(a, 1u << f.fraction, (gf_bits_lanes)(small * float_of(minifloat_step(f))),
		      value);
	return (gf_lanes)(sign | below(a, f.largest + 1, value, a * 0 + 0x7fc00000));
}

GF_VECTOR size_t encode(struct minifloat f, uint8_t *to, const float *from, size_t n)
{
	const float inverse = scale_inverse(*to);
	size_t i = 0;

	to += GF_SCALE_BYTES;
	for (; i + GF_LANES <= n; i += GF_LANES)
		put(f, to + i * f.bits / 8, codes_of(f, gf_lanes_at(from + i) * inverse));
	return i;
}

GF_VECTOR size_t decode(struct minifloat f, float *to, const uint8_t *from, size_t n, int add)
{
	const float scale = scale_to(*from);
	size_t i = 0;

	from += GF_SCALE_BYTES;
	for (; i + GF_LANES <= n; i += GF_LANES) {
		gf_lanes v = values_of(f, get(f, from + i * f.bits / 8)) * scale;

		if (add)
			v += gf_lanes_at(to + i);
		memcpy(to + i, &v, sizeof(v));
	}
	return i;
}

#include "code_minifloat.h"

#endif
