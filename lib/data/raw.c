/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/formats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "data/images.h"
#include "doc/dataset.h"

/*
 * Image bytes as they are, one image behind the other, described by a gf-data
 * document beside them (gf-data(5)). The images are mapped, not read: they may
 * be larger than memory, and the ranks of a host share one copy.
 */
#define HEADER "dataset.json"

static char *header_path(const char *folder)
{
	return gf_xasprintf("%s/" HEADER, folder);
}

static int recognise(const char *folder)
{
	char *path = header_path(folder);
	int found = access(path, F_OK) == 0;

	free(path);
	return found;
}

static int read_header(const char *folder, struct gf_data_header *h,
		       struct gf_error *err)
{
	char *path = header_path(folder), *text = NULL;
	struct gf_json *root = NULL;
	size_t size;
	int rc;

	rc = gf_file_read(path, &text, &size, err);
	if (!rc)
		rc = gf_json_parse(text, size, path, &root, err);
	if (!rc)
		rc = gf_data_header_read(root, path, h, err);
	gf_json_free(root);
	free(text);
	free(path);
	return rc;
}

/* A whole file of exactly `want` bytes, mapped for reading. */
static int map(const char *folder, const char *name, size_t want,
	       unsigned char **bytes, struct gf_error *err)
{
	char *path = gf_xasprintf("%s/%s", folder, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
	struct stat st = {0};
	void *at;

	if (fd < 0 || fstat(fd, &st)) {
		rc = gf_error_errno(err, -errno, "%s", path);
	} else if (!S_ISREG(st.st_mode) || (size_t)st.st_size != want) {
		rc = gf_error_set(err, -EINVAL,
				  "%s: want %zu bytes as %s says, got %lld",
				  path, want, HEADER, (long long)st.st_size);
	} else {
		at = mmap(NULL, want, PROT_READ, MAP_SHARED, fd, 0);
		if (at == MAP_FAILED)
			rc = gf_error_errno(err, -errno, "%s", path);
		else
			*bytes = at;
	}
	if (fd >= 0)
		close(fd);
	free(path);
	return rc;
}

static size_t label_at(const unsigned char *bytes, size_t width, size_t index)
{
	size_t label = 0, k;

	for (k = width; k-- > 0;)
		label = label << 8 | bytes[index * width + k];
	return label;
}

static int take_labels(const char *folder, const struct gf_data_header *h,
		       enum gf_part part, struct gf_dataset *d,
		       struct gf_error *err)
{
	const struct gf_data_part *p =
		part == GF_PART_TRAIN ? h->train : h->test;
	/* whatever the model wants, the document has promised */
	const struct gf_dataset_want want = {.classes = h->classes};
	size_t bytes = p->count * h->label_bytes, i;
	struct gf_images *m = d->priv;
	unsigned char *labels;
	int rc = map(folder, p->labels, bytes, &labels, err);

	if (rc)
		return rc;
	m->labels[part] = gf_xcalloc(p->count, sizeof(int32_t));
	for (i = 0; i < p->count && !rc; i++)
		rc = gf_images_label(d, part, i,
				     label_at(labels, h->label_bytes, i), &want,
				     p->labels, err);
	munmap(labels, bytes);
	if (rc)
		gf_error_prefix(err, "%s", folder);
	return rc;
}

static int open_part(const char *folder, const struct gf_data_header *h,
		     enum gf_part part, struct gf_dataset *d,
		     struct gf_error *err)
{
	const struct gf_data_part *p =
		part == GF_PART_TRAIN ? h->train : h->test;
	size_t image = gf_shape_elems(&h->shape);
	struct gf_images *m = d->priv;
	int rc;

	if (image > SIZE_MAX / 2 / p->count)
		return gf_error_set(err, -EINVAL,
				    "%s/" HEADER ": want images of less than "
				    "2^63 bytes in all, got more",
				    folder);
	rc = map(folder, p->images, p->count * image, &m->bytes[part], err);
	if (rc)
		return rc;
	m->mapped_bytes[part] = p->count * image;
	d->count[part] = p->count;
	return take_labels(folder, h, part, d, err);
}

static int open_raw(const char *folder, const struct gf_dataset_want *want,
		    struct gf_dataset *d, struct gf_error *err)
{
	struct gf_data_header h;
	int part, rc;

	rc = read_header(folder, &h, err);
	if (rc)
		return rc;
	d->priv = gf_xcalloc(1, sizeof(struct gf_images));
	d->shape = h.shape;
	if (want->classes && h.classes > want->classes)
		rc = gf_error_set(err, -EINVAL,
				  "%s/" HEADER ": want at most %zu classes for "
				  "this model, got %zu",
				  folder, want->classes, h.classes);
	for (part = 0; part < GF_PARTS && !rc; part++)
		rc = open_part(folder, &h, (enum gf_part)part, d, err);
	d->classes = h.classes;
	if (h.nmean)
		gf_images_normalise(d, (unsigned)h.max_byte, h.mean,
				    h.deviation);
	else
		gf_images_scale(d, (unsigned)h.max_byte);
	gf_data_header_release(&h);
	return rc;
}

const struct gf_data_format gf_data_raw = {
	.name = "raw",
	.description =
		"a folder with raw bytes of images and labels, described "
		"by " HEADER " (gf-data(5))",
	.recognise = recognise,
	.open = open_raw,
	.sample = gf_images_sample,
	.close = gf_images_close,
};
