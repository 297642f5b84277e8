/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CODE_BLOCKS_H
#define GF_KERNELS_CODE_BLOCKS_H

#include "sets.h"

/*
 * Defines name_encode, name_decode and name_decode_add of a codec with blocks. The including file
 * has two functions: name_encode_block(to, from, n) and name_decode_block(to, from, n, add).
 * name_bytes(n) is the size of a block of n elements on the wire.
 */
#define GF_CODE_BLOCKS(name)                                                                       \
	static void name##_encode(void *wire, const float *from, size_t n, size_t block_elems)     \
	{                                                                                          \
		uint8_t *to = wire;                                                                \
                                                                                                   \
		for (size_t count; n; n -= count, from += count) {                                 \
			count = n < block_elems ? n : block_elems;                                 \
			name##_encode_block(to, from, count);                                      \
			to += name##_bytes(count);                                                 \
		}                                                                                  \
	}                                                                                          \
	GF_DECODE_BLOCKS(name, name##_decode, 0)                                                   \
	GF_DECODE_BLOCKS(name, name##_decode_add, 1)

#define GF_DECODE_BLOCKS(name, function, add)                                                      \
	static void function(float *to, const void *wire, size_t n, size_t block_elems)            \
	{                                                                                          \
		const uint8_t *from = wire;                                                        \
                                                                                                   \
		for (size_t count; n; n -= count, to += count) {                                   \
			count = n < block_elems ? n : block_elems;                                 \
			name##_decode_block(to, from, count, add);                                 \
			from += name##_bytes(count);                                               \
		}                                                                                  \
	}

#endif
