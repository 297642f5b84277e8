/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/data_parts.h"

#include <dirent.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"

/*
 * ImageNet's form: folders train/CLASS and val/CLASS of JPEG files. Classes are numbered in the
 * order of their names' bytes. A sample is decoded each time it is drawn: memory holds the names
 * alone. Channels are normalised by ImageNet's means and deviations, those of torchvision's models.
 */
static const char *const part_folders[GF_PARTS] = {"train", "val"};
static const double means[] = {0.485, 0.456, 0.406};
static const double deviations[] = {0.229, 0.224, 0.225};

struct names {
	struct gf_text text; /* each with its NUL */
	size_t *at;          /* where each begins */
	size_t n, capacity;
};

struct folder {
	char *path;
	struct names classes;
	struct names files[GF_PARTS]; /* of one class after the other */
	size_t *first[GF_PARTS];      /* of each class, and the end */
	struct gf_picture_want want;
};

/* --- names ---------------------------------------------------------------- */

static const char *name_at(const struct names *n, size_t i)
{
	return n->text.data + n->at[i];
}

static void release_names(struct names *n)
{
	gf_text_release(&n->text);
	free(n->at);
}

static int is_visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Adds the names in a folder, without those that are hidden. */
static int list(const char *path, struct names *n, struct gf_error *err)
{
	GF_FREED struct dirent **entries = NULL;
	int count = scandir(path, &entries, is_visible, by_bytes), i;

	if (count < 0)
		return gf_error_errno(err, -errno, "%s", path);
	for (i = 0; i < count; i++) {
		*gf_array_push(&n->at, &n->n, &n->capacity) = n->text.length;
		gf_text_add(&n->text, entries[i]->d_name, strlen(entries[i]->d_name) + 1);
		free(entries[i]);
	}
	return 0;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_jpeg(const char *name)
{
	const char *end = strrchr(name, '.');

	return end && (!strcasecmp(end, ".jpg") || !strcasecmp(end, ".jpeg"));
}

/* --- a part --------------------------------------------------------------- */

/* A class's files. */
static int list_class(struct folder *f, enum gf_part part, size_t class, struct gf_error *err)
{
	struct names *n = &f->files[part];
	GF_FREED char *path =
		gf_xasprintf("%s/%s/%s", f->path, part_folders[part], name_at(&f->classes, class));
	size_t i = f->first[part][class] = n->n;
	int rc = is_folder(path)
			 ? list(path, n, err)
			 : gf_error_set(err, -EINVAL,
					"%s: want a folder of a class's JPEG files, got no folder",
					path);

	if (!rc && i == n->n)
		rc = gf_error_set(err, -EINVAL, "%s: want JPEG files of this class, found none",
				  path);
	for (; !rc && i < n->n; i++)
		if (!is_jpeg(name_at(n, i)))
			rc = gf_error_set(
				err, -EINVAL,
				"%s/%s: want JPEG files alone (.jpg, .jpeg); convert or remove it",
				path, name_at(n, i));
	return rc;
}

/* Those of val are those of train. */
static int compare_classes(const struct folder *f, const struct names *val, struct gf_error *err)
{
	for (size_t i = 0; i < f->classes.n || i < val->n; i++) {
		const char *a = i < f->classes.n ? name_at(&f->classes, i) : NULL;
		const char *b = i < val->n ? name_at(val, i) : NULL;

		if (a && b && strcmp(a, b) == 0)
			continue;
		if (!b || (a && strcmp(a, b) < 0))
			return gf_error_set(err, -EINVAL,
					    "%s/val: want a folder %s, which train has, found none",
					    f->path, a);
		return gf_error_set(
			err, -EINVAL,
			"%s/val/%s: want classes that train has, which has none of this name",
			f->path, b);
	}
	return 0;
}

static int list_classes(struct folder *f, enum gf_part part, const struct gf_dataset_want *want,
			struct gf_error *err)
{
	GF_FREED char *path = gf_xasprintf("%s/%s", f->path, part_folders[part]);
	struct names val = {0};
	struct names *n = part == GF_PART_TRAIN ? &f->classes : &val;
	int rc = is_folder(path) ? list(path, n, err)
				 : gf_error_set(err, -ENOENT,
						"%s: want folders train and val with a folder of "
						"JPEG files for each class, found no %s",
						f->path, part_folders[part]);

	if (!rc && part == GF_PART_TEST)
		rc = compare_classes(f, &val, err);
	if (!rc && !n->n)
		rc = gf_error_set(err, -EINVAL, "%s: want a folder for each class, found none",
				  path);
	if (!rc && want->classes && n->n > want->classes)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want at most %zu classes for this model, got %zu", path,
				  want->classes, n->n);
	release_names(&val);
	return rc;
}

static int open_part(struct gf_dataset *d, enum gf_part part, const struct gf_dataset_want *want,
		     struct gf_error *err)
{
	struct folder *f = d->priv;
	int rc = list_classes(f, part, want, err);

	if (rc)
		return rc;
	f->first[part] = gf_xcalloc(f->classes.n + 1, sizeof(size_t));
	for (size_t i = 0; i < f->classes.n && !rc; i++)
		rc = list_class(f, part, i, err);
	d->count[part] = f->first[part][f->classes.n] = f->files[part].n;
	return rc;
}

/* --- the format ----------------------------------------------------------- */

static int recognise(const char *path)
{
	bool found = false;

	for (size_t part = 0; part < GF_PARTS; part++) {
		GF_FREED char *folder = gf_xasprintf("%s/%s", path, part_folders[part]);

		found |= is_folder(folder);
	}
	return found;
}

static int open_folder(const char *path, const struct gf_dataset_want *want, struct gf_dataset *d,
		       struct gf_error *err)
{
	struct folder *f = d->priv = gf_xcalloc(1, sizeof(*f));
	int part, rc = 0;

	f->path = gf_xstrdup(path);
	if (!gf_data_jpeg_reader)
		return gf_error_set(err, -EINVAL,
				    "%s: want a build that reads JPEG files, this one was made "
				    "without libjpeg-turbo",
				    path);
	if (want->input.rank != 3 || want->input.dims[0] != 3)
		return gf_error_set(
			err, -EINVAL,
			"%s: want a model that takes pictures of 3 channels, a height and a width",
			path);
	d->shape = want->input;
	f->want.height = want->input.dims[1];
	f->want.width = want->input.dims[2];
	for (size_t c = 0; c < 3; c++) {
		f->want.gain[c] = (float)(1 / (255 * deviations[c]));
		f->want.offset[c] = (float)(-means[c] / deviations[c]);
	}
	for (part = 0; part < GF_PARTS && !rc; part++)
		rc = open_part(d, (enum gf_part)part, want, err);
	d->classes = f->classes.n;
	return rc;
}

/* The last class that begins at the sample or before it: none is empty. */
static size_t class_of(const struct folder *f, const struct gf_draw *draw)
{
	const size_t *first = f->first[draw->part];
	size_t low = 0, high = f->classes.n;

	while (high - low > 1) {
		size_t half = low + (high - low) / 2;

		if (first[half] <= draw->index)
			low = half;
		else
			high = half;
	}
	return low;
}

static int sample(const struct gf_dataset *d, const struct gf_draw *draw, float *values,
		  int32_t *label, struct gf_error *err)
{
	const struct folder *f = d->priv;
	const size_t class = class_of(f, draw);
	GF_FREED char *path = gf_xasprintf("%s/%s/%s/%s", f->path, part_folders[draw->part],
					   name_at(&f->classes, class),
					   name_at(&f->files[draw->part], draw->index));
	int rc = gf_data_jpeg_reader(path, draw, &f->want, values, err);

	*label = (int32_t) class;
	return rc;
}

static void close_folder(struct gf_dataset *d)
{
	struct folder *f = d->priv;

	if (!f)
		return;
	for (int part = 0; part < GF_PARTS; part++) {
		release_names(&f->files[part]);
		free(f->first[part]);
	}
	release_names(&f->classes);
	free(f->path);
	free(f);
}

/* MANUAL
 * Pictures in ImageNet's form:
 * .Pa train/CLASS/
 * and
 * .Pa val/CLASS/
 * with files that end in
 * .Pa .jpg
 * or
 * .Pa .jpeg
 * in small or capital letters; see
 * .Sx Pictures . */
const struct gf_data_format gf_data_jpeg = {
	.name = "jpeg",
	.description = "a folder with train/CLASS/*.jpg and val/CLASS/*.jpg, "
		       "as ImageNet's",
	.place = 70,
	.recognise = recognise,
	.open = open_folder,
	.sample = sample,
	.close = close_folder,
	.crops = true,
};
