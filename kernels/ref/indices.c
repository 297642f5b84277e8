/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ascending indices in few bits (Elias 1974, "Efficient storage and retrieval by content and
 * address of static files"): the low bits of each as they are, one after the other; then, for index
 * i, a one at bit i + (index >> low_bits) of a row of upper_bits bits. Without upper bits the low
 * ones are the whole index.
 *
 *	0, 5, 6, 13 with 2 low bits: 00 01 10 01; ones at 0, 2, 3, 6
 */
#include <string.h>

#include "sets.h"

#define WORD_BYTES sizeof(uint64_t)

static size_t bytes_of(size_t bits)
{
	return (bits + 7) / 8;
}

static void pack_low(uint8_t *to, const uint32_t *index, size_t k, unsigned bits)
{
	const uint64_t mask = ((uint64_t)1 << bits) - 1;
	uint64_t word = 0;
	unsigned held = 0;

	for (size_t i = 0; i < k; i++) {
		word |= (index[i] & mask) << held;
		held += bits;
		if (held < 32)
			continue;
		memcpy(to, &word, sizeof(uint32_t));
		to += sizeof(uint32_t);
		word >>= 32;
		held -= 32;
	}
	memcpy(to, &word, bytes_of(held));
}

static void pack_indices(void *wire, const uint32_t *index, size_t k, unsigned low_bits,
			 size_t upper_bits)
{
	uint8_t *upper = (uint8_t *)wire + bytes_of(k * low_bits);

	pack_low(wire, index, k, low_bits);
	memset(upper, 0, bytes_of(upper_bits));
	for (size_t i = 0; upper_bits && i < k; i++) {
		size_t at = i + (index[i] >> low_bits);

		upper[at / 8] |= (uint8_t)(1u << at % 8);
	}
}

/* Of the n bytes at `from` as many as a word holds. */
static uint64_t load(const uint8_t *from, size_t n)
{
	uint64_t word = 0;

	memcpy(&word, from, n < WORD_BYTES ? n : WORD_BYTES);
	return word;
}

static void unpack_low(uint32_t *index, const uint8_t *from, size_t k, unsigned bits)
{
	const uint64_t mask = ((uint64_t)1 << bits) - 1;
	const size_t bytes = bytes_of(k * bits);
	size_t i = 0, at;
	uint64_t word;

	for (; bits && i < k && i * bits / 8 + WORD_BYTES <= bytes; i++) {
		memcpy(&word, from + i * bits / 8, sizeof(word));
		index[i] = (uint32_t)(word >> i * bits % 8 & mask);
	}
	for (; i < k; i++) {
		at = i * bits / 8;
		word = load(from + at, bytes - at);
		index[i] = (uint32_t)(word >> i * bits % 8 & mask);
	}
}

static size_t unpack_indices(uint32_t *index, const void *wire, size_t k, unsigned low_bits,
			     size_t upper_bits)
{
	const uint8_t *upper = (const uint8_t *)wire + bytes_of(k * low_bits);
	const size_t bytes = bytes_of(upper_bits);
	size_t i = 0, at;

	unpack_low(index, wire, k, low_bits);
	for (at = 0; at < bytes; at += WORD_BYTES) {
		uint64_t word = load(upper + at, bytes - at);

		for (; word && i < k; i++, word &= word - 1) {
			size_t bit = 8 * at + (size_t)__builtin_ctzll(word);

			index[i] |= (uint32_t)(bit - i) << low_bits;
		}
		if (word)
			return k + 1;
	}
	return upper_bits ? i : k;
}

void gf_kernels_fill_indices_ref(struct gf_kernels *k)
{
	k->pack_indices = pack_indices;
	k->unpack_indices = unpack_indices;
}
