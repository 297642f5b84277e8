/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MUTATE_H
#define MUTATE_H

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/units.h"

/*
 * Shared by the fuzz targets: seed documents from the source tree, seeded
 * mutations of them, and the loop
 *
 *	TARGET [--seconds N] [--seed N]
 *
 * The same seed tries the same documents in the same order. Seconds only say
 * when to stop.
 */
struct seeds {
	char **texts;
	size_t count, capacity;
};

static inline void load_files(struct seeds *s, const char *files)
{
	const char *source = getenv("GF_SOURCE");
	char *pattern = gf_xasprintf("%s/%s", source ? source : ".", files);
	struct gf_error err;
	glob_t found;
	size_t size, i;

	if (glob(pattern, 0, NULL, &found) == 0) {
		for (i = 0; i < found.gl_pathc; i++) {
			char *text;

			if (gf_file_read(found.gl_pathv[i], &text, &size,
					 &err)) {
				printf("%s\n", err.text);
				exit(1);
			}
			/* large ones would only make the run slower */
			if (size > 16384)
				free(text);
			else
				*gf_array_push(&s->texts, &s->count,
					       &s->capacity) = text;
		}
		globfree(&found);
	}
	free(pattern);
}

/* The documents of a folder. */
static inline void load_seeds(struct seeds *s, const char *folder)
{
	char *files = gf_xasprintf("%s/*.json", folder);

	load_files(s, files);
	free(files);
}

/* --- mutations ----------------------------------------------------------- */

static const char *const tokens[] = {
	"null",
	"true",
	"0",
	"-1",
	"1",
	"0.5",
	"-0.0",
	"1e-320",
	"1e300",
	"1e999",
	"NaN",
	"9223372036854775807",
	"4611686018427387904",
	"4294967296",
	"2147483648",
	"99999999999999999999",
	"\"\"",
	"\"x\"",
	"\"\\u0000\"",
	"\"\\n\"",
	"[]",
	"{}",
	"[[",
	"]",
	"}",
	"{",
	",",
	":",
	"\"x-y\": [1, {\"z\": 2.50}], ",
	"\"name\": 1, ",
	"\xff",
	"\xed\xa0",
};

static inline void splice(struct gf_text *t, size_t at, size_t removed,
			  const char *added, size_t length)
{
	struct gf_text out = {0};

	gf_text_add(&out, t->data, at);
	gf_text_add(&out, added, length);
	gf_text_add(&out, t->data + at + removed, t->length - at - removed);
	gf_text_release(t);
	*t = out;
}

/* The value after the next ": " or ", " or "[" from a random place on:
 * replacing whole values reaches deeper than breaking the syntax. */
static inline void replace_value(struct gf_text *t, struct gf_rng *rng,
				 const char *token)
{
	size_t at = gf_rng_below(rng, t->length), end;

	at += strcspn(t->data + at, ":[,");
	at += at < t->length;
	at += strspn(t->data + at, " \n");
	end = at + strcspn(t->data + at, ",]}\n");
	splice(t, at, end - at, token, strlen(token));
}

static inline void mutate(struct gf_text *t, const struct seeds *s,
			  struct gf_rng *rng)
{
	const char *token = tokens[gf_rng_below(rng, GF_ARRAY_LENGTH(tokens))];
	size_t at = gf_rng_below(rng, t->length + 1);
	size_t rest = t->length - at, length;
	const char *other;

	switch (gf_rng_below(rng, 12)) {
	case 0: /* cut off */
		splice(t, at, rest, "", 0);
		break;
	case 1: /* one bit */
		if (rest)
			t->data[at] ^= (char)(1 << gf_rng_below(rng, 8));
		break;
	case 2: /* a piece missing */
		length = gf_rng_below(rng, 40);
		splice(t, at, length < rest ? length : rest, "", 0);
		break;
	case 3: /* a piece of another document */
		other = s->texts[gf_rng_below(rng, s->count)];
		length = gf_rng_below(rng, strlen(other));
		splice(t, at, 0, other + length,
		       gf_rng_below(rng, strlen(other) - length + 1));
		break;
	case 4: /* a token in between */
		splice(t, at, 0, token, strlen(token));
		break;
	case 5: /* another document behind */
		other = s->texts[gf_rng_below(rng, s->count)];
		gf_text_add(t, other, strlen(other));
		break;
	default:
		if (t->length)
			replace_value(t, rng, token);
	}
}

/* try: one document; whether it was accepted. */
static inline int fuzz(int argc, char **argv, struct seeds *seeds,
		       int (*try)(const struct seeds *s, struct gf_rng *rng))
{
	long long seconds = 3, seed = 1;
	size_t tried = 0, accepted = 0, i;
	struct gf_rng rng;
	double end;
	int a;

	for (a = 1; a + 1 < argc; a += 2) {
		if (strcmp(argv[a], "--seconds") == 0)
			gf_units_int(argv[a + 1], 0, 1000000, &seconds, NULL);
		else if (strcmp(argv[a], "--seed") == 0)
			gf_units_int(argv[a + 1], 0, 1000000, &seed, NULL);
	}
	if (!seeds->count) {
		printf("no documents to begin with\n");
		return 1;
	}
	gf_rng_init(&rng, (uint64_t)seed, 0);
	end = gf_clock_s() + (double)seconds;
	/* a whole number of rounds, so that at least one always runs */
	do {
		for (i = 0; i < 100; i++)
			accepted += (size_t)try(seeds, &rng);
		tried += 100;
	} while (gf_clock_s() < end);
	printf("%zu documents tried, %zu accepted\n", tried, accepted);
	for (i = 0; i < seeds->count; i++)
		free(seeds->texts[i]);
	free(seeds->texts);
	return accepted > 0 ? 0 : 1;
}

#endif
