/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_NN_SLIDING_H
#define GF_NN_SLIDING_H

#include <stddef.h>

/*
 * A window slides over `in` places padded by `pad` on both sides, `stride`
 * apart, and gives `out` places. Its tap k at output o sits at input
 * o*stride + k - pad. These give the outputs at which that is inside.
 */
static inline size_t gf_window_first(size_t k, size_t pad, size_t stride)
{
	return k >= pad ? 0 : (pad - k + stride - 1) / stride;
}

static inline size_t gf_window_end(size_t k, size_t pad, size_t stride,
				   size_t in, size_t out)
{
	size_t end;

	if (in + pad <= k)
		return 0;
	end = (in + pad - k + stride - 1) / stride;
	return end < out ? end : out;
}

#endif
