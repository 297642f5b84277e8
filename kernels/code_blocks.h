/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_CODE_BLOCKS_H
#define GF_KERNELS_CODE_BLOCKS_H

#include "sets.h"

/*
 * A set's codec with blocks, name_encode and so on, out of its encode(to, from,
 * n) and decode(to, from, n, add) for one block; bytes(n) is what a block of n
 * elements takes on the wire.
 */
#define GF_CODE_BLOCKS(name, bytes)                                            \
	static void name##_encode(void *wire, const float *from, size_t n,     \
				  size_t block_elems)                          \
	{                                                                      \
		uint8_t *to = wire;                                            \
                                                                               \
		for (size_t count; n; n -= count, from += count) {             \
			count = n < block_elems ? n : block_elems;             \
			encode(to, from, count);                               \
			to += bytes(count);                                    \
		}                                                              \
	}                                                                      \
	static void name##_decode(float *to, const void *wire, size_t n,       \
				  size_t block_elems)                          \
	{                                                                      \
		const uint8_t *from = wire;                                    \
                                                                               \
		for (size_t count; n; n -= count, to += count) {               \
			count = n < block_elems ? n : block_elems;             \
			decode(to, from, count, 0);                            \
			from += bytes(count);                                  \
		}                                                              \
	}                                                                      \
	static void name##_decode_add(float *to, const void *wire, size_t n,   \
				      size_t block_elems)                      \
	{                                                                      \
		const uint8_t *from = wire;                                    \
                                                                               \
		for (size_t count; n; n -= count, to += count) {               \
			count = n < block_elems ? n : block_elems;             \
			decode(to, from, count, 1);                            \
			from += bytes(count);                                  \
		}                                                              \
	}

#endif
