/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_SUM_ERROR_H
#define GF_CONTEST_SUM_ERROR_H

#include <stddef.h>

#include "base/dtype.h"
#include "base/error.h"
#include "transport/comm.h"

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
