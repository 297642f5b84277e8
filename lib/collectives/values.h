/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLLECTIVES_VALUES_H
#define GF_COLLECTIVES_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The verifier's arithmetic: what a buffer holds, as expressions.
 *
 * A TERM is a contribution of one rank or the sum of two terms. Equal sums have equal numbers
 * (operands sorted: IEEE addition commutes but does not associate), so two elements were added in
 * the same order exactly when their terms are equal. A lossy codec makes a third kind: a term
 * rounded as part of a message. It depends on the whole message, as codecs scale by block, so its
 * number is of the term and the message's content; rounded once more as the same message it stays
 * what it is.
 *
 * A RUN is a stretch of elements that hold the same term, each of its own element of the message:
 * the run's first holds the term of element `origin`.
 */
enum { GF_TERM_NOTHING }; /* never written */

struct gf_run {
	size_t first, origin;
	uint32_t term;
};

struct gf_terms {
	int ranks;
	struct gf_term *terms;
	size_t count, capacity;
	uint64_t *members; /* words per term: which ranks it contains */
	size_t words;
	uint32_t *table; /* open addressing, 0: free */
	size_t table_size;
	struct gf_message_content *contents; /* what was rounded together */
	size_t ncontents, contents_capacity;
};

void gf_terms_init(struct gf_terms *t, int ranks);
void gf_terms_release(struct gf_terms *t);
uint32_t gf_terms_rank(struct gf_terms *t, int rank);
/* The sum of the first `count` ranks, made elsewhere. */
uint32_t gf_terms_result(struct gf_terms *t, int count);
uint32_t gf_terms_sum(struct gf_terms *t, uint32_t a, uint32_t b);
/* Rounds the runs of a message of `count_elems` elements in place. */
void gf_terms_round(struct gf_terms *t, struct gf_run *runs, size_t nruns, size_t count_elems);
/* A rank that the term counts twice, or -1. */
int gf_terms_twice(const struct gf_terms *t, uint32_t term);
bool gf_terms_contains(const struct gf_terms *t, uint32_t term, int rank);

#endif
