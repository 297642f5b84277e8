/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_X86_AVX512_H
#define GF_KERNELS_X86_AVX512_H

#include <immintrin.h>
#include <stddef.h>

/* The lanes of a vector of 16 that `left` elements still fill. */
static inline __mmask16 lane_mask(size_t left)
{
	return left < 16 ? (__mmask16)((1u << left) - 1) : 0xffff;
}

#endif
