/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_X86_AVX512_H
#define GF_KERNELS_X86_AVX512_H

#include <immintrin.h>
#include <stddef.h>

/* The lowest `left` of 16 lanes, for left < 16: the end of an array. */
static inline __mmask16 tail_mask(size_t left)
{
	return (__mmask16)((1u << left) - 1);
}

#endif
