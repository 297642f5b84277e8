/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/dataset.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/rng.h"
#include "base/text.h"
#include "data/data_parts.h"
#include "lists/gf_data_formats.h"

/* Sample i in epoch e draws from stream MASK + e * count + i of the seed. */
static const uint64_t streams[GF_PARTS] = {
	[GF_PART_TRAIN] = 0x4d41534b00000000u,
	[GF_PART_TEST] = 0x4d41534c00000000u,
};

#define SHARE_PERCENT 15
/* Out of 10 that are masked. */
#define TO_MASK 8
#define TO_ANY  1

const char *const gf_part_names[] = {"train", "test", NULL};

static void shape_text(const struct gf_shape *s, char *out, size_t size)
{
	size_t used = 0, i;

	out[0] = '\0';
	for (i = 0; i < s->rank && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%zu", i ? "x" : "",
					 s->dims[i]);
}

static bool shape_fits(const struct gf_shape *have, const struct gf_shape *want)
{
	if (want->rank == 1)
		return gf_shape_elems(have) == want->dims[0];
	return have->rank == want->rank &&
	       memcmp(have->dims, want->dims, want->rank * sizeof(want->dims[0])) == 0;
}

static int check(const char *path, const struct gf_dataset_want *want, const struct gf_dataset *d,
		 struct gf_error *err)
{
	char wanted[96], found[96];

	if (want->input.rank && !want->vocabulary != !d->vocabulary)
		return gf_error_set(err, -EINVAL, "%s: want %s for this model, got %s (--data %s)",
				    path, want->vocabulary ? "text" : "images",
				    d->vocabulary ? "text" : "images",
				    want->vocabulary ? "text, or synthetic" : "synthetic");
	if (want->input.rank && !shape_fits(&d->shape, &want->input)) {
		shape_text(&want->input, wanted, sizeof(wanted));
		shape_text(&d->shape, found, sizeof(found));
		return gf_error_set(err, -EINVAL,
				    "%s: want samples of %s for this model, got %s (--data "
				    "synthetic makes them of any shape)",
				    path, wanted, found);
	}
	if (want->positions && d->positions != want->positions)
		return gf_error_set(err, -EINVAL,
				    "%s: want %zu labels per sample for this model, got %zu", path,
				    want->positions, d->positions);
	return 0;
}

static const struct gf_data_format *named(const char *path)
{
	const struct gf_data_format *const *f;

	for (f = gf_data_formats; *f; f++) {
		size_t n = strlen((*f)->name);

		if (strncmp(path, (*f)->name, n) == 0 && path[n] == ':')
			return *f;
	}
	return NULL;
}

const char *gf_dataset_folder(const char *path)
{
	const struct gf_data_format *f = named(path);

	return f ? path + strlen(f->name) + 1 : path;
}

static const struct gf_data_format *recognise(const char *path)
{
	const struct gf_data_format *const *f;

	for (f = gf_data_formats; *f; f++)
		if ((*f)->recognise(path))
			return *f;
	return NULL;
}

static int refuse(const char *path, struct gf_error *err)
{
	const struct gf_data_format *const *f;
	GF_RELEASED(gf_text_release) struct gf_text names = {0};

	/* a file or a folder that is there, and cannot be looked into */
	if (access(path, F_OK) == 0 && access(path, R_OK) != 0)
		return gf_error_errno(err, -errno, "%s", path);
	for (f = gf_data_formats; *f; f++)
		if (*f != &gf_data_synthetic)
			gf_text_addf(&names, "%s%s", names.length ? ", " : "", (*f)->name);
	return gf_error_set(
		err, -ENOENT,
		"%s: want a folder with data of a known format (%s) or synthetic, found none", path,
		names.data);
}

int gf_dataset_open(const char *path, const struct gf_dataset_want *want, struct gf_dataset *d,
		    struct gf_error *err)
{
	struct gf_dataset set = {.positions = 1};
	struct gf_dataset_want inner = *want;
	int rc;

	set.format = named(path);
	if (!set.format)
		set.format = recognise(path);
	if (!set.format)
		return refuse(path, err);
	path = gf_dataset_folder(path);
	if (want->masked && want->vocabulary < 2)
		return gf_error_set(err, -EINVAL,
				    "%s: want a model with 2 word numbers or more, one of them for "
				    "the mask, got %zu",
				    path, want->vocabulary);
	inner.vocabulary -= want->masked;
	rc = set.format->open(path, &inner, &set, err);
	if (!rc && want->masked)
		set.masked = (SHARE_PERCENT * set.positions + 50) / 100 ?: 1;
	rc = rc ?: check(path, want, &set, err);
	if (rc) {
		gf_dataset_close(&set);
		return rc;
	}
	*d = set;
	return 0;
}

size_t gf_dataset_labels(const struct gf_dataset *d)
{
	return d->masked ? d->masked : d->positions;
}

void gf_dataset_close(struct gf_dataset *d)
{
	if (!d || !d->format)
		return;
	d->format->close(d);
	memset(d, 0, sizeof(*d));
}

int gf_dataset_batch(const struct gf_dataset *d, enum gf_part part, const size_t *indices, size_t n,
		     float *values, int32_t *labels, struct gf_error *err)
{
	size_t elems = gf_shape_elems(&d->shape), i;
	int rc = 0;

	for (i = 0; i < n && !rc; i++)
		rc = d->format->sample(d, &(struct gf_draw){.part = part, .index = indices[i]},
				       values + i * elems, labels + i * d->positions, err);
	return rc;
}

/* --- masked words --------------------------------------------------------- */

static float masked(const struct gf_dataset *d, struct gf_rng *rng, float value)
{
	const size_t mask = d->vocabulary;
	const uint64_t way = gf_rng_below(rng, 10);

	if (way < TO_MASK)
		return (float)mask;
	return way < TO_MASK + TO_ANY ? (float)gf_rng_below(rng, mask) : value;
}

void gf_mask_sample(const struct gf_dataset *d, enum gf_part part, uint64_t seed, size_t epoch,
		    size_t index, float *values, int32_t *labels)
{
	size_t left = d->masked, i;
	struct gf_rng rng;

	if (!d->masked)
		return;
	if (part == GF_PART_TEST)
		epoch = 0;
	gf_rng_init(&rng, seed, streams[part] + epoch * d->count[part] + index);
	/* each choice of `masked` positions is as likely as any other */
	for (i = 0; i < d->positions; i++) {
		labels[i] = GF_NO_LABEL;
		if (gf_rng_below(&rng, d->positions - i) >= left)
			continue;
		left--;
		labels[i] = (int32_t)values[i];
		values[i] = masked(d, &rng, values[i]);
	}
}
