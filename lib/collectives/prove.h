/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLLECTIVES_PROVE_H
#define GF_COLLECTIVES_PROVE_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "collectives/algorithm.h"
#include "collectives/way.h"

/*
 * The schedules of all ranks, built and proved together (verify.h). The work is bounded: it grows
 * with the cube of the ranks, and with the steps.
 */
#define GF_PROVE_RANKS_MOST 256
#define GF_PROVE_STEPS_MOST 1000000

/* Builds one rank's schedule of a message; as gf_algorithm_schedule. */
typedef int gf_prove_build(void *ctx, int rank, struct gf_schedule *s, struct gf_error *err);

/*
 * Proves the schedules of a half, or of the whole: both halves one after the other are two proofs.
 * *steps is the number over all ranks. 1: the schedules are at fault, and the text names the place;
 * -ENOTSUP: more than a bound; other errors are build's.
 */
int gf_prove(int ranks, enum gf_coll_half half, gf_prove_build *build, void *ctx, size_t *steps,
	     struct gf_error *err);

/* How a message goes, in words; the caller frees. Two messages of the same words have the same
 * schedules. type: what an element is, or its codec. */
char *gf_prove_words(const struct gf_way *way, const struct gf_coll_args *args, const char *type);
/*
 * Proves how a message goes, as a line of out that begins with these words; a message whose line is
 * there needs no proof. build NULL: the schedules are the algorithm's own. Errors as gf_prove's,
 * after the words; -ENOTSUP, too: the algorithm, or a stage of it, has no steps of its own.
 */
int gf_prove_line(const struct gf_way *way, const struct gf_coll_args *args, const char *type,
		  gf_prove_build *build, void *ctx, struct gf_text *out, struct gf_error *err);

#endif
