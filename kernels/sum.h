/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_SUM_H
#define GF_KERNELS_SUM_H

#include <stddef.h>

/* How every set adds up (gf_kernels.h): f32 is precise enough for a block, and 32 lanes keep two
 * vector adders busy. */
#define GF_SUM_BLOCK 4096
#define GF_SUM_LANES 32

static inline double add_lanes(double total, const float *lanes)
{
	for (size_t i = 0; i < GF_SUM_LANES; i++)
		total += lanes[i];
	return total;
}

#endif
