/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_EXACT_H
#define GF_CONTEST_EXACT_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "collectives/codecs/codec.h"

/*
 * Inputs whose reduction is known without reducing, and the count of elements that came out wrong.
 *
 * Element i of rank r is w(i) + e(r + s(i) mod p). w and s come from a hash of i, and e is a fixed
 * row of small integers that add up to 0. So every rank has other values, and no contribution can
 * be lost, doubled or put elsewhere unnoticed. Yet the sum is p w(i), and the least is w(i) + min
 * e. All are integers so small that any partial sum, in any order, is exact in the type. If there
 * are more ranks than the type has room for, the others contribute zeros. Products are of small
 * powers of two and signs.
 *
 * An element is wrong unless it is equal to the exact result, with two exceptions. An average over
 * a number of ranks that is no power of two may be off by a unit in the last place. The inputs of a
 * codec are no integers, and the element may be off by 2 p encodings. Each encoding may be off by
 * the codec's `error` times the sum of magnitudes: the element's or, with blocks, the largest
 * possible.
 */
struct gf_exact {
	enum gf_dtype dtype;
	enum gf_op op;
	const struct gf_codec *codec; /* NULL, or one without error: none */
	int ranks;
	uint64_t seed; /* other inputs for another one */
};

/* Rank's contribution. */
void gf_exact_fill(const struct gf_exact *x, int rank, void *data, size_t count);
/* How many of the elements data[first] to data[first + count - 1] are wrong: they are to be the
 * reduction, or (rank >= 0) that rank's contribution, which a codec rounds once. */
size_t gf_exact_wrong(const struct gf_exact *x, int rank, const void *data, size_t first,
		      size_t count);

/* One element of any type as a double, exactly; and back, which is exact for what the type holds
 * and rounds to nearest even else (integers: towards zero).
 */
double gf_exact_load(enum gf_dtype dtype, const void *data, size_t index);
void gf_exact_store(enum gf_dtype dtype, void *data, size_t index, double value);

#endif
