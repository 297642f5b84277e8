/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/planner/search: the search for the best plan, policy `optimal`. */
#ifndef GF_SEARCH_SEARCH_H
#define GF_SEARCH_SEARCH_H

#include "planner/workbench.h"

/*
 * The searches behind `optimal`. Each appends its messages to an empty draft. below_s is the
 * iteration time of a draft already at hand: what cannot beat it is not followed, and nothing is
 * appended when nothing beats it.
 */

/* Tensors of a model on which searches try every cut. */
#define GF_SEARCH_ALL_CUTS 48
/* Beyond so many, they are brief. */
#define GF_SEARCH_LARGE 1000

/* One lane: exact over all contiguous partitions (serial.c). */
void gf_search_serial(const struct gf_workbench *w, double below_s, struct gf_draft *d);
/* d->lanes >= 2 lanes: a beam over partitions, modes and options (beam.c), by about `budget`
 * starts. On large models a message grows in steps that make it dearer by that share. */
void gf_search_beam(const struct gf_workbench *w, double below_s, double budget, double growth,
		    struct gf_draft *d);
/* d->lanes lanes: exact if it gets through within `budget` starts, and then true. */
bool gf_search_exhaust(const struct gf_workbench *w, double below_s, double budget,
		       struct gf_draft *d);
/* Improves a predicted draft in place, and then again after each of so many random changes; budget
 * in simulated messages. */
void gf_search_polish(const struct gf_workbench *w, double budget, int kicks, struct gf_draft *d);
/* Merges messages of a predicted draft in place while its iteration stays within the limit, those
 * first that cost least. */
void gf_search_merge(const struct gf_workbench *w, double limit_s, double budget,
		     struct gf_draft *d);

/* The fewest messages on one lane within the limit, as early as they go; none are appended if none
 * are found (fewest.c). fastest: a draft of one lane. */
void gf_search_fewest(const struct gf_workbench *w, const struct gf_draft *fastest, double limit_s,
		      struct gf_draft *d);

/*
 * A problem whose tensors are up to `most` blocks of neighbouring tensors of one dtype, so that a
 * search of a very large model ends (blocks.c). There are more blocks only where dtypes change
 * often. A draft by b.work has the times of the draft that it expands to.
 */
struct gf_blocks {
	struct gf_workbench work;
	struct gf_problem problem;
	struct gf_model_profile model;
	size_t *last; /* tensor of each block */
};

void gf_blocks_init(struct gf_blocks *b, const struct gf_workbench *w, size_t most);
void gf_blocks_expand(const struct gf_blocks *b, struct gf_draft *d);
void gf_blocks_release(struct gf_blocks *b);

#endif
