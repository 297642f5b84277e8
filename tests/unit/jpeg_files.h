/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_JPEG_FILES_H
#define GF_TESTS_JPEG_FILES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jpeglib.h>

#include "base/file.h"
#include "base/heap.h"
#include "data/dataset.h"
#include "folder.h"
#include "test.h"

/* Folders of JPEG files in the test's folder, which libjpeg itself writes. */

/* Red grows from left to right, green from top to bottom, and blue stays. */
static inline double colour(int channel, double x, double y)
{
	return channel == 0 ? 20 + 200 * x : channel == 1 ? 20 + 200 * y : 120;
}

enum inks { LIGHT, ADOBE, PLAIN }; /* RGB; inverted inks, marked; inks */

struct picture {
	unsigned width, height;
	enum inks inks;
	J_COLOR_SPACE space; /* in the file */
	bool progressive;
	int scans; /* one component each; 0: the usual */
};

static inline void fill_row(const struct picture *p, unsigned y, unsigned char *row)
{
	unsigned x;
	int c;

	for (x = 0; x < p->width; x++) {
		for (c = 0; c < 3; c++) {
			double v = colour(c, (x + .5) / p->width, (y + .5) / p->height);

			if (p->space == JCS_GRAYSCALE)
				v = colour(0, (x + .5) / p->width, 0);
			*row++ = (unsigned char)lround(p->inks == PLAIN ? 255 - v : v);
		}
		if (p->inks != LIGHT)
			*row++ = p->inks == ADOBE ? 255 : 0;
	}
}

static const jpeg_scan_info three_scans[] = {
	{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};

/* The file's bytes; the caller frees. */
static inline unsigned char *encode(const struct picture *p, size_t *size)
{
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr errors;
	unsigned char *bytes = NULL, *row = gf_xcalloc(p->width, 4);
	unsigned long length = 0;
	unsigned y;

	c.err = jpeg_std_error(&errors);
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, &bytes, &length);
	c.image_width = p->width;
	c.image_height = p->height;
	c.input_components = p->inks == LIGHT ? 3 : 4;
	c.in_color_space = p->inks == LIGHT ? JCS_RGB : JCS_CMYK;
	jpeg_set_defaults(&c);
	jpeg_set_colorspace(&c, p->space);
	jpeg_set_quality(&c, 95, TRUE);
	if (p->inks == PLAIN)
		c.write_Adobe_marker = FALSE;
	if (p->progressive)
		jpeg_simple_progression(&c);
	if (p->scans) {
		c.scan_info = three_scans;
		c.num_scans = 3;
	}
	jpeg_start_compress(&c, TRUE);
	for (y = 0; y < p->height; y++) {
		fill_row(p, y, row);
		jpeg_write_scanlines(&c, &row, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	free(row);
	*size = length;
	return bytes;
}

/* --- a folder ------------------------------------------------------------- */

static inline char *path_of(const char *name)
{
	return gf_xasprintf("%s/%s", folder, name);
}

/* With the folders above it. */
static inline void put(const char *name, const void *bytes, size_t size)
{
	char *path = path_of(name), *at = path + strlen(folder);
	struct gf_error err;

	while ((at = strchr(at + 1, '/'))) {
		*at = '\0';
		mkdir(path, 0777);
		*at = '/';
	}
	if (size || bytes)
		EXPECT(!gf_file_write(path, bytes, size, &err), "%s", err.text);
	free(path);
}

static inline void put_picture(const char *name, const struct picture *p)
{
	size_t size;
	unsigned char *bytes = encode(p, &size);

	put(name, bytes, size);
	free(bytes);
}

static inline void clear(void)
{
	char *command = gf_xasprintf("rm -rf '%s'/train '%s'/val", folder, folder);

	EXPECT(system(command) == 0, "%s", command);
	free(command);
}

static const struct picture small = {40, 30, LIGHT, JCS_YCbCr, false, 0};

static inline int open_size(size_t width, size_t height, struct gf_dataset *d, struct gf_error *err)
{
	const struct gf_dataset_want want = {.input = {3, {3, height, width}}, .classes = 3};

	err->text[0] = '\0';
	return gf_dataset_open(folder, &want, d, err);
}

#endif
