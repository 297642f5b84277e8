/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broken documents of every format through every reader. Nothing may crash,
 * every refusal is one line that names the source, and what a reader accepts
 * is written, and reads back to the same bytes.
 *
 *	fuzz_documents [--seconds N] [--seed N]
 *
 * The documents are made from the valid ones in the source tree by a seeded
 * generator: the same seed tries the same documents in the same order. Seconds
 * only say when to stop.
 */
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
#include "doc/stream.h"

struct seeds {
	char **texts;
	size_t count, capacity;
};

static void load_seeds(struct seeds *s, const char *folder)
{
	const char *source = getenv("GF_SOURCE");
	char *pattern =
		gf_xasprintf("%s/%s/*.json", source ? source : ".", folder);
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

static void splice(struct gf_text *t, size_t at, size_t removed,
		   const char *added, size_t length)
{
	struct gf_text out = {0};

	gf_text_add(&out, t->data, at);
	gf_text_add(&out, added, length);
	gf_text_add(&out, t->data + at + removed, t->length - at - removed);
	gf_text_release(t);
	*t = out;
}

/* The value behind the next ": " or ", " or "[" from a random place on:
 * replacing whole values reaches deeper than breaking the syntax. */
static void replace_value(struct gf_text *t, struct gf_rng *rng,
			  const char *token)
{
	size_t at = gf_rng_below(rng, t->length), end;

	at += strcspn(t->data + at, ":[,");
	at += at < t->length;
	at += strspn(t->data + at, " \n");
	end = at + strcspn(t->data + at, ",]}\n");
	splice(t, at, end - at, token, strlen(token));
}

static void mutate(struct gf_text *t, const struct seeds *s, struct gf_rng *rng)
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

/* --- what must hold ------------------------------------------------------ */

static void fail(const char *what, const struct gf_text *t)
{
	printf("%s:\n%.*s\n", what, (int)t->length, t->data ? t->data : "");
	exit(1);
}

static void expect_same(const char *written, const struct gf_text *from)
{
	struct gf_documents d = {0};
	struct gf_error err = {""};
	char *again = NULL;

	if (gf_documents_add_text(&d, written, strlen(written), "w", &err)) {
		printf("%s\n", err.text);
		fail("what was written is refused", from);
	}
	if (d.topology)
		again = gf_topology_write(d.topology);
	else if (d.profile)
		again = gf_profile_write(d.profile);
	else if (d.plan)
		again = gf_plan_write(d.plan);
	else if (d.model)
		again = gf_model_write(d.model);
	else if (d.training)
		again = gf_training_write(d.training);
	if (!again || strcmp(again, written) != 0)
		fail("what was written reads back to something else", from);
	free(again);
	gf_documents_release(&d);
}

/* Walks what was read as its users do. */
static void use_plan(const struct gf_plan *p)
{
	size_t i, sum = 0;

	for (i = 0; i < p->nmessages; i++)
		sum += gf_plan_message_bytes(p, i);
	if (p->model && sum != gf_model_profile_bytes(p->model))
		fail("the messages are not the model", &(struct gf_text){0});
}

static void use_network(const struct gf_network *net)
{
	static const size_t sizes[] = {0, 1, 1000, 1 << 20, (size_t)1 << 61};
	size_t i, k;
	int n;

	for (i = 0; net && i < net->nallreduce; i++)
		for (k = 0; k < GF_ARRAY_LENGTH(sizes); k++)
			for (n = 1; n < 5; n++)
				if (!(gf_contention_gamma(
					      &net->allreduce[i].contention,
					      sizes[k], n) >= 1))
					fail("gamma below 1",
					     &(struct gf_text){0});
}

static void check_accepted(const struct gf_documents *d,
			   const struct gf_text *from)
{
	char *written;

	if (d->topology) {
		written = gf_topology_write(d->topology);
		expect_same(written, from);
		free(written);
	}
	if (d->profile) {
		use_network(d->profile->network);
		written = gf_profile_write(d->profile);
		expect_same(written, from);
		free(written);
	}
	if (d->plan) {
		use_plan(d->plan);
		use_network(d->plan->network);
		written = gf_plan_write(d->plan);
		expect_same(written, from);
		free(written);
	}
	if (d->model) {
		free(gf_model_generation_order(d->model));
		written = gf_model_write(d->model);
		expect_same(written, from);
		free(written);
	}
	if (d->training) {
		written = gf_training_write(d->training);
		expect_same(written, from);
		free(written);
	}
}

static int try_one(const struct seeds *s, struct gf_rng *rng)
{
	const char *seed = s->texts[gf_rng_below(rng, s->count)];
	size_t rounds = gf_rng_below(rng, 4);
	struct gf_documents d = {0};
	struct gf_error err = {""};
	struct gf_text t = {0};
	int rc;

	gf_text_add(&t, seed, strlen(seed));
	while (rounds--)
		mutate(&t, s, rng);
	rc = gf_documents_add_text(&d, t.data, t.length, "f", &err);
	if (rc && (strncmp(err.text, "f", 1) != 0 || strchr(err.text, '\n')))
		fail("a message that is not one line about f", &t);
	if (!rc)
		check_accepted(&d, &t);
	gf_documents_release(&d);
	gf_text_release(&t);
	return !rc;
}

int main(int argc, char **argv)
{
	long long seconds = 3, seed = 1;
	struct seeds seeds = {0};
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
	load_seeds(&seeds, "tests/data/valid");
	load_seeds(&seeds, "share/models");
	load_seeds(&seeds, "share/topologies");
	if (!seeds.count) {
		printf("no documents in tests/data/valid\n");
		return 1;
	}
	gf_rng_init(&rng, (uint64_t)seed, 0);
	end = gf_clock_s() + (double)seconds;
	/* a whole number of rounds, so that at least one always runs */
	do {
		for (i = 0; i < 100; i++)
			accepted += (size_t)try_one(&seeds, &rng);
		tried += 100;
	} while (gf_clock_s() < end);
	printf("%zu documents tried, %zu accepted\n", tried, accepted);
	for (i = 0; i < seeds.count; i++)
		free(seeds.texts[i]);
	free(seeds.texts);
	return accepted > 0 ? 0 : 1;
}
