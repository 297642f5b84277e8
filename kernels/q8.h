/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_Q8_H
#define GF_KERNELS_Q8_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bits.h"

#define GF_Q8_ZERO   1e-36f /* 127/max must be finite */
#define GF_Q8_HEADER 4

/* The bytes of a block of n elements on the wire. */
static inline size_t q8_bytes(size_t n)
{
	return GF_Q8_HEADER + n;
}

/* Writes a block's header for its largest magnitude. Returns the factor that makes bytes of values;
 * 0 if the block is zero, NaN if it is not finite. */
static inline float q8_begin(uint8_t *to, uint32_t largest)
{
	float max = float_of(largest);

	if (max < GF_Q8_ZERO)
		max = 0;
	memcpy(to, &max, sizeof(max));
	if (max == 0)
		return 0;
	return isfinite(max) ? 127 / max : NAN;
}

static inline float q8_step(const uint8_t *from)
{
	float max;

	memcpy(&max, from, sizeof(max));
	return max / 127;
}

/* Just below a half: added to any magnitude below 2^22 and cut to an integer, it rounds half away
 * from zero exactly (0.5 itself would lift 0.49999997). */
#define GF_Q8_HALF 0x1.fffffep-2f

GF_INLINE int8_t q8_round(float x)
{
	return (int8_t)(x + copysignf(GF_Q8_HALF, x));
}

#endif
