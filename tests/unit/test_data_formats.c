/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/array.h"
#include "base/heap.h"
#include "data/dataset.h"

/* Readers on small files that are made here: CIFAR's records, raw bytes with
 * their header, text by words and by characters. */
static char folder[] = "/tmp/test_data_formats.XXXXXX";

struct content {
	const char *name;
	const char *bytes;
	size_t size; /* 0: up to the NUL */
	size_t fill; /* so many bytes of `with` behind */
	char with;
};

#define MAX_FILES 8

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

static int open_folder(const char *format, const struct gf_dataset_want *want,
		       struct gf_dataset *d, struct gf_error *err)
{
	char *path = gf_xasprintf("%s%s%s", format ? format : "",
				  format ? ":" : "", folder);
	int rc;

	err->text[0] = '\0';
	rc = gf_dataset_open(path, want, d, err);
	free(path);
	return rc;
}

/* --- CIFAR --------------------------------------------------------------- */

#define PIXELS 3072
#define BATCH(n)                                                               \
	{                                                                      \
		"data_batch_" n ".bin", "\1\xff", 2, PIXELS - 1, 16            \
	}

static const struct content cifar10[] = {
	BATCH("1"), {"data_batch_2.bin.gz", "\2", 1, PIXELS, 51},
	BATCH("3"), BATCH("4"),
	BATCH("5"), {"test_batch.bin", "\11", 1, PIXELS, 102},
	{0},
};
static const struct content cifar100[] = {
	{"train.bin", "\23\143", 2, PIXELS, 4},
	{"test.bin", "\0\7", 2, PIXELS, 2},
	{0},
};

static void test_cifar(void)
{
	static const size_t first = 0, second = 1;
	struct gf_dataset_want want = {.input = {3, {3, 32, 32}}};
	static float x[PIXELS];
	struct gf_dataset d;
	struct gf_error err;
	int32_t label;

	put_all(cifar10);
	EXPECT(!open_folder(NULL, &want, &d, &err), "%s", err.text);
	EXPECT(strcmp(d.format->name, "cifar10") == 0 &&
		       d.count[GF_PART_TRAIN] == 5 &&
		       d.count[GF_PART_TEST] == 1 && d.classes == 10,
	       "%s, %zu", d.format->name, d.count[GF_PART_TRAIN]);
	gf_dataset_batch(&d, GF_PART_TRAIN, &first, 1, x, &label);
	EXPECT(label == 1 && x[0] == 1 && x[1] == 16 / 255.f, "%g", x[1]);
	gf_dataset_batch(&d, GF_PART_TRAIN, &second, 1, x, &label);
	EXPECT(label == 2 && x[PIXELS - 1] == 51 / 255.f, "second");
	gf_dataset_batch(&d, GF_PART_TEST, &first, 1, x, &label);
	EXPECT(label == 9 && x[0] == 102 / 255.f, "test");
	gf_dataset_close(&d);
	clear(cifar10);

	put_all(cifar100);
	EXPECT(!open_folder(NULL, &want, &d, &err), "%s", err.text);
	EXPECT(strcmp(d.format->name, "cifar100") == 0 && d.classes == 100,
	       "%s %zu", d.format->name, d.classes);
	gf_dataset_batch(&d, GF_PART_TRAIN, &first, 1, x, &label);
	EXPECT(label == 99 && x[5] == 1, "fine label %d", label);
	gf_dataset_close(&d);
	clear(cifar100);
}

/* --- raw ----------------------------------------------------------------- */

#define HEADER(shape, more, label_bytes, images)                               \
	"{\"format\": \"gf-data\", \"version\": 1, \"name\": \"tiny\","        \
	" \"shape\": " shape ", \"classes\": 300" more                         \
	", \"label_bytes\": " label_bytes                                      \
	", \"train\": {\"count\": 2, \"images\": \"" images "\","              \
	" \"labels\": \"train.labels\"},"                                      \
	" \"test\": {\"count\": 1, \"images\": \"test.images\","               \
	" \"labels\": \"test.labels\"}}"

static const struct content raw[] = {
	{"dataset.json",
	 HEADER("[1, 1, 2]", ", \"max_byte\": 16", "2", "train.images"), 0},
	{"train.images", "\0\20\10\4", 4},
	{"train.labels", "\1\0\53\1", 4},
	{"test.images", "\2\40", 2},
	{"test.labels", "\0\0", 2},
	{0},
};

static void test_raw(void)
{
	static const size_t both[] = {1, 0};
	struct gf_dataset_want want = {.input = {3, {1, 1, 2}}, .classes = 300};
	struct gf_dataset d;
	struct gf_error err;
	int32_t labels[2];
	float x[4];

	put_all(raw);
	EXPECT(!open_folder(NULL, &want, &d, &err), "%s", err.text);
	EXPECT(strcmp(d.format->name, "raw") == 0 && d.classes == 300 &&
		       d.count[GF_PART_TRAIN] == 2,
	       "%s", d.format->name);
	gf_dataset_batch(&d, GF_PART_TRAIN, both, 2, x, labels);
	EXPECT(labels[0] == 299 && labels[1] == 1, "%d", labels[0]);
	EXPECT(x[0] == .5f && x[1] == .25f && x[2] == 0 && x[3] == 1, "values");
	gf_dataset_batch(&d, GF_PART_TEST, both + 1, 1, x, labels);
	EXPECT(x[1] == 2, "beyond the largest: %g", x[1]);
	gf_dataset_close(&d);
	clear(raw);
}

/* --- text ---------------------------------------------------------------- */

#define WORDS(vocabulary_, length)                                             \
	(struct gf_dataset_want)                                               \
	{                                                                      \
		.input = {1, {length}}, .positions = length,                   \
		.vocabulary = vocabulary_, .classes = vocabulary_              \
	}

static const struct content words[] = {
	{"ptb.train.txt", " b a b c\n b a\n a b d\n", 0},
	{"ptb.test.txt.gz", "b e\nd b\n", 0},
	{"ptb.valid.txt", "not read\n", 0},
	{0},
};

/* b 4, a 3, <eos> 3; c, d and <unk> follow: c and d once each, but <unk> must
 * be in, whatever it counts. */
static void test_words(void)
{
	static const struct {
		size_t room, vocabulary;
		float first[3], last[3]; /* two training samples */
		int32_t first_label[3], last_label[3], test[3];
	} cases[] = {
		/* <eos> before a: equal counts go by their bytes */
		{9, 6, {0, 2, 0}, {2, 1, 2}, {2, 0, 3}, {1, 2, 0}, {5, 1, 4}},
		{5, 5, {0, 2, 0}, {2, 1, 2}, {2, 0, 3}, {1, 2, 0}, {4, 1, 4}},
		{4, 4, {0, 2, 0}, {2, 1, 2}, {2, 0, 3}, {1, 2, 0}, {3, 1, 3}},
		{1, 1, {0}, {0}, {0}, {0}, {0}},
	};
	static const size_t zero = 0, two = 2;
	struct gf_dataset d;
	struct gf_error err;
	int32_t labels[3];
	float x[3];
	size_t i;

	put_all(words);
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_dataset_want want = WORDS(cases[i].room, 3);

		EXPECT(!open_folder(NULL, &want, &d, &err), "%s", err.text);
		EXPECT(strcmp(d.format->name, "words") == 0 &&
			       d.vocabulary == cases[i].vocabulary &&
			       d.consecutive && d.positions == 3 &&
			       d.count[GF_PART_TRAIN] == 3 &&
			       d.count[GF_PART_TEST] == 1,
		       "case %zu: %s %zu words, %zu + %zu samples", i,
		       d.format->name, d.vocabulary, d.count[GF_PART_TRAIN],
		       d.count[GF_PART_TEST]);
		gf_dataset_batch(&d, GF_PART_TRAIN, &zero, 1, x, labels);
		EXPECT(memcmp(x, cases[i].first, sizeof(x)) == 0 &&
			       memcmp(labels, cases[i].first_label,
				      sizeof(labels)) == 0,
		       "case %zu: %g %g %g, then %d", i, x[0], x[1], x[2],
		       labels[2]);
		gf_dataset_batch(&d, GF_PART_TRAIN, &two, 1, x, labels);
		EXPECT(memcmp(x, cases[i].last, sizeof(x)) == 0 &&
			       memcmp(labels, cases[i].last_label,
				      sizeof(labels)) == 0,
		       "case %zu: %g %g %g, then %d", i, x[0], x[1], x[2],
		       labels[2]);
		gf_dataset_batch(&d, GF_PART_TEST, &zero, 1, x, labels);
		EXPECT(memcmp(labels, cases[i].test, sizeof(labels)) == 0,
		       "case %zu: %d %d %d", i, labels[0], labels[1],
		       labels[2]);
		gf_dataset_close(&d);
	}
	clear(words);
}

static const struct content one_text[] = {
	{"book.txt",
	 "abcabcabcabc\nab\nab\nab\nab\nab\n\xe9"
	 "a\n",
	 0},
	{0},
};

static void test_chars(void)
{
	struct gf_dataset_want want = WORDS(6, 2);
	static const size_t zero = 0;
	struct gf_dataset d;
	struct gf_error err;
	int32_t labels[2];
	float x[2];

	put_all(one_text);
	EXPECT(!open_folder(NULL, &want, &d, &err), "%s", err.text);
	EXPECT(strcmp(d.format->name, "chars") == 0 && d.vocabulary == 5 &&
		       d.count[GF_PART_TRAIN] == 13 &&
		       d.count[GF_PART_TEST] == 1,
	       "%zu: %zu + %zu", d.vocabulary, d.count[GF_PART_TRAIN],
	       d.count[GF_PART_TEST]);
	gf_dataset_batch(&d, GF_PART_TRAIN, &zero, 1, x, labels);
	EXPECT(x[0] == 1 && x[1] == 2 && labels[0] == 2 && labels[1] == 3,
	       "a b, b c");
	/* the last tenth begins with a line */
	gf_dataset_batch(&d, GF_PART_TEST, &zero, 1, x, labels);
	EXPECT(x[0] == 4 && x[1] == 1 && labels[1] == 0, "%g %g", x[0], x[1]);
	gf_dataset_close(&d);
	/* one answer per sample */
	want.positions = 1;
	EXPECT(!open_folder("chars", &want, &d, &err), "%s", err.text);
	gf_dataset_batch(&d, GF_PART_TRAIN, &zero, 1, x, labels);
	EXPECT(d.positions == 1 && labels[0] == 3, "label %d", labels[0]);
	gf_dataset_close(&d);
	clear(one_text);
}

/* --- hostile files ------------------------------------------------------- */

static const struct gf_dataset_want any, few = {.classes = 2},
					 flat = {.input = {1, {7}}};
static const struct gf_dataset_want text3 = {
	.input = {1, {3}}, .positions = 3, .vocabulary = 9, .classes = 9};
static const struct gf_dataset_want text100 = {
	.input = {1, {3}}, .positions = 3, .vocabulary = 100, .classes = 100};
static const struct gf_dataset_want text_wrong = {
	.input = {1, {3}}, .positions = 2, .vocabulary = 9, .classes = 9};
static const struct gf_dataset_want text_few = {
	.input = {1, {3}}, .positions = 3, .vocabulary = 2, .classes = 2};

static const struct {
	const char *label;
	const struct content *files; /* all of them, then */
	struct content instead;      /* name: replaces it; size 0: missing */
	const char *format;
	const struct gf_dataset_want *want;
	int rc;
	const char *text;
} bad[] = {
	{"nothing",
	 (const struct content[]){{0}},
	 {0},
	 NULL,
	 &any,
	 -ENOENT,
	 "want a folder with data of a known format (raw, idx, cifar10, "
	 "cifar100, words, chars) or synthetic, found none"},
	{"a batch is missing",
	 cifar10,
	 {"data_batch_4.bin"},
	 NULL,
	 &any,
	 -ENOENT,
	 "want a file data_batch_4.bin or .gz, found none"},
	{"half a record",
	 cifar10,
	 {"data_batch_4.bin", "\1", 1, 3071, 9},
	 NULL,
	 &any,
	 -EINVAL,
	 "data_batch_4.bin: want whole records of 3073 bytes, got 3072 bytes"},
	{"CIFAR-100 as CIFAR-10",
	 cifar10,
	 {"data_batch_4.bin", "\1", 1, 3073, 9},
	 NULL,
	 &any,
	 -EINVAL,
	 "want whole records of 3073 bytes, got 3074"},
	{"an empty batch",
	 cifar10,
	 {"data_batch_4.bin", "", 0, 0, 9},
	 NULL,
	 &any,
	 -ENOENT,
	 "want a file data_batch_4.bin"},
	{"labels out of range",
	 cifar10,
	 {0},
	 NULL,
	 &few,
	 -EINVAL,
	 "data_batch_2.bin.gz: want labels below 2, label 1 is 2"},
	{"another shape",
	 cifar100,
	 {0},
	 NULL,
	 &flat,
	 -EINVAL,
	 "want samples of 7 for this model, got 3x32x32"},
	{"no images for this model",
	 cifar100,
	 {0},
	 NULL,
	 &text100,
	 -EINVAL,
	 "want text for this model, got images"},
	{"another format",
	 cifar100,
	 {0},
	 "cifar10",
	 &any,
	 -ENOENT,
	 "want a file data_batch_1.bin or .gz, found none"},
	{"no such header",
	 cifar100,
	 {0},
	 "raw",
	 &any,
	 -ENOENT,
	 "dataset.json: No such file"},
	{"no JSON",
	 raw,
	 {"dataset.json", "{", 1},
	 NULL,
	 &any,
	 -EINVAL,
	 "dataset.json:1:"},
	{"another document",
	 raw,
	 {"dataset.json", "{\"format\": \"gf-plan\"}", 21},
	 NULL,
	 &any,
	 -EINVAL,
	 "dataset.json: /format: want \"gf-data\", got \"gf-plan\""},
	{"an odd label",
	 raw,
	 {"dataset.json", HEADER("[2]", "", "3", "train.images"), 1000},
	 NULL,
	 &any,
	 -EINVAL,
	 "dataset.json: /label_bytes: want 1, 2 or 4, got 3"},
	{"a path",
	 raw,
	 {"dataset.json", HEADER("[2]", "", "2", "../etc/passwd"), 1000},
	 NULL,
	 &any,
	 -EINVAL,
	 "dataset.json: /train/images: want the name of a file beside this "
	 "one, got \"../etc/passwd\""},
	{"a huge shape",
	 raw,
	 {"dataset.json",
	  HEADER("[1000000000, 1000000000, 1000000000]", "", "2",
		 "train.images"),
	  1000},
	 NULL,
	 &any,
	 -EINVAL,
	 "want images of less than 2^63 bytes in all, got more"},
	{"no file",
	 raw,
	 {"dataset.json", HEADER("[2]", "", "2", "other.images"), 1000},
	 NULL,
	 &any,
	 -ENOENT,
	 "other.images: No such file"},
	{"images cut",
	 raw,
	 {"train.images", "\1\2\3", 3},
	 NULL,
	 &any,
	 -EINVAL,
	 "train.images: want 4 bytes as dataset.json says, got 3"},
	{"labels too long",
	 raw,
	 {"test.labels", "\1\0\0", 3},
	 NULL,
	 &any,
	 -EINVAL,
	 "test.labels: want 2 bytes as dataset.json says, got 3"},
	{"label out of its range",
	 raw,
	 {"test.labels", "\54\1", 2},
	 NULL,
	 &any,
	 -EINVAL,
	 "test.labels: want labels below 300, label 0 is 300"},
	{"more classes than the model",
	 raw,
	 {0},
	 NULL,
	 &few,
	 -EINVAL,
	 "want at most 2 classes for this model, got 300"},
	{"a folder for a file",
	 raw,
	 {"test.images"},
	 NULL,
	 &any,
	 -ENOENT,
	 "test.images: No such file"},
	{"no test part",
	 words,
	 {"ptb.test.txt.gz"},
	 NULL,
	 &text3,
	 -ENOENT,
	 "want a file ptb.test.txt or .gz, found none"},
	{"too short",
	 words,
	 {"ptb.test.txt.gz", "a b", 3},
	 NULL,
	 &text3,
	 -EINVAL,
	 "want more than 3 words or characters in the test part, got 2"},
	{"text for images",
	 words,
	 {0},
	 NULL,
	 &flat,
	 -EINVAL,
	 "is text: want a model that reads word numbers"},
	{"labels of another length",
	 words,
	 {0},
	 NULL,
	 &text_wrong,
	 -EINVAL,
	 "want 2 labels per sample for this model, got 3"},
	{"several texts",
	 words,
	 {"ptb.train.txt"},
	 NULL,
	 &text3,
	 -ENOENT,
	 "want train.txt and test.txt, or one .txt file, found 2"},
	{"too many characters",
	 one_text,
	 {0},
	 NULL,
	 &text_few,
	 -EINVAL,
	 "want at most 2 different characters for this model, found 5"},
	{"an empty text",
	 one_text,
	 {"book.txt", "", 0},
	 "chars",
	 &text3,
	 -ENOENT,
	 "want train.txt and test.txt, or one .txt file, found 0"},
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

static void test_bad(void)
{
	struct gf_dataset d;
	struct gf_error err;
	size_t i;
	int rc;

	for (i = 0; i < GF_ARRAY_LENGTH(bad); i++) {
		put_but(bad[i].files, &bad[i].instead);
		rc = open_folder(bad[i].format, bad[i].want, &d, &err);
		EXPECT(rc == bad[i].rc, "%s: got %d", bad[i].label, rc);
		EXPECT(strstr(err.text, bad[i].text), "%s: got \"%s\"",
		       bad[i].label, err.text);
		EXPECT(!strchr(err.text, '\n'), "%s", bad[i].label);
		if (!rc)
			gf_dataset_close(&d);
		clear(bad[i].files);
	}
}

/* Empty files, which the table above cannot hold, and a damaged stream. */
static void test_empty(void)
{
	static const struct content empty[] = {
		{"train.bin", "", 0},
		{"test.bin", "", 0},
		{"book.txt", "", 0},
		{0},
	};
	struct gf_dataset d;
	struct gf_error err;
	char *path = path_of("data_batch_2.bin.gz");
	struct stat st;

	put_all(empty);
	EXPECT(open_folder(NULL, &any, &d, &err) == -EINVAL &&
		       strstr(err.text, "whole records of 3074 bytes, got 0"),
	       "%s", err.text);
	EXPECT(open_folder("chars", &text3, &d, &err) == -EINVAL &&
		       strstr(err.text, "more than 3"),
	       "%s", err.text);
	EXPECT(open_folder("words", &text3, &d, &err) == -EINVAL &&
		       strstr(err.text, "more than 3"),
	       "%s", err.text);
	clear(empty);
	put_all(cifar10);
	stat(path, &st);
	EXPECT(truncate(path, st.st_size - 9) == 0, "truncate");
	EXPECT(open_folder(NULL, &any, &d, &err) == -EINVAL &&
		       strstr(err.text, "the gzip stream is truncated"),
	       "%s", err.text);
	clear(cifar10);
	free(path);
}

int main(void)
{
	if (!mkdtemp(folder)) {
		perror(folder);
		return 1;
	}
	test_cifar();
	test_raw();
	test_words();
	test_chars();
	test_bad();
	test_empty();
	rmdir(folder);
	return TEST_END();
}
