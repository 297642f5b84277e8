/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "data/data_parts.h"

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

	if (want->input.rank && !want->vocabulary != !d->vocabulary)
		return gf_error_set(err, -EINVAL,
				    "%s: want %s for this model, "
				    "got %s (--data %s)",
				    path, want->vocabulary ? "text" : "images",
				    d->vocabulary ? "text" : "images",
				    want->vocabulary ? "text, or synthetic"
						     : "synthetic");
	if (want->input.rank && !shape_fits(&d->shape, &want->input)) {
		shape_text(&want->input, wanted, sizeof(wanted));
		shape_text(&d->shape, found, sizeof(found));
		return gf_error_set(err, -EINVAL,
				    "%s: want samples of %s for this model, "
				    "got %s (--data synthetic makes them of "
				    "any shape)",
				    path, wanted, found);
	}
	if (want->positions && d->positions != want->positions)
		return gf_error_set(err, -EINVAL,
				    "%s: want %zu labels per sample for this "
				    "model, got %zu",
				    path, want->positions, d->positions);
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
	struct gf_text names = {0};
	int rc;

	/* a file or a folder that is there, and cannot be looked into */
	if (access(path, F_OK) == 0 && access(path, R_OK) != 0)
		return gf_error_errno(err, -errno, "%s", path);
	for (f = gf_data_formats; *f; f++)
		if (*f != &gf_data_synthetic)
			gf_text_addf(&names, "%s%s", names.length ? ", " : "",
				     (*f)->name);
	rc = gf_error_set(err, -ENOENT,
			  "%s: want a folder with data of a known format (%s) "
			  "or synthetic, found none",
			  path, names.data);
	gf_text_release(&names);
	return rc;
}

int gf_dataset_open(const char *path, const struct gf_dataset_want *want,
		    struct gf_dataset *d, struct gf_error *err)
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
				    "%s: want a model with 2 word numbers or "
				    "more, one of them for the mask, got %zu",
				    path, want->vocabulary);
	inner.vocabulary -= want->masked;
	rc = set.format->open(path, &inner, &set, err);
	if (!rc && want->masked)
		gf_mask_init(&set);
	if (!rc)
		rc = check(path, want, &set, err);
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

int gf_dataset_batch(const struct gf_dataset *d, enum gf_part part,
		     const size_t *indices, size_t n, float *values,
		     int32_t *labels, struct gf_error *err)
{
	size_t elems = gf_shape_elems(&d->shape), i;
	int rc = 0;

	for (i = 0; i < n && !rc; i++)
		rc = d->format->sample(
			d, &(struct gf_draw){.part = part, .index = indices[i]},
			values + i * elems, labels + i * d->positions, err);
	return rc;
}
