/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/formats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/rng.h"
#include "base/units.h"

/*
 * Made-up data of any shape: "synthetic" or "synthetic:COUNT" training samples
 * and a quarter as many for the test, computed when they are asked for.
 *
 * VALUES. Each class has a pattern of uniform numbers in [0, 1); a sample is
 * its class's pattern mixed with noise of its own.
 * TEXT. Each number has a successor; in half of the places that is what
 * follows it, in the others any number does.
 * Both can be learned, and not wholly. The shape is the model's.
 */
#define DEFAULT_COUNT 4096
/* An epoch's order takes 8 bytes of each on every rank. */
#define MAX_COUNT       (1LL << 28)
#define DEFAULT_CLASSES 10
/* Share of the pattern in a sample; the rest is noise. */
#define SIGNAL 0.5

/* The seed's stream for the patterns; those of the samples follow it. */
#define STREAM_PATTERNS 0x53594e5448000000u

struct synthetic {
	float *patterns;   /* classes * elems */
	size_t *successor; /* of each number */
	uint64_t seed;
};

/* "synthetic"; with a count it is known by its name and the colon. */
static int recognise(const char *path)
{
	return strcmp(path, gf_data_synthetic.name) == 0;
}

static void make_patterns(const struct gf_dataset *d, struct synthetic *s)
{
	size_t n = d->classes * gf_shape_elems(&d->shape), i;
	struct gf_rng rng;

	s->patterns = gf_xcalloc(n, sizeof(float));
	gf_rng_init(&rng, s->seed, STREAM_PATTERNS);
	for (i = 0; i < n; i++)
		s->patterns[i] = (float)gf_rng_uniform(&rng);
}

static void make_successors(const struct gf_dataset *d, struct synthetic *s)
{
	struct gf_rng rng;
	size_t i;

	s->successor = gf_xcalloc(d->vocabulary, sizeof(*s->successor));
	for (i = 0; i < d->vocabulary; i++)
		s->successor[i] = i;
	gf_rng_init(&rng, s->seed, STREAM_PATTERNS);
	gf_rng_shuffle(&rng, s->successor, d->vocabulary);
}

static int open_synthetic(const char *count_text,
			  const struct gf_dataset_want *want,
			  struct gf_dataset *d, struct gf_error *err)
{
	long long count = DEFAULT_COUNT;
	struct synthetic *s;

	if (strcmp(count_text, gf_data_synthetic.name) != 0) {
		int rc = gf_units_int(count_text, 1, MAX_COUNT, &count, err);

		if (rc) {
			gf_error_prefix(err, "synthetic:%s", count_text);
			return rc;
		}
	}
	if (want->input.rank == 0)
		return gf_error_set(err, -EINVAL,
				    "synthetic: want a model that says the "
				    "shape, got none");
	s = gf_xcalloc(1, sizeof(*s));
	s->seed = want->seed;
	d->priv = s;
	d->shape = want->input;
	d->classes = want->classes ? want->classes : DEFAULT_CLASSES;
	d->positions = want->positions ? want->positions : 1;
	d->count[GF_PART_TRAIN] = (size_t)count;
	d->count[GF_PART_TEST] = ((size_t)count + 3) / 4;
	d->vocabulary = want->vocabulary;
	if (d->vocabulary > d->classes)
		d->vocabulary = d->classes;
	if (d->vocabulary)
		make_successors(d, s);
	else
		make_patterns(d, s);
	return 0;
}

static void make_text(const struct gf_dataset *d, struct gf_rng *rng,
		      float *values, int32_t *labels)
{
	const struct synthetic *s = d->priv;
	size_t n = gf_shape_elems(&d->shape), i;
	size_t number = gf_rng_below(rng, d->vocabulary);

	memset(labels, 0, d->positions * sizeof(*labels));
	for (i = 0; i < n; i++) {
		values[i] = (float)number;
		number = gf_rng_uniform(rng) < SIGNAL
				 ? s->successor[number]
				 : gf_rng_below(rng, d->vocabulary);
		if (i + d->positions >= n)
			labels[i + d->positions - n] = (int32_t)number;
	}
}

/* Several labels, of a model whose positions are no text: the same of all. */
static void make_values(const struct gf_dataset *d, struct gf_rng *rng,
			float *values, int32_t *labels)
{
	const struct synthetic *s = d->priv;
	size_t n = gf_shape_elems(&d->shape), i;
	size_t class = gf_rng_below(rng, d->classes);
	const float *pattern = s->patterns + class * n;

	for (i = 0; i < n; i++)
		values[i] = (float)(SIGNAL * (double)pattern[i] +
				    (1 - SIGNAL) * gf_rng_uniform(rng));
	for (i = 0; i < d->positions; i++)
		labels[i] = (int32_t) class;
}

static void sample(const struct gf_dataset *d, enum gf_part part, size_t index,
		   float *values, int32_t *labels)
{
	const struct synthetic *s = d->priv;
	size_t number =
		part == GF_PART_TRAIN ? index : d->count[GF_PART_TRAIN] + index;
	struct gf_rng rng;

	gf_rng_init(&rng, s->seed, STREAM_PATTERNS + 1 + number);
	if (d->vocabulary)
		make_text(d, &rng, values, labels);
	else
		make_values(d, &rng, values, labels);
}

static void close_synthetic(struct gf_dataset *d)
{
	struct synthetic *s = d->priv;

	if (!s)
		return;
	free(s->patterns);
	free(s->successor);
	free(s);
}

const struct gf_data_format gf_data_synthetic = {
	.name = "synthetic",
	.description = "made-up samples of the model's shape, N of them with "
		       "synthetic:N",
	.recognise = recognise,
	.open = open_synthetic,
	.sample = sample,
	.close = close_synthetic,
};
