/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLLECTIVES_WAY_H
#define GF_COLLECTIVES_WAY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "collectives/algorithm.h"
#include "documents/library_tuning.h"
#include "documents/plan.h"

/*
 * How a message is reduced: an algorithm and, where it goes level by level, its factors. Only here
 * the words of a document become the input of a schedule. A value: copied freely, owns nothing.
 */
#define GF_WAY_FACTORS                                                                             \
	24 /* of 2 and more, as many as GF_RANKS_MAX has                                           \
	    */

struct gf_way {
	const struct gf_algorithm *algorithm;
	double density;              /* of a sparse algorithm, which has no factors; else 0 */
	size_t nfactors;             /* 0: not decomposed */
	int factors[GF_WAY_FACTORS]; /* innermost first */
	const char *stages[GF_WAY_FACTORS]; /* names; the first NULL: unsaid */
	int servers;                        /* the plan's, heeded where the algorithm has such */
	int copies;                         /* that halves leave; 0: one */
	/* What a library is told; no dialect: nothing, and its call is the one that does not
	 * block. */
	struct gf_tuning tuning;
};

/* The way of an algorithm's name and its stages. -ENOTSUP: this build has no algorithm of that
 * name; -EINVAL: the stages are not valid. */
int gf_way_of(const char *algorithm, const struct gf_stage *stages, size_t nstages,
	      struct gf_way *way, struct gf_error *err);
/* The way of a plan's message, which does not name the number of servers. */
int gf_way_of_message(const struct gf_message *m, struct gf_way *way, struct gf_error *err);

/*
 * The arguments for a schedule that the way determines: ranks (servers included), servers, and
 * factors with the algorithm of each, in the way's memory. The caller adds the elements, the half,
 * segments and whether a codec loses bits.
 */
struct gf_coll_args gf_way_args(const struct gf_way *way, int ranks);

/* Does it go level by level, and so take factors? */
bool gf_way_takes_factors(const struct gf_algorithm *a);
/* How stage i goes, said or by default; NULL: it has no such choice. */
const char *gf_way_stage_at(const struct gf_way *way, size_t i);
/* Is it blueconnect in one stage, which is rhd, or a ring, by another name? */
bool gf_way_undivided(const struct gf_way *way);
/* Gives a decomposition without named stages rings in all but the innermost stage. Returns false
 * and changes nothing if there is no decomposition, or if it would stay the same. */
bool gf_way_outer_rings(struct gf_way *way);

#endif
