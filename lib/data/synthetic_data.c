/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/data_parts.h"

#include <stdatomic.h>
#include <string.h>

#include "base/heap.h"
#include "base/rng.h"
#include "base/units.h"
#include "lists/gf_data_formats.h"

/*
 * Made-up data of any shape: "synthetic" or "synthetic:COUNT" training samples and a quarter as
 * many for the test, computed when they are asked for. The first KEPT_BYTES of them are kept then.
 *
 * VALUES. Each class has a pattern of uniform numbers in [0, 1); a sample is its class's pattern
 * mixed with noise of its own.
 * TEXT. Each number has a successor; in half of the places that is what follows it, in the others
 * any number does.
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
/* Values of samples that are kept, so that a GPU does not wait for them. */
#define KEPT_BYTES ((size_t)1 << 30)

/* A sample that is kept: nobody has made it; somebody is at it; it is there. */
enum { UNMADE, BEING_MADE, MADE };

struct synthetic {
	float *patterns;   /* classes * elems */
	size_t *successor; /* of each number */
	uint64_t seed;
	size_t nkept; /* samples */
	float *kept;
	int32_t *kept_labels;
	atomic_uchar *states;
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

	s->successor = gf_xcalloc(d->vocabulary, sizeof(*s->successor));
	for (size_t i = 0; i < d->vocabulary; i++)
		s->successor[i] = i;
	gf_rng_init(&rng, s->seed, STREAM_PATTERNS);
	gf_rng_shuffle(&rng, s->successor, d->vocabulary);
}

/* Memory that is not touched costs nothing; without it nothing is kept. */
static void make_room(const struct gf_dataset *d, struct synthetic *s)
{
	const size_t elems = gf_shape_elems(&d->shape);
	const size_t all = d->count[GF_PART_TRAIN] + d->count[GF_PART_TEST];
	const size_t most = KEPT_BYTES / (elems * sizeof(float));
	const size_t n = all < most ? all : most;

	s->kept = calloc(n + 1, elems * sizeof(*s->kept));
	s->kept_labels = calloc(n + 1, d->positions * sizeof(*s->kept_labels));
	s->states = calloc(n + 1, sizeof(*s->states));
	if (s->kept && s->kept_labels && s->states)
		s->nkept = n;
}

static int open_synthetic(const char *count_text, const struct gf_dataset_want *want,
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
				    "synthetic: want a model that says the shape, got none");
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
	make_room(d, s);
	return 0;
}

static void make_text(const struct gf_dataset *d, struct gf_rng *rng, float *values,
		      int32_t *labels)
{
	const struct synthetic *s = d->priv;
	size_t n = gf_shape_elems(&d->shape), i;
	size_t number = gf_rng_below(rng, d->vocabulary);

	memset(labels, 0, d->positions * sizeof(*labels));
	for (i = 0; i < n; i++) {
		values[i] = (float)number;
		number = gf_rng_uniform(rng) < SIGNAL ? s->successor[number]
						      : gf_rng_below(rng, d->vocabulary);
		if (i + d->positions >= n)
			labels[i + d->positions - n] = (int32_t)number;
	}
}

/* Several labels, of a model whose positions are no text: the same of all. */
static void make_values(const struct gf_dataset *d, struct gf_rng *rng, float *values,
			int32_t *labels)
{
	const struct synthetic *s = d->priv;
	size_t n = gf_shape_elems(&d->shape), i;
	size_t class = gf_rng_below(rng, d->classes);
	const float *pattern = s->patterns + class * n;

	for (i = 0; i < n; i++)
		values[i] =
			(float)(SIGNAL * (double)pattern[i] + (1 - SIGNAL) * gf_rng_uniform(rng));
	for (i = 0; i < d->positions; i++)
		labels[i] = (int32_t) class;
}

static void make_sample(const struct gf_dataset *d, size_t number, float *values, int32_t *labels)
{
	const struct synthetic *s = d->priv;
	struct gf_rng rng;

	gf_rng_init(&rng, s->seed, STREAM_PATTERNS + 1 + number);
	if (d->vocabulary)
		make_text(d, &rng, values, labels);
	else
		make_values(d, &rng, values, labels);
}

static int sample(const struct gf_dataset *d, const struct gf_draw *draw, float *values,
		  int32_t *labels, struct gf_error *err)
{
	const struct synthetic *s = d->priv;
	const size_t elems = gf_shape_elems(&d->shape);
	const size_t number =
		draw->index + (draw->part == GF_PART_TRAIN ? 0 : d->count[GF_PART_TRAIN]);
	unsigned char state = UNMADE;
	float *kept;
	int32_t *kept_labels;

	(void)err;
	if (number >= s->nkept) {
		make_sample(d, number, values, labels);
		return 0;
	}
	kept = s->kept + number * elems;
	kept_labels = s->kept_labels + number * d->positions;
	if (atomic_compare_exchange_strong(&s->states[number], &state, BEING_MADE)) {
		make_sample(d, number, kept, kept_labels);
		atomic_store(&s->states[number], MADE);
	} else if (state == BEING_MADE) {
		make_sample(d, number, values, labels);
		return 0;
	}
	memcpy(values, kept, elems * sizeof(*values));
	memcpy(labels, kept_labels, d->positions * sizeof(*labels));
	return 0;
}

static void close_synthetic(struct gf_dataset *d)
{
	struct synthetic *s = d->priv;

	if (!s)
		return;
	free(s->patterns);
	free(s->successor);
	free(s->kept);
	free(s->kept_labels);
	free(s->states);
	free(s);
}

/* MANUAL
 * .Li synthetic: Ns Ar n
 * makes up
 * .Ar n
 * training samples (4096 by default), images or text, that fit any model.
 * A sample is made when it is first read; the first GiB of samples is kept in memory. */
const struct gf_data_format gf_data_synthetic = {
	.name = "synthetic",
	.description = "made-up samples of the model's shape, N of them with synthetic:N",
	.place = 10,
	.recognise = recognise,
	.open = open_synthetic,
	.sample = sample,
	.close = close_synthetic,
};
