/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_VOCABULARY_H
#define GF_DATA_VOCABULARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

/*
 * Words and their numbers (private to lib/data). Words are counted as they are
 * met; gf_vocabulary_rank then numbers them, the most frequent first, equal
 * ones in the order of their bytes: the same numbers on every machine.
 */
#define GF_VOCABULARY_UNKNOWN "<unk>"

struct gf_word {
	const char *text; /* borrowed */
	size_t length, count;
	int32_t number; /* once ranked */
};

struct gf_vocabulary {
	struct gf_word *words; /* in the order in which they were met */
	size_t nwords, capacity;
	size_t *slots; /* open addressing: 1 + index into words, or 0 */
	size_t nslots;
	size_t size; /* once ranked: how many have a number of their own */
	int32_t unknown;
};

void gf_vocabulary_release(struct gf_vocabulary *v);

/* The text must live as long as the vocabulary. */
void gf_vocabulary_count(struct gf_vocabulary *v, const char *text,
			 size_t length);
/* Numbers the most frequent words from 0, at most `limit` (>= 1) in all, and
 * "<unk>" among them, which stands for every other one. */
void gf_vocabulary_rank(struct gf_vocabulary *v, size_t limit);
/* v->unknown for what was never counted. */
int32_t gf_vocabulary_number(const struct gf_vocabulary *v, const char *text,
			     size_t length);

#endif
