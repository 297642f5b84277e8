/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_RT_WAY_H
#define GF_RT_WAY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "coll/algorithm.h"
#include "comm/comm.h"
#include "comm/element.h"
#include "doc/plan.h"

/*
 * How a message is reduced: an algorithm and, where it goes level by level,
 * its factors. A value: copied freely, owns nothing.
 */
#define GF_WAY_FACTORS                                                         \
	24 /* of 2 and more, as many as GF_COLL_RANKS_MAX has                  \
	    */

struct gf_way {
	const struct gf_algorithm *algorithm;
	double density;  /* of a sparse algorithm, which has no factors; else 0
			  */
	size_t nfactors; /* 0: not decomposed */
	int factors[GF_WAY_FACTORS];        /* innermost first */
	const char *stages[GF_WAY_FACTORS]; /* names; the first NULL: unsaid */
};

/* The ranks of a job as hosts see them: factors {ranks per host, hosts} where
 * all hosts have as many, and neighbours; else none. Collective. */
int gf_way_layout(struct gf_comm *comm, size_t *nfactors, int factors[2],
		  struct gf_error *err);

/* A stage's name as a constant; NULL: there is none such. */
const char *gf_way_stage(const char *name);
/* Does it go level by level, and so take factors? */
bool gf_way_takes_factors(const struct gf_algorithm *a);
/* How stage i goes, said or by default; NULL: it has no such choice. */
const char *gf_way_stage_at(const struct gf_way *way, size_t i);
/* Is it blueconnect in one stage, which is rhd, or a ring, by another name? */
bool gf_way_undivided(const struct gf_way *way);
/* Makes a decomposition whose stages are unsaid one with rings in all but the
 * innermost; false, and as it was: it has none, or would be the same. */
bool gf_way_outer_rings(struct gf_way *way);
/* The message's algorithm and stages. -ENOTSUP: this build has none such. */
int gf_way_of_message(const struct gf_message *m, struct gf_way *way,
		      struct gf_error *err);
/* What a rule says about a message of that size, on so many ranks. */
int gf_way_of_rule(const struct gf_plan *rule, size_t size_bytes, int ranks,
		   struct gf_way *way, struct gf_error *err);

/* Can it run such a message here? 0, or -EINVAL / -ENOTSUP and why, alike on
 * all ranks. Collective: whether a library reduces such elements is tried. */
int gf_way_check(const struct gf_way *way, struct gf_comm *comm,
		 const struct gf_element *element, size_t count_elems,
		 struct gf_error *err);

/* The arguments for a schedule, as far as the way goes: ranks, factors. */
struct gf_coll_args gf_way_args(const struct gf_way *way, int ranks);

#endif
