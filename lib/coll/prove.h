/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLL_PROVE_H
#define GF_COLL_PROVE_H

#include <stddef.h>

#include "base/error.h"
#include "coll/algorithm.h"

/*
 * An algorithm's schedules for all ranks, built and proved together (verify.h).
 * The work is bounded: it grows with the cube of the ranks, and with the steps.
 */
#define GF_PROVE_RANKS_MOST 256
#define GF_PROVE_STEPS_MOST 1000000

/*
 * Proves the schedules of args.half: both halves one after the other are two
 * proofs. *steps is the number over all ranks. 1: the schedules are at fault,
 * and the text names the place; -ENOTSUP: the algorithm has no steps of its
 * own, or more than a bound; -EINVAL: the arguments are not valid.
 */
int gf_prove(const struct gf_algorithm *a, const struct gf_coll_args *args,
	     size_t *steps, struct gf_error *err);

#endif
