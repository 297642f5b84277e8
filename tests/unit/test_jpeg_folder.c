/* SPDX-License-Identifier: BSD-3-Clause */
/* Folders of JPEG files: classes, and what is refused by name. */
#include "jpeg_files.h"

#include <errno.h>

#include "base/array.h"
#include "data/loader.h"

/* --- hostile files -------------------------------------------------------- */

static void spoil_cut(unsigned char *bytes, size_t *size)
{
	(void)bytes;
	*size = *size * 9 / 10;
}

static void spoil_end(unsigned char *bytes, size_t *size)
{
	spoil_cut(bytes, size);
	memcpy(bytes + *size - 2, "\xff\xd9", 2);
}

/* A marker amid the data of the scan. */
static void spoil_middle(unsigned char *bytes, size_t *size)
{
	memcpy(bytes + *size / 2, "\xff\xd9", 2);
}

static void spoil_start(unsigned char *bytes, size_t *size)
{
	memcpy(bytes, "\x89PNG\r\n\x1a\n", 8);
	(void)size;
}

static void spoil_empty(unsigned char *bytes, size_t *size)
{
	(void)bytes;
	*size = 0;
}

/* 65500 x 65500, as the frame's header says. */
static void spoil_size(unsigned char *bytes, size_t *size)
{
	unsigned char *frame = memmem(bytes, *size, "\xff\xc0", 2);

	memcpy(frame + 5, "\xff\xdc\xff\xdc", 4);
}

static const struct {
	const char *label;
	void (*spoil)(unsigned char *bytes, size_t *size);
	const char *text;
} bad_files[] = {
	{"truncated", spoil_cut, "want a whole JPEG file, its end is missing"},
	{"truncated, with an end", spoil_end, "premature end of data"},
	{"damaged", spoil_middle, "premature end of data"},
	{"a PNG", spoil_start, "Not a JPEG file: starts with 0x89 0x50"},
	{"empty", spoil_empty, "Empty input file"},
	{"huge", spoil_size, "want at most 134217728 pixels, got 4290250000"},
};

/* In one line with the file's name, by one thread as by several. */
static void expect_failure(const char *label, const char *text)
{
	const struct gf_batch *batch;
	struct gf_dataset d;
	struct gf_error err;
	struct gf_loader *l;
	int rc = open_size(28, 28, &d, &err);

	EXPECT(rc == 0, "%s: %s", label, err.text);
	if (rc)
		return;
	l = gf_loader_new(&(struct gf_loader_config){
		.data = &d,
		.augment = {true, 0, 1},
		.batch = 3,
		.accumulate = 1,
		.ranks = 1,
		.threads = 2,
	});
	rc = gf_loader_take(l, 1, 0, &batch, &err);
	EXPECT(rc == -EINVAL && strstr(err.text, text) && strstr(err.text, "/train/b/bad.jpg: ") &&
		       !strchr(err.text, '\n'),
	       "%s: %d %s", label, rc, err.text);
	gf_loader_free(l);
	gf_dataset_close(&d);
}

static void test_bad_files(void)
{
	const struct picture sound = {200, 150, LIGHT, JCS_YCbCr, false, 0};
	const struct picture scans = {40, 30, LIGHT, JCS_YCbCr, false, 3};
	unsigned char *bytes, *many, *last;
	size_t size, length, i;
	char *path = path_of("train/b/bad.jpg");

	put_picture("train/a/1.jpg", &small);
	put_picture("train/b/0.jpg", &small);
	put_picture("val/a/1.jpg", &small);
	put_picture("val/b/1.jpg", &small);
	for (i = 0; i < GF_ARRAY_LENGTH(bad_files); i++) {
		bytes = encode(&sound, &size);
		bad_files[i].spoil(bytes, &size);
		put("train/b/bad.jpg", bytes, size);
		expect_failure(bad_files[i].label, bad_files[i].text);
		free(bytes);
	}
	/* the last scan again and again */
	bytes = encode(&scans, &size);
	for (last = bytes + size - 2; memcmp(last, "\xff\xda", 2) != 0;)
		last--;
	length = (size_t)(bytes + size - 2 - last);
	many = gf_xcalloc(200 * length + size, 1);
	memcpy(many, bytes, size);
	for (i = 0; i < 100; i++)
		memcpy(many + size - 2 + i * length, last, length);
	memcpy(many + size - 2 + i * length, "\xff\xd9", 2);
	put("train/b/bad.jpg", many, size + i * length);
	expect_failure("many scans", "want at most 100 scans, got 101");
	/* of 2^26 pixels */
	memcpy((unsigned char *)memmem(bytes, size, "\xff\xc0", 2) + 5, "\x20\x00\x20\x00", 4);
	put("train/b/bad.jpg", bytes, size);
	expect_failure("several huge scans",
		       "want at most 33554432 pixels in several scans, got 67108864");
	free(bytes);
	free(many);
	unlink(path);
	EXPECT(mkfifo(path, 0600) == 0, "mkfifo");
	expect_failure("a pipe", "want a regular file");
	free(path);
	clear();
}

/* --- hostile folders ------------------------------------------------------ */

#define FILES 6

static const struct {
	const char *label;
	const char *files[FILES]; /* ending in "/": a folder */
	struct {
		size_t channels;
		int rc;
	};
	const char *text;
} bad_folders[] = {
	{"no val",
	 {"train/a/1.jpg"},
	 {3, -ENOENT},
	 "want folders train and val with a folder of JPEG files for each class, found no val"},
	{"no train", {"val/a/1.jpg"}, {3, -ENOENT}, "found no train"},
	{"no class",
	 {"train/", "val/"},
	 {3, -EINVAL},
	 "/train: want a folder for each class, found none"},
	{"an empty class",
	 {"train/a/1.jpg", "train/b/", "val/a/1.jpg", "val/b/1.jpg"},
	 {3, -EINVAL},
	 "/train/b: want JPEG files of this class, found none"},
	{"a class that val lacks",
	 {"train/a/1.jpg", "train/b/1.jpg", "val/b/1.jpg"},
	 {3, -EINVAL},
	 "/val: want a folder a, which train has, found none"},
	{"a class that train lacks",
	 {"train/a/1.jpg", "val/a/1.jpg", "val/b/1.jpg"},
	 {3, -EINVAL},
	 "/val/b: want classes that train has"},
	{"another kind of file",
	 {"train/a/1.jpg", "train/a/2.png", "val/a/1.jpg"},
	 {3, -EINVAL},
	 "/train/a/2.png: want JPEG files alone (.jpg, .jpeg); convert"},
	{"a file beside classes",
	 {"train/a/1.jpg", "train/list.txt", "val/a/1.jpg"},
	 {3, -EINVAL},
	 "/train/list.txt: want a folder of a class's JPEG files"},
	{"too many classes",
	 {"train/a/1.jpg", "train/b/1.jpg", "train/c/1.jpg", "train/d/1.jpg"},
	 {3, -EINVAL},
	 "/train: want at most 3 classes for this model, got 4"},
	{"a model for grey images",
	 {"train/a/1.jpg", "val/a/1.jpg"},
	 {1, -EINVAL},
	 "want a model that takes pictures of 3 channels"},
	{"hidden files",
	 {"train/a/1.jpg", "train/a/.DS_Store", "train/.x", "val/a/1.jpg"},
	 {3, 0},
	 ""},
};

static void test_bad_folders(void)
{
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(bad_folders); i++) {
		const struct gf_dataset_want want = {.input = {3, {bad_folders[i].channels, 8, 8}},
						     .classes = 3};
		struct gf_error err = {""};
		struct gf_dataset d;
		int rc;

		for (k = 0; k < FILES && bad_folders[i].files[k]; k++) {
			const char *name = bad_folders[i].files[k];

			put(name, name[strlen(name) - 1] == '/' ? NULL : "x",
			    name[strlen(name) - 1] != '/');
		}
		rc = gf_dataset_open(folder, &want, &d, &err);
		EXPECT(rc == bad_folders[i].rc && strstr(err.text, bad_folders[i].text),
		       "%s: %d %s", bad_folders[i].label, rc, err.text);
		if (!rc)
			gf_dataset_close(&d);
		clear();
	}
}

/* Labels are the places of the classes' names, whichever way the files lie. */
static void test_labels(void)
{
	static const char *const names[] = {"b/1.jpg", "a/2.jpg", "c/1.jpg", "a/1.JPG", "b/2.jpeg"};
	static const size_t all[] = {0, 1, 2, 3, 4};
	static float values[5 * 3 * 8 * 8];
	struct gf_dataset d;
	struct gf_error err;
	int32_t labels[5];
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(names); i++) {
		char *name = gf_xasprintf("train/%s", names[i]);

		put_picture(name, &small);
		free(name);
	}
	for (i = 0; i < 3; i++) {
		char name[] = "val/?/1.jpg";

		name[4] = (char)('a' + i);
		put_picture(name, &small);
	}
	EXPECT(!open_size(8, 8, &d, &err), "%s", err.text);
	EXPECT(d.count[GF_PART_TRAIN] == 5 && d.count[GF_PART_TEST] == 3 && d.classes == 3 &&
		       !strcmp(d.format->name, "jpeg"),
	       "%zu %zu", d.count[0], d.count[1]);
	EXPECT(!gf_dataset_batch(&d, GF_PART_TRAIN, all, 5, values, labels, &err), "%s", err.text);
	EXPECT(labels[0] == 0 && labels[1] == 0 && labels[2] == 1 && labels[3] == 1 &&
		       labels[4] == 2,
	       "%d %d %d %d %d", labels[0], labels[1], labels[2], labels[3], labels[4]);
	gf_dataset_close(&d);
	clear();
}

int main(void)
{
	make_folder("test_jpeg_folder");
	test_bad_files();
	test_bad_folders();
	test_labels();
	return TEST_END();
}
