/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/dataset.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MAX_CLASSES 256

const char *const gf_part_names[] = {"train", "test", NULL};

static void shape_text(const struct gf_shape *s, char *out, size_t size)
{
	size_t used = 0, i;

	out[0] = '\0';
	for (i = 0; i < s->rank && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%zu",
					 i ? "x" : "", s->dims[i]);
}

static bool shape_fits(const struct gf_shape *have, const struct gf_shape *want)
{
	if (want->rank == 1)
		return gf_shape_elems(have) == want->dims[0];
	return have->rank == want->rank &&
	       memcmp(have->dims, want->dims,
		      want->rank * sizeof(want->dims[0])) == 0;
}

static int check(const char *path, const struct gf_dataset_want *want,
		 const struct gf_dataset *d, struct gf_error *err)
{
	char wanted[96], found[96];

	if (want->classes > MAX_CLASSES)
		return gf_error_set(err, -EINVAL,
				    "%s: want a model of at most %d classes, "
				    "as labels are bytes, got %zu",
				    path, MAX_CLASSES, want->classes);
	if (want->input.rank && !shape_fits(&d->shape, &want->input)) {
		shape_text(&want->input, wanted, sizeof(wanted));
		shape_text(&d->shape, found, sizeof(found));
		return gf_error_set(err, -EINVAL,
				    "%s: want samples of %s for this model, "
				    "got %s",
				    path, wanted, found);
	}
	return 0;
}

static const struct gf_data_format *find(const char *path)
{
	size_t i;

	for (i = 0; gf_data_formats[i]; i++)
		if (gf_data_formats[i]->recognise(path))
			return gf_data_formats[i];
	return NULL;
}

int gf_dataset_open(const char *path, const struct gf_dataset_want *want,
		    struct gf_dataset *d, struct gf_error *err)
{
	struct gf_dataset set = {0};
	int rc;

	set.format = find(path);
	if (!set.format)
		return gf_error_set(err, -ENOENT,
				    "%s: want a folder with IDX files "
				    "(train-images-idx3-ubyte or .gz, ...) or "
				    "\"synthetic\", found neither",
				    path);
	rc = set.format->open(path, want, &set, err);
	if (!rc)
		rc = check(path, want, &set, err);
	if (rc) {
		gf_dataset_close(&set);
		return rc;
	}
	*d = set;
	return 0;
}

void gf_dataset_close(struct gf_dataset *d)
{
	if (!d || !d->format)
		return;
	d->format->close(d);
	memset(d, 0, sizeof(*d));
}

void gf_dataset_batch(const struct gf_dataset *d, enum gf_part part,
		      const size_t *indices, size_t n, float *values,
		      uint8_t *labels)
{
	size_t elems = gf_shape_elems(&d->shape);
	size_t i;

	for (i = 0; i < n; i++)
		d->format->sample(d, part, indices[i], values + i * elems,
				  &labels[i]);
}
