/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_EXACT_H
#define GF_CONTEST_EXACT_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "collectives/codecs/codec.h"
#include "transport/comm.h"

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

/*
 * The error of a sum or an average. Every rank contributes normal values of its own (mean 0,
 * deviation 1), as gradients of different samples may be, rounded to the type. The exact result s
 * of an element is computed from these rounded values in f64; of f64 values, in long double. Over
 * the elements x of the result,
 *
 *	rms = sqrt(mean((x - s)^2)) / sqrt(mean(s^2))
 *	max = max|x - s| / sqrt(mean(s^2))
 *
 * On n ranks the root of the mean of s^2 is about the root of n.
 */
struct gf_sum_error {
	double rms, max; /* infinite: a result is not finite */
};

/* Is it a sum or an average of real numbers? -EINVAL */
int gf_sum_error_check(enum gf_dtype dtype, enum gf_op op, struct gf_error *err);
/* Rank's contribution; alike in every run. */
void gf_sum_error_fill(enum gf_dtype dtype, int rank, void *data, size_t count);
/* Collective. Ranks hold equal results: each looks at its share of them. Or (message > 0) each
 * holds its part of every message of so many elements, as gf_range_part cuts it. */
int gf_sum_error_measure(struct gf_comm *comm, enum gf_dtype dtype, enum gf_op op, const void *data,
			 size_t count, size_t message, struct gf_sum_error *error,
			 struct gf_error *err);

#endif
