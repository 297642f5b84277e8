/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_WORDS_H
#define GF_TESTS_WORDS_H

#include "base/heap.h"
#include "base/registry.h"
#include "base/text.h"
#include "test.h"

/*
 * Words that stand for names in the texts of tests: a refusal tells all entries of a kind, and a
 * test that lists them would change with each. ALGORITHMS is "ring, rhd or library", as far as
 * these are the registry's.
 */
struct test_word {
	const char *word;
	char *value; /* owned */
};

/* Names of a registry: those that an import or a plan may have. last: " or ", or ", ". */
static inline char *test_names(const struct gf_registry *r, const char *last)
{
	const struct gf_named *n, *next = NULL;
	struct gf_text t = {0};
	size_t i, listed = 0;

	for (i = 0; (n = gf_registry_at(r, i)); i++) {
		if (r->offers && !r->offers(n))
			continue;
		if (next)
			gf_text_addf(&t, "%s%s", listed++ ? ", " : "", next->name);
		next = n;
	}
	if (next)
		gf_text_addf(&t, "%s%s", listed ? last : "", next->name);
	return gf_text_take(&t);
}

/* A text with the words' values; the caller frees. */
static inline char *test_filled(const char *text, const struct test_word *words, size_t nwords)
{
	struct gf_text t = {0};
	size_t i, n;

	while (*text) {
		for (i = 0; i < nwords; i++) {
			n = strlen(words[i].word);
			if (strncmp(text, words[i].word, n) == 0)
				break;
		}
		if (i < nwords)
			gf_text_addf(&t, "%s", words[i].value);
		else
			gf_text_add(&t, text, 1);
		text += i < nwords ? strlen(words[i].word) : 1;
	}
	return gf_text_take(&t);
}

#endif
