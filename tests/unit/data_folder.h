/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_DATA_FOLDER_H
#define GF_TESTS_DATA_FOLDER_H

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/heap.h"
#include "data/dataset.h"
#include "folder.h"
#include "test.h"

/* Readers of data on small files that are made here, in the test's folder. */

struct content {
	const char *name;
	const char *bytes;
	size_t size; /* 0: up to the NUL */
	size_t fill; /* bytes of `with` that are appended */
	char with;
};

static char *path_of(const char *name)
{
	return gf_xasprintf("%s/%s", folder, name);
}

static void put(const struct content *c)
{
	size_t n = strlen(c->name), i;
	char *path = path_of(c->name);
	size_t size = c->size || !c->bytes ? c->size : strlen(c->bytes);

	if (strcmp(c->name + n - 3, ".gz") == 0) {
		gzFile f = gzopen(path, "wb");

		gzwrite(f, c->bytes, (unsigned)size);
		for (i = 0; i < c->fill; i++)
			gzputc(f, c->with);
		gzclose(f);
	} else {
		FILE *f = fopen(path, "wb");

		fwrite(c->bytes, 1, size, f);
		for (i = 0; i < c->fill; i++)
			fputc(c->with, f);
		fclose(f);
	}
	free(path);
}

static void put_all(const struct content *files)
{
	for (; files->name; files++)
		put(files);
}

static void clear(const struct content *files)
{
	for (; files->name; files++) {
		char *path = path_of(files->name);

		unlink(path);
		free(path);
	}
}

static int open_folder(const char *format, const struct gf_dataset_want *want, struct gf_dataset *d,
		       struct gf_error *err)
{
	char *path = gf_xasprintf("%s%s%s", format ? format : "", format ? ":" : "", folder);
	int rc;

	err->text[0] = '\0';
	rc = gf_dataset_open(path, want, d, err);
	free(path);
	return rc;
}

/* A fault of a folder, and the message that names it. */
struct bad_folder {
	const char *label;
	struct {
		const struct content *files; /* all of them, then */
		struct content instead;      /* name: replaces it; size 0: missing */
		const char *format;
		const struct gf_dataset_want *want;
		int rc;
	};
	const char *text;
};

static void put_but(const struct content *files, const struct content *instead)
{
	struct content other = *instead;

	for (; files->name; files++)
		if (!instead->name || strcmp(files->name, instead->name) != 0)
			put(files);
	if (other.size == 1000)
		other.size = 0;
	if (instead->size)
		put(&other);
}

static void test_bad_folders(const struct bad_folder *bad, size_t n)
{
	struct gf_dataset d;
	struct gf_error err;
	size_t i;
	int rc;

	for (i = 0; i < n; i++) {
		put_but(bad[i].files, &bad[i].instead);
		rc = open_folder(bad[i].format, bad[i].want, &d, &err);
		EXPECT(rc == bad[i].rc, "%s: got %d", bad[i].label, rc);
		EXPECT(strstr(err.text, bad[i].text), "%s: got \"%s\"", bad[i].label, err.text);
		EXPECT(!strchr(err.text, '\n'), "%s", bad[i].label);
		if (!rc)
			gf_dataset_close(&d);
		clear(bad[i].files);
	}
}

#endif
