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
 * Searches the problem with its tensors as up to `most` blocks of neighbouring tensors of one
 * dtype, so that a search of a very large model ends (blocks.c). There are more blocks only where
 * dtypes change often. The draft is of the tensors again.
 */
void gf_search_blocks(const struct gf_workbench *w, size_t most,
		      void (*search)(const struct gf_workbench *w, struct gf_draft *d),
		      struct gf_draft *d);

#endif
