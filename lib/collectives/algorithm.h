/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/collectives: all-reduces: their schedules as data, what these cost, and the proof that they
 * are right. */
#ifndef GF_COLLECTIVES_ALGORITHM_H
#define GF_COLLECTIVES_ALGORITHM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "collectives/layout.h"
#include "collectives/schedule.h"
#include "cost/primitives.h"
#include "documents/algorithm_traits.h"

/*
 * An algorithm is one file with one entry (documents/algorithm_traits.h). Its schedules are an
 * all-reduce and, of most, its halves.
 *
 * The arguments. Zero in every field after elem_bytes is the common case.
 */
struct gf_coll_args {
	int ranks;            /* p >= 1, servers included */
	size_t count_elems;   /* n >= 0 */
	size_t elem_bytes;    /* of the message in memory */
	size_t segment_elems; /* cut transfers into pieces; 0: whole */
	/* Parts begin at multiples of so many elements, counted from skew_elems (fewer) before the
	 * message; 0: at any element. */
	size_t grain_elems, skew_elems;
	const int *factors;                  /* innermost first, product = ranks; or NULL */
	const char *const *stage_algorithms; /* one per factor; or NULL */
	size_t nfactors;
	enum gf_coll_half half; /* other than WHOLE: where `owned` is given */
	/* Of a half: so many copies of all parts (GF_ALGORITHM_COPIES), each on ranks / copies
	 * ranks that follow each other; 0: one. */
	int copies;
	/* Of a half: who owns what, of the first copy; NULL: the algorithm's own parts. Without
	 * grains. */
	const struct gf_layout *owners;
	int servers; /* ps: the last ranks serve and contribute nothing */
	bool lossy;  /* messages go through a codec: schedule.h, CODECS */
	/* Stages of libraries become calls (schedule.h, CALLS), and so do halves of an algorithm
	 * that has no steps. */
	bool calls;
};

struct gf_algorithm {
	GF_ALGORITHM_ENTRY;
	/* 0, or -EINVAL / -ENOTSUP with the reason (optional: always) */
	int (*applicable)(const struct gf_coll_args *args, struct gf_error *err);
	/* Closed form on a network, one segment. */
	struct gf_cost (*cost)(const struct gf_coll_args *args, const struct gf_cost_net *net);
	/* It goes as one of these, the cheapest: NULL-terminated (optional) */
	const struct gf_algorithm *const *stands_for;
	/* The range that a rank owns between the halves, perhaps empty; the ranks' parts make up
	 * the message. (optional: then there are no halves) */
	struct gf_range (*owned)(const struct gf_coll_args *args, int rank);
	/* Appends rank's steps to an initialised schedule; the caller finishes it. NULL: the
	 * transport's own all-reduce, no steps. */
	void (*build)(const struct gf_coll_args *args, int rank, struct gf_schedule *s);
};

/* NULL-terminated, in the order of --list. */
extern const struct gf_algorithm *const gf_algorithms[];

/*
 * The algorithms for sparse sets: an element is a whole set of at most elem_bytes, and the
 * reduction of a step is a merge. gather gathers one set per rank (count_elems = ranks, half
 * ALL_GATHER); gtopk reduces one (count_elems = 1). Not found by gf_algorithm_find.
 * NULL-terminated.
 */
extern const struct gf_algorithm *const gf_sparse_algorithms[];

/* NULL if there is none of that name. */
const struct gf_algorithm *gf_algorithm_find(const char *name);
const struct gf_algorithm *gf_sparse_find(const char *name);

/* The ranks that share a copy of a half's parts. */
static inline int gf_coll_sharers(const struct gf_coll_args *args)
{
	return args->half != GF_COLL_WHOLE && args->copies > 1 ? args->ranks / args->copies
							       : args->ranks;
}

/* Checks that every algorithm needs: counts, factors, stages. */
int gf_coll_args_check(const struct gf_coll_args *args, struct gf_error *err);

/* A number of elements of which no algorithm's parts differ in length. */
size_t gf_coll_divisible(const struct gf_coll_args *args);

/* Does it have a schedule for these arguments? Errors as gf_algorithm_schedule's. */
int gf_algorithm_can(const struct gf_algorithm *a, const struct gf_coll_args *args,
		     struct gf_error *err);
/* can + init + build + finish; s is untouched on failure. With grains, the algorithm
 * is asked about a message whose elements are grains; with owners, about one that is as long as
 * collectives/layout.h says. -EINVAL: the owners do not fit the message; -ENOTSUP: the algorithm
 * has no steps, or not the half. */
int gf_algorithm_schedule(const struct gf_algorithm *a, const struct gf_coll_args *args, int rank,
			  struct gf_schedule *s, struct gf_error *err);

#endif
