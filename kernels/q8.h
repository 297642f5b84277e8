/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_Q8_H
#define GF_KERNELS_Q8_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "bits.h"

#define GF_Q8_ZERO   1e-36f /* 127/max must be finite */
#define GF_Q8_HEADER 4

/* Writes a block's header for its largest magnitude. Returns the factor that
 * makes bytes of values; 0 if the block is zero, NaN if it is not finite. */
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

/* Half away from zero, exactly: what is cut off is itself exact. */
static inline int8_t q8_round(float x)
{
	int whole = (int)x;
	float rest = x - (float)whole;

	return (int8_t)(whole + (rest >= 0.5f) - (rest <= -0.5f));
}

#endif
