/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLL_ALGORITHM_H
#define GF_COLL_ALGORITHM_H

#include <stddef.h>

#include "base/error.h"
#include "coll/schedule.h"
#include "cost/primitives.h"

/*
 * An all-reduce algorithm: one file, one table entry, listed in registry.c.
 */
struct gf_coll_args {
	int ranks;           /* p >= 1 */
	size_t count_elems;  /* n >= 0 */
	size_t elem_bytes;   /* of the message in memory */
	size_t segment_elems; /* cut transfers into pieces; 0: whole */
	const int *factors;  /* innermost first, product = ranks; or NULL */
	const char *const *stage_algorithms; /* one per factor; or NULL */
	size_t nfactors;
};

struct gf_algorithm {
	const char *name;
	const char *description; /* one line, for --list */
	/* 0, or -EINVAL / -ENOTSUP with the reason (optional: always) */
	int (*applicable)(const struct gf_coll_args *args,
			  struct gf_error *err);
	/* Closed form on a network (seconds), one segment. */
	double (*cost_s)(const struct gf_coll_args *args,
			 const struct gf_net_cost *net);
	/* Appends rank's steps to an initialised schedule; the caller
	 * finishes it. NULL: the transport's own all-reduce, no steps. */
	void (*build)(const struct gf_coll_args *args, int rank,
		      struct gf_schedule *s);
};

/* NULL-terminated, in the order of --list. */
extern const struct gf_algorithm *const gf_algorithms[];

/* NULL if there is none of that name. */
const struct gf_algorithm *gf_algorithm_find(const char *name);

/* applicable + init + build + finish. s is released on failure. */
int gf_algorithm_schedule(const struct gf_algorithm *a,
			  const struct gf_coll_args *args, int rank,
			  struct gf_schedule *s, struct gf_error *err);

#endif
