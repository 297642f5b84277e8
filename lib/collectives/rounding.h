/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLLECTIVES_ROUNDING_H
#define GF_COLLECTIVES_ROUNDING_H

#include "base/dtype.h"
#include "base/error.h"
#include "collectives/algorithm.h"
#include "collectives/codecs/codec.h"

/*
 * How often a value is rounded on its way to the result, by walking the schedules of all ranks with
 * variances in place of numbers. A rank's contribution has mean 0 and variance 1, and any two
 * ranks' have the correlation c. So the sum of n of them has the variance n + n(n - 1)c. A
 * rounding of such a sum, off by d relative to it, adds d^2 times that to the variance of the
 * error. An encoding that cuts toward zero makes all that it holds smaller by the same share: a
 * contribution that is encoded k times lacks k times as much. These errors add up, where they are
 * small: one of more than 0.3 is less than that.
 *
 * The error of a sum is also that of the mean. All numbers are the mean over the first elements of
 * a message that has one for each rank: of 16, and of fewer among more than 512 ranks.
 */
struct gf_rounded {
	double alone, pairs; /* of n contributions n, and n(n - 1), which the correlation weighs */
};
struct gf_rounding {
	int ranks;               /* that contribute */
	struct gf_rounded coded; /* the sum over encodings */
	struct gf_rounded added; /* ... and over additions */
	struct gf_rounded cut;   /* sums of k^2, and of what pairs of ranks have: k times k' */
};

/* What is known of values. */
struct gf_value_statistics {
	double correlation; /* between ranks, from 0 to 1 */
	double peak;        /* the largest of a codec's block, by the rms; 0: as of normal values */
};

/* Of the algorithm with these arguments; a half that gathers adds nothing. -ENOTSUP: more than
 * GF_ROUNDING_RANKS_MOST ranks, since the work grows with their square, or the algorithm has no
 * steps; other errors are gf_algorithm_schedule's. */
#define GF_ROUNDING_RANKS_MOST 1024
int gf_rounding_of(const struct gf_algorithm *a, const struct gf_coll_args *args,
		   struct gf_rounding *r, struct gf_error *err);

/* The rms error of the result, relative to the rms of the exact one, if messages go by that codec
 * and sums are of that type: f32, or 16 bits where nothing is encoded. */
double gf_rounding_rms(const struct gf_rounding *r, const struct gf_codec *codec,
		       enum gf_dtype sums, const struct gf_value_statistics *values);

#endif
