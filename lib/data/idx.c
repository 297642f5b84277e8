/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/data_parts.h"

#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"

/*
 * A folder of IDX files under MNIST's names (LeCun, Cortes and Burges): bytes 0 0 TYPE NDIM, NDIM
 * big-endian 32-bit sizes, then the array row by row. Each file may be gzipped. Images are N x H x
 * W, N x C x H x W or N x F unsigned bytes; labels are N unsigned bytes, or big-endian integers of
 * 16 or 32 bits.
 */
#define MAX_DIMS 4
#define TYPE_U8  0x08
#define TYPE_I16 0x0b
#define TYPE_I32 0x0c

struct array {
	struct gf_source file;
	unsigned char *bytes;
	size_t ndims, dims[MAX_DIMS];
	size_t width; /* bytes of an element */
	bool images;
};

/* --- one file ------------------------------------------------------------ */

/* Bytes of an element of labels or, bytes alone, of images; 0: refused. */
static size_t width_of(const struct array *a, int type)
{
	if (type == TYPE_U8)
		return 1;
	if (a->images)
		return 0;
	return type == TYPE_I16 ? 2 : type == TYPE_I32 ? 4 : 0;
}

static int read_header(struct array *a, struct gf_error *err)
{
	const char *path = a->file.path;
	unsigned char head[4], word[4];
	size_t got, i;
	int rc = gf_source_read(&a->file, head, sizeof(head), &got, err);

	if (rc)
		return rc;
	if (got < sizeof(head) || head[0] || head[1])
		return gf_error_set(
			err, -EINVAL, "%s: want an IDX file (0 0 TYPE NDIM), got %s", path,
			got < sizeof(head) ? "less than 4 bytes" : "another magic number");
	a->width = width_of(a, head[2]);
	if (!a->width || head[3] < 1 || head[3] > MAX_DIMS)
		return gf_error_set(err, -EINVAL,
				    "%s: want unsigned bytes (type 0x08%s) in 1 to %d dimensions, "
				    "got type 0x%02x in %d",
				    path, a->images ? "" : "; 0x0b, 0x0c: 16, 32 bits", MAX_DIMS,
				    head[2], head[3]);
	a->ndims = head[3];
	for (i = 0; i < a->ndims; i++) {
		rc = gf_source_read(&a->file, word, sizeof(word), &got, err);
		if (rc)
			return rc;
		if (got < sizeof(word))
			return gf_error_set(
				err, -EINVAL,
				"%s: want %zu dimensions in the header, the file ends in the %zu.",
				path, a->ndims, i + 1);
		a->dims[i] = (size_t)word[0] << 24 | (size_t)word[1] << 16 | (size_t)word[2] << 8 |
			     word[3];
	}
	return 0;
}

static int total_bytes(const struct array *a, size_t *total, struct gf_error *err)
{
	*total = a->width;
	for (size_t i = 0; i < a->ndims; i++) {
		if (a->dims[i] == 0)
			return gf_error_set(err, -EINVAL,
					    "%s: want every dimension > 0, dimension %zu is 0",
					    a->file.path, i);
		if (a->dims[i] > GF_SOURCE_MAX_BYTES / *total)
			return gf_error_set(err, -EINVAL,
					    "%s: want at most %zu bytes, the header says more",
					    a->file.path, GF_SOURCE_MAX_BYTES);
		*total *= a->dims[i];
	}
	return 0;
}

static void free_array(struct array *a)
{
	gf_source_close(&a->file);
	free(a->bytes);
}

/* --- a folder ------------------------------------------------------------ */

static const char *const stems[GF_PARTS][2] = {
	{"train", NULL},
	{"t10k", "test"},
};

static const struct {
	bool images;
	const char *text;
} endings[] = {
	{true, "images-idx3-ubyte"},  {true, "images-idx4-ubyte"},  {true, "images-idx2-ubyte"},
	{false, "labels-idx1-ubyte"}, {false, "labels-idx1-short"}, {false, "labels-idx1-int"},
};

/* The first of <folder>/<stem>-<ending>[.gz] that is there. */
static char *find_file(const char *folder, enum gf_part part, bool images)
{
	char *name, *path = NULL;

	for (size_t s = 0; s < 2 && stems[part][s]; s++)
		for (size_t e = 0; e < GF_ARRAY_LENGTH(endings) && !path; e++) {
			if (endings[e].images != images)
				continue;
			name = gf_xasprintf("%s-%s", stems[part][s], endings[e].text);
			path = gf_source_find(folder, name);
			free(name);
		}
	return path;
}

/* Any of the four files: which one lacks is better said when it is opened. */
static int recognise(const char *folder)
{
	int file, found = 0;

	for (file = 0; file < 2 * GF_PARTS && !found; file++) {
		GF_FREED char *path = find_file(folder, (enum gf_part)(file / 2), file % 2);

		found = path != NULL;
	}
	return found;
}

static int open_array(const char *folder, enum gf_part part, bool images, struct array *a,
		      struct gf_error *err)
{
	char *path = find_file(folder, part, images);
	size_t total;
	int rc;

	a->images = images;
	if (!path)
		return gf_error_set(
			err, -ENOENT, "%s: want a file %s-%s-ubyte%s or .gz%s, found none", folder,
			stems[part][0], images ? "images-idx3" : "labels-idx1",
			images ? "" : ", -short, -int", stems[part][1] ? " (or test-...)" : "");
	rc = gf_source_open(&a->file, path, err);
	rc = rc ?: read_header(a, err);
	rc = rc ?: total_bytes(a, &total, err);
	rc = rc ?: gf_source_exactly(&a->file, total, &a->bytes, err);
	if (rc)
		return rc;
	if (images ? a->ndims < 2 : a->ndims != 1)
		return gf_error_set(err, -EINVAL, "%s: want %s dimensions, got %zu", path,
				    images ? "2 to 4" : "1", a->ndims);
	return 0;
}

static long long element(const struct array *a, size_t i)
{
	const unsigned char *at = a->bytes + i * a->width;

	if (a->width == 1)
		return at[0];
	if (a->width == 2)
		return (int16_t)(at[0] << 8 | at[1]);
	return (int32_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 |
			 at[3]);
}

static int take_labels(struct gf_dataset *d, enum gf_part part, const struct array *images,
		       const struct array *labels, const struct gf_dataset_want *want,
		       struct gf_error *err)
{
	struct gf_images *m = d->priv;
	int rc = 0;

	if (labels->dims[0] != images->dims[0])
		return gf_error_set(
			err, -EINVAL, "%s: want %zu labels, one for each image of %s, got %zu",
			labels->file.path, images->dims[0], images->file.path, labels->dims[0]);
	m->labels[part] = gf_xcalloc(labels->dims[0], sizeof(int32_t));
	for (size_t i = 0; i < labels->dims[0] && !rc; i++)
		rc = gf_images_label(d, part, i, element(labels, i), want, labels->file.path, err);
	return rc;
}

static struct gf_shape shape_of(const struct array *images)
{
	struct gf_shape s = {0};

	/* N x H x W is one channel */
	if (images->ndims == 3)
		s.dims[s.rank++] = 1;
	memcpy(s.dims + s.rank, images->dims + 1, (images->ndims - 1) * sizeof(s.dims[0]));
	s.rank += images->ndims - 1;
	return s;
}

static int take_images(struct gf_dataset *d, enum gf_part part, struct array *images,
		       struct gf_error *err)
{
	struct gf_shape shape = shape_of(images);
	struct gf_images *m = d->priv;

	if (part == GF_PART_TRAIN)
		d->shape = shape;
	else if (memcmp(&shape, &d->shape, sizeof(shape)) != 0)
		return gf_error_set(
			err, -EINVAL,
			"%s: want images of the same size as those for training, got another",
			images->file.path);
	d->count[part] = images->dims[0];
	m->bytes[part] = images->bytes;
	images->bytes = NULL;
	return 0;
}

static int open_part(const char *folder, enum gf_part part, const struct gf_dataset_want *want,
		     struct gf_dataset *d, struct gf_error *err)
{
	struct array images = {0}, labels = {0};
	int rc = open_array(folder, part, true, &images, err);

	rc = rc ?: open_array(folder, part, false, &labels, err);
	rc = rc ?: take_labels(d, part, &images, &labels, want, err);
	rc = rc ?: take_images(d, part, &images, err);
	free_array(&images);
	free_array(&labels);
	return rc;
}

/* A byte's value is byte / max, max being the largest of the training part. */
static void scale(const struct gf_dataset *d)
{
	struct gf_images *m = d->priv;
	size_t total = d->count[GF_PART_TRAIN] * gf_shape_elems(&d->shape), i;
	const unsigned char *bytes = m->bytes[GF_PART_TRAIN];
	unsigned max = 0;

	for (i = 0; i < total; i++)
		max = bytes[i] > max ? bytes[i] : max;
	m->value = gf_xcalloc(1, sizeof(*m->value));
	m->nvalues = 1;
	for (i = 0; i < 256; i++)
		m->value[0][i] = (float)i / (float)(max ? max : 1);
}

static int open_idx(const char *path, const struct gf_dataset_want *want, struct gf_dataset *d,
		    struct gf_error *err)
{
	int part, rc = 0;

	d->priv = gf_xcalloc(1, sizeof(struct gf_images));
	for (part = 0; part < GF_PARTS && !rc; part++)
		rc = open_part(path, (enum gf_part)part, want, d, err);
	if (!rc)
		scale(d);
	return rc;
}

/* MANUAL
 * IDX files under MNIST's names:
 * .Pa train-images-idx3-ubyte ,
 * .Pa train-labels-idx1-ubyte ,
 * and the same with
 * .Pa t10k
 * or
 * .Pa test
 * in place of
 * .Pa train .
 * Images are N x H x W, N x C x H x W or N x F unsigned bytes of any size that the model takes.
 * Labels are unsigned bytes, or integers of 16 or 32 bits, whose file may then end in
 * .Pa -short
 * or
 * .Pa -int
 * in place of
 * .Pa -ubyte . */
const struct gf_data_format gf_data_idx = {
	.name = "idx",
	.description = "a folder of IDX files under MNIST's names, plain or gzipped",
	.place = 20,
	.recognise = recognise,
	.open = open_idx,
	.sample = gf_images_sample,
	.close = gf_images_close,
};
