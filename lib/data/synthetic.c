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
 * and a quarter as many for the test. Each class has a pattern of uniform
 * numbers in [0, 1); a sample is its class's pattern mixed with noise of its
 * own, so that a model can learn it, and is computed when asked for: nothing
 * is stored but the patterns. The shape is the model's.
 */
#define PREFIX          "synthetic"
#define DEFAULT_COUNT   4096
#define MAX_COUNT       (1LL << 40)
#define DEFAULT_CLASSES 10
/* Share of the pattern in a sample; the rest is noise. */
#define SIGNAL 0.5

/* One stream of the seed for the patterns, one per sample behind it. */
#define STREAM_PATTERNS 0x53594e5448000000u

struct synthetic {
	float *patterns; /* classes * elems */
	uint64_t seed;
};

static int recognise(const char *path)
{
	size_t n = strlen(PREFIX);

	return strncmp(path, PREFIX, n) == 0 &&
	       (path[n] == '\0' || path[n] == ':');
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

static int open_synthetic(const char *path, const struct gf_dataset_want *want,
			  struct gf_dataset *d, struct gf_error *err)
{
	const char *colon = strchr(path, ':');
	long long count = DEFAULT_COUNT;
	struct synthetic *s;
	int rc;

	if (colon) {
		rc = gf_units_int(colon + 1, 1, MAX_COUNT, &count, err);
		if (rc) {
			gf_error_prefix(err, "%s", path);
			return rc;
		}
	}
	if (want->input.rank == 0)
		return gf_error_set(err, -EINVAL,
				    "%s: want a model that says the shape, got "
				    "none",
				    path);
	s = gf_xcalloc(1, sizeof(*s));
	s->seed = want->seed;
	d->priv = s;
	d->shape = want->input;
	d->classes = want->classes ? want->classes : DEFAULT_CLASSES;
	d->count[GF_PART_TRAIN] = (size_t)count;
	d->count[GF_PART_TEST] = ((size_t)count + 3) / 4;
	make_patterns(d, s);
	return 0;
}

static void sample(const struct gf_dataset *d, enum gf_part part, size_t index,
		   float *values, uint8_t *label)
{
	const struct synthetic *s = d->priv;
	size_t n = gf_shape_elems(&d->shape), class, i;
	size_t number =
		part == GF_PART_TRAIN ? index : d->count[GF_PART_TRAIN] + index;
	const float *pattern;
	struct gf_rng rng;

	gf_rng_init(&rng, s->seed, STREAM_PATTERNS + 1 + number);
	class = (size_t)gf_rng_below(&rng, d->classes);
	pattern = s->patterns + class * n;
	for (i = 0; i < n; i++)
		values[i] = (float)(SIGNAL * (double)pattern[i] +
				    (1 - SIGNAL) * gf_rng_uniform(&rng));
	*label = (uint8_t) class;
}

static void close_synthetic(struct gf_dataset *d)
{
	struct synthetic *s = d->priv;

	if (!s)
		return;
	free(s->patterns);
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
