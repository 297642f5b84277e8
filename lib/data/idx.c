/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/formats.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/heap.h"

/*
 * A folder of IDX files under MNIST's names (LeCun, Cortes and Burges): bytes
 * 0 0 TYPE NDIM, NDIM big-endian 32-bit sizes, then the array row by row. Each
 * file may be gzipped. Images are N x H x W, N x C x H x W or N x F unsigned
 * bytes; labels are N unsigned bytes. The file is read, not believed: memory
 * grows with what is really there.
 */
#define MAX_DIMS 4
#define TYPE_U8  0x08
/* Nothing that fits beside a model on one host is larger. */
#define MAX_BYTES   ((size_t)1 << 36)
#define FIRST_BLOCK ((size_t)1 << 20)

struct array {
	char *path;
	unsigned char *bytes;
	size_t ndims, dims[MAX_DIMS];
};

struct idx {
	struct array images[GF_PARTS], labels[GF_PARTS];
	float scale[256]; /* byte -> value */
};

static int recognise(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* --- one file ------------------------------------------------------------ */

static int read_some(gzFile file, const char *path, void *out, size_t want,
		     size_t *got, struct gf_error *err)
{
	size_t done = 0;

	while (done < want) {
		size_t left = want - done;
		int n = gzread(file, (char *)out + done,
			       left > FIRST_BLOCK ? FIRST_BLOCK
						  : (unsigned)left);
		int code;

		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		gzerror(file, &code);
		if (n == 0 && code != Z_BUF_ERROR)
			break;
		if (code == Z_ERRNO)
			return gf_error_errno(err, errno ? -errno : -EIO, "%s",
					      path);
		return gf_error_set(err, -EINVAL, "%s: %s", path,
				    code == Z_BUF_ERROR
					    ? "the gzip stream is truncated"
					    : "the gzip stream is damaged");
	}
	*got = done;
	return 0;
}

static int read_header(gzFile file, struct array *a, struct gf_error *err)
{
	unsigned char head[4], word[4];
	size_t got, i;
	int rc;

	rc = read_some(file, a->path, head, sizeof(head), &got, err);
	if (rc)
		return rc;
	if (got < sizeof(head) || head[0] || head[1])
		return gf_error_set(err, -EINVAL,
				    "%s: want an IDX file (0 0 TYPE NDIM), got "
				    "%s",
				    a->path,
				    got < sizeof(head)
					    ? "less than 4 bytes"
					    : "another magic number");
	if (head[2] != TYPE_U8 || head[3] < 1 || head[3] > MAX_DIMS)
		return gf_error_set(err, -EINVAL,
				    "%s: want unsigned bytes (type 0x08) in 1 "
				    "to %d dimensions, got type 0x%02x in %d",
				    a->path, MAX_DIMS, head[2], head[3]);
	a->ndims = head[3];
	for (i = 0; i < a->ndims; i++) {
		rc = read_some(file, a->path, word, sizeof(word), &got, err);
		if (rc)
			return rc;
		if (got < sizeof(word))
			return gf_error_set(err, -EINVAL,
					    "%s: want %zu dimensions in the "
					    "header, the file ends in the %zu.",
					    a->path, a->ndims, i + 1);
		a->dims[i] = (size_t)word[0] << 24 | (size_t)word[1] << 16 |
			     (size_t)word[2] << 8 | word[3];
	}
	return 0;
}

static int total_bytes(const struct array *a, size_t *total,
		       struct gf_error *err)
{
	size_t i;

	*total = 1;
	for (i = 0; i < a->ndims; i++) {
		if (a->dims[i] == 0)
			return gf_error_set(err, -EINVAL,
					    "%s: want every dimension > 0, "
					    "dimension %zu is 0",
					    a->path, i);
		if (a->dims[i] > MAX_BYTES / *total)
			return gf_error_set(err, -EINVAL,
					    "%s: want at most %zu bytes, the "
					    "header says more",
					    a->path, MAX_BYTES);
		*total *= a->dims[i];
	}
	return 0;
}

static int read_body(gzFile file, struct array *a, struct gf_error *err)
{
	size_t total, have = 0, got, room;
	unsigned char extra;
	int rc;

	rc = total_bytes(a, &total, err);
	if (rc)
		return rc;
	room = total < FIRST_BLOCK ? total : FIRST_BLOCK;
	while (have < total) {
		unsigned char *bytes = realloc(a->bytes, room);

		if (!bytes)
			return gf_error_set(err, -ENOMEM,
					    "%s: no memory for %zu bytes",
					    a->path, room);
		a->bytes = bytes;
		rc = read_some(file, a->path, bytes + have, room - have, &got,
			       err);
		if (rc)
			return rc;
		have += got;
		if (have < room)
			return gf_error_set(err, -EINVAL,
					    "%s: want %zu bytes of data as the "
					    "header says, got %zu",
					    a->path, total, have);
		room = total - room < room ? total : 2 * room;
	}
	rc = read_some(file, a->path, &extra, 1, &got, err);
	if (!rc && got)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want %zu bytes of data as the header "
				  "says, got more",
				  a->path, total);
	return rc;
}

static int read_array(struct array *a, struct gf_error *err)
{
	gzFile file = gzopen(a->path, "rb");
	int rc;

	if (!file)
		return gf_error_errno(err, errno ? -errno : -ENOMEM, "%s",
				      a->path);
	rc = read_header(file, a, err);
	if (!rc)
		rc = read_body(file, a, err);
	gzclose_r(file);
	return rc;
}

/* --- a folder ------------------------------------------------------------ */

/* The first of <folder>/<stem>-<kind>-idx<digit>-ubyte[.gz] that is there. */
static char *find_file(const char *folder, const char *const *stems,
		       const char *kind, const char *digits)
{
	static const char *const endings[] = {"", ".gz"};
	size_t s, e;
	const char *c;

	for (s = 0; s < 2 && stems[s]; s++)
		for (c = digits; *c; c++)
			for (e = 0; e < 2; e++) {
				char *path = gf_xasprintf(
					"%s/%s-%s-idx%c-ubyte%s", folder,
					stems[s], kind, *c, endings[e]);

				if (access(path, F_OK) == 0)
					return path;
				free(path);
			}
	return NULL;
}

static int open_array(const char *folder, enum gf_part part, bool images,
		      struct array *a, struct gf_error *err)
{
	static const char *const stems[GF_PARTS][2] = {
		{"train", NULL},
		{"t10k", "test"},
	};
	const char *kind = images ? "images" : "labels";
	const char *digits = images ? "342" : "1";
	int rc;

	a->path = find_file(folder, stems[part], kind, digits);
	if (!a->path)
		return gf_error_set(err, -ENOENT,
				    "%s: want a file %s-%s-idx%c-ubyte or "
				    ".gz%s, found none",
				    folder, stems[part][0], kind, digits[0],
				    stems[part][1] ? " (or test-...)" : "");
	rc = read_array(a, err);
	if (rc)
		return rc;
	if (images ? a->ndims < 2 : a->ndims != 1)
		return gf_error_set(err, -EINVAL,
				    "%s: want %s dimensions, got %zu", a->path,
				    images ? "2 to 4" : "1", a->ndims);
	return 0;
}

static int check_labels(const struct array *images, const struct array *labels,
			const struct gf_dataset_want *want, size_t *classes,
			struct gf_error *err)
{
	size_t i;

	if (labels->dims[0] != images->dims[0])
		return gf_error_set(err, -EINVAL,
				    "%s: want %zu labels, one for each image "
				    "of %s, got %zu",
				    labels->path, images->dims[0], images->path,
				    labels->dims[0]);
	for (i = 0; i < labels->dims[0]; i++) {
		size_t label = labels->bytes[i];

		if (want->classes && label >= want->classes)
			return gf_error_set(err, -EINVAL,
					    "%s: want labels below %zu, label "
					    "%zu is %zu",
					    labels->path, want->classes, i,
					    label);
		if (label + 1 > *classes)
			*classes = label + 1;
	}
	return 0;
}

static struct gf_shape shape_of(const struct array *images)
{
	struct gf_shape s = {0};

	/* N x H x W is one channel */
	if (images->ndims == 3)
		s.dims[s.rank++] = 1;
	memcpy(s.dims + s.rank, images->dims + 1,
	       (images->ndims - 1) * sizeof(s.dims[0]));
	s.rank += images->ndims - 1;
	return s;
}

static void set_scale(struct idx *x)
{
	const struct array *a = &x->images[GF_PART_TRAIN];
	size_t total = 1, i;
	unsigned char max = 0;

	for (i = 0; i < a->ndims; i++)
		total *= a->dims[i];
	for (i = 0; i < total; i++)
		if (a->bytes[i] > max)
			max = a->bytes[i];
	for (i = 0; i < 256; i++)
		x->scale[i] = (float)i / (float)(max ? max : 1);
}

static int open_part(const char *folder, enum gf_part part,
		     const struct gf_dataset_want *want, struct gf_dataset *d,
		     struct gf_error *err)
{
	struct idx *x = d->priv;
	struct array *images = &x->images[part], *labels = &x->labels[part];
	int rc;

	rc = open_array(folder, part, true, images, err);
	if (!rc)
		rc = open_array(folder, part, false, labels, err);
	if (!rc)
		rc = check_labels(images, labels, want, &d->classes, err);
	if (!rc)
		d->count[part] = images->dims[0];
	return rc;
}

static int open_idx(const char *path, const struct gf_dataset_want *want,
		    struct gf_dataset *d, struct gf_error *err)
{
	struct idx *x = gf_xcalloc(1, sizeof(*x));
	struct gf_shape test;
	int part, rc;

	d->priv = x;
	for (part = 0; part < GF_PARTS; part++) {
		rc = open_part(path, (enum gf_part)part, want, d, err);
		if (rc)
			return rc;
	}
	d->shape = shape_of(&x->images[GF_PART_TRAIN]);
	test = shape_of(&x->images[GF_PART_TEST]);
	if (memcmp(&test, &d->shape, sizeof(test)) != 0)
		return gf_error_set(err, -EINVAL,
				    "%s: want images of the same size as in %s",
				    x->images[GF_PART_TEST].path,
				    x->images[GF_PART_TRAIN].path);
	set_scale(x);
	return 0;
}

static void sample(const struct gf_dataset *d, enum gf_part part, size_t index,
		   float *values, uint8_t *label)
{
	const struct idx *x = d->priv;
	size_t n = gf_shape_elems(&d->shape), i;
	const unsigned char *bytes = x->images[part].bytes + index * n;

	for (i = 0; i < n; i++)
		values[i] = x->scale[bytes[i]];
	*label = x->labels[part].bytes[index];
}

static void close_idx(struct gf_dataset *d)
{
	struct idx *x = d->priv;
	int part;

	if (!x)
		return;
	for (part = 0; part < GF_PARTS; part++) {
		free(x->images[part].path);
		free(x->images[part].bytes);
		free(x->labels[part].path);
		free(x->labels[part].bytes);
	}
	free(x);
}

const struct gf_data_format gf_data_idx = {
	.name = "idx",
	.description =
		"a folder of IDX files under MNIST's names, plain or .gz",
	.recognise = recognise,
	.open = open_idx,
	.sample = sample,
	.close = close_idx,
};
