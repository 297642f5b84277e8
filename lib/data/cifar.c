/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/data_parts.h"

#include <math.h>
#include <string.h>

#include "base/heap.h"

/*
 * The binary version of CIFAR-10 and CIFAR-100 (Krizhevsky 2009): records of one label byte
 * (CIFAR-100: the coarse one, then the fine one, which is used) and 3 x 32 x 32 bytes, channel by
 * channel. The files may be gzipped, and hold any number of records. A channel's values have mean 0
 * and deviation 1 over the training part, as is usual with these data.
 */
#define CHANNELS    3
#define SIDE        32
#define IMAGE_BYTES ((size_t)CHANNELS * SIDE * SIDE)
#define MAX_BYTE    255
#define MAX_FILES   5

struct kind {
	size_t label_bytes; /* the last of them counts */
	const char *files[GF_PARTS][MAX_FILES + 1];
};

static const struct kind cifar10 = {
	1,
	{{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
	  "data_batch_5.bin", NULL},
	 {"test_batch.bin", NULL}},
};

static const struct kind cifar100 = {
	2,
	{{"train.bin", NULL}, {"test.bin", NULL}},
};

struct records {
	unsigned char *bytes;
	size_t count;
};

static int read_file(const char *folder, const char *name, const struct kind *kind,
		     struct records *r, char **path, struct gf_error *err)
{
	const size_t record = kind->label_bytes + IMAGE_BYTES;
	GF_RELEASED(gf_source_close) struct gf_source file = {0};
	char *found = gf_source_find(folder, name);
	size_t size;
	int rc;

	if (!found)
		return gf_error_set(err, -ENOENT, "%s: want a file %s or .gz, found none", folder,
				    name);
	*path = gf_xstrdup(found);
	rc = gf_source_open(&file, found, err);
	rc = rc ?: gf_source_rest(&file, &r->bytes, &size, err);
	if (rc)
		return rc;
	if (size == 0 || size % record)
		return gf_error_set(err, -EINVAL,
				    "%s: want whole records of %zu bytes, got %zu bytes", *path,
				    record, size);
	r->count = size / record;
	return 0;
}

/* Appends a file's records to those of the part's earlier files. */
static int take(struct gf_dataset *d, enum gf_part part, const struct kind *kind,
		const struct records *r, const struct gf_dataset_want *want, const char *path,
		struct gf_error *err)
{
	const size_t record = kind->label_bytes + IMAGE_BYTES;
	struct gf_images *m = d->priv;
	size_t before = d->count[part], total = before + r->count, i;
	int rc = 0;

	m->bytes[part] = gf_xreallocarray(m->bytes[part], total, IMAGE_BYTES);
	m->labels[part] = gf_xreallocarray(m->labels[part], total, sizeof(int32_t));
	for (i = 0; i < r->count && !rc; i++) {
		const unsigned char *at = r->bytes + i * record;

		rc = gf_images_label(d, part, before + i, at[kind->label_bytes - 1], want, path,
				     err);
		memcpy(m->bytes[part] + (before + i) * IMAGE_BYTES, at + kind->label_bytes,
		       IMAGE_BYTES);
	}
	d->count[part] = total;
	return rc;
}

/* A byte's value is (byte / MAX_BYTE - mean[c]) / deviation[c] in channel c; deviations are
 * positive. */
static void normalise(const struct gf_dataset *d, const double *mean, const double *deviation)
{
	struct gf_images *m = d->priv;

	m->nvalues = d->shape.dims[0];
	m->value = gf_xcalloc(m->nvalues, sizeof(*m->value));
	for (size_t c = 0; c < m->nvalues; c++)
		for (size_t i = 0; i < 256; i++)
			m->value[c][i] = (float)(((double)i / MAX_BYTE - mean[c]) / deviation[c]);
}

/* Mean and standard deviation of byte / MAX_BYTE in each channel of the training part, exact up to
 * the rounding of the last steps; the deviation of a single value is 1. */
static void statistics(const struct gf_dataset *d, double *mean, double *deviation)
{
	const struct gf_images *m = d->priv;
	size_t channels = d->shape.dims[0];
	size_t plane = gf_shape_elems(&d->shape) / channels, c, i, k;
	const unsigned char *at = m->bytes[GF_PART_TRAIN];
	size_t(*seen)[256] = gf_xcalloc(channels, sizeof(*seen));

	for (i = 0; i < d->count[GF_PART_TRAIN]; i++)
		for (c = 0; c < channels; c++, at += plane)
			for (k = 0; k < plane; k++)
				seen[c][at[k]]++;
	for (c = 0; c < channels; c++) {
		double n = (double)(d->count[GF_PART_TRAIN] * plane);
		double sum = 0, square = 0, off;

		for (i = 0; i < 256; i++)
			sum += (double)(seen[c][i] * i);
		for (i = 0; i < 256; i++) {
			off = (double)i - sum / n;
			square += (double)seen[c][i] * off * off;
		}
		mean[c] = sum / n / MAX_BYTE;
		deviation[c] = square > 0 ? sqrt(square / n) / MAX_BYTE : 1;
	}
	free(seen);
}

static int open_cifar(const char *folder, const struct kind *kind,
		      const struct gf_dataset_want *want, struct gf_dataset *d,
		      struct gf_error *err)
{
	double mean[CHANNELS], deviation[CHANNELS];
	int part, f, rc = 0;

	d->priv = gf_xcalloc(1, sizeof(struct gf_images));
	d->shape = (struct gf_shape){3, {CHANNELS, SIDE, SIDE}};
	for (part = 0; part < GF_PARTS; part++)
		for (f = 0; kind->files[part][f] && !rc; f++) {
			struct records r = {0};
			GF_FREED char *path = NULL;

			rc = read_file(folder, kind->files[part][f], kind, &r, &path, err);
			rc = rc ?: take(d, (enum gf_part)part, kind, &r, want, path, err);
			free(r.bytes);
		}
	if (rc)
		return rc;
	statistics(d, mean, deviation);
	normalise(d, mean, deviation);
	return 0;
}

static int open_cifar10(const char *path, const struct gf_dataset_want *want, struct gf_dataset *d,
			struct gf_error *err)
{
	return open_cifar(path, &cifar10, want, d, err);
}

static int open_cifar100(const char *path, const struct gf_dataset_want *want, struct gf_dataset *d,
			 struct gf_error *err)
{
	return open_cifar(path, &cifar100, want, d, err);
}

static int has_first(const char *folder, const struct kind *kind)
{
	GF_FREED char *path = gf_source_find(folder, kind->files[GF_PART_TRAIN][0]);
	int found = path != NULL;

	return found;
}

static int recognise_cifar10(const char *folder)
{
	return has_first(folder, &cifar10);
}

static int recognise_cifar100(const char *folder)
{
	return has_first(folder, &cifar100);
}

/* MANUAL
 * CIFAR-10's binary version:
 * .Pa data_batch_1.bin
 * to
 * .Pa data_batch_5.bin
 * and
 * .Pa test_batch.bin . */
const struct gf_data_format gf_data_cifar10 = {
	.name = "cifar10",
	.description = "a folder with CIFAR-10's binary version",
	.place = 30,
	.recognise = recognise_cifar10,
	.open = open_cifar10,
	.sample = gf_images_sample,
	.close = gf_images_close,
};

/* MANUAL
 * CIFAR-100's, with its fine labels:
 * .Pa train.bin
 * and
 * .Pa test.bin . */
const struct gf_data_format gf_data_cifar100 = {
	.name = "cifar100",
	.description = "a folder with CIFAR-100's binary version, fine labels",
	.place = 40,
	.recognise = recognise_cifar100,
	.open = open_cifar100,
	.sample = gf_images_sample,
	.close = gf_images_close,
};
