/* SPDX-License-Identifier: BSD-3-Clause */
#include "data_folder.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#include "base/array.h"

/* --- CIFAR's records ----------------------------------------------------- */

#define PIXELS 3072
#define BATCH(n)                                                                                   \
	{                                                                                          \
		"data_batch_" n ".bin", "\1\xff", 2, PIXELS - 1, 16                                \
	}

static const struct content cifar10[] = {
	BATCH("1"), {"data_batch_2.bin.gz", "\2", 1, PIXELS, 51}, BATCH("3"), BATCH("4"),
	BATCH("5"), {"test_batch.bin", "\11", 1, PIXELS, 102},    {0},
};
static const struct content cifar100[] = {
	{"train.bin", "\23\143", 2, PIXELS, 4},
	{"test.bin", "\0\7", 2, PIXELS, 2},
	{0},
};

/* The value of a byte if 5 x 1024 bytes have this sum, and this sum of squares.
 */
static double normal(int byte, const double sums[2])
{
	double n = 5 * 1024, mean = sums[0] / n;

	return (byte - mean) / sqrt(sums[1] / n - mean * mean);
}

static bool near(float got, double want)
{
	return fabs((double)got - want) <= 1e-5 * fabs(want);
}

static void test_cifar(void)
{
	static const size_t first = 0, second = 1;
	/* of 5 x 1024 values each channel: in the first, four images have 255 ahead of 16s and one
	 * is all 51; in the others, no 255 */
	static const double sums[][2] = {
		{4 * (255 + 1023 * 16) + 1024 * 51, 4 * (255 * 255 + 1023 * 256) + 1024 * 51 * 51},
		{4 * 1024 * 16 + 1024 * 51, 4 * 1024 * 256 + 1024 * 51 * 51},
	};
	struct gf_dataset_want want = {.input = {3, {3, 32, 32}}};
	static float x[PIXELS];
	struct gf_dataset d;
	struct gf_error err;
	int32_t label;

	put_all(cifar10);
	EXPECT(!open_folder(NULL, &want, &d, &err), "%s", err.text);
	EXPECT(strcmp(d.format->name, "cifar10") == 0 && d.count[GF_PART_TRAIN] == 5 &&
		       d.count[GF_PART_TEST] == 1 && d.classes == 10,
	       "%s, %zu", d.format->name, d.count[GF_PART_TRAIN]);
	gf_dataset_batch(&d, GF_PART_TRAIN, &first, 1, x, &label, NULL);
	EXPECT(label == 1 && near(x[0], normal(255, sums[0])) && near(x[1], normal(16, sums[0])) &&
		       near(x[1024], normal(16, sums[1])),
	       "%g %g %g", x[0], x[1], x[1024]);
	gf_dataset_batch(&d, GF_PART_TRAIN, &second, 1, x, &label, NULL);
	EXPECT(label == 2 && near(x[0], normal(51, sums[0])) &&
		       near(x[PIXELS - 1], normal(51, sums[1])),
	       "second");
	gf_dataset_batch(&d, GF_PART_TEST, &first, 1, x, &label, NULL);
	EXPECT(label == 9 && near(x[0], normal(102, sums[0])), "test");
	gf_dataset_close(&d);
	clear(cifar10);

	put_all(cifar100);
	EXPECT(!open_folder(NULL, &want, &d, &err), "%s", err.text);
	EXPECT(strcmp(d.format->name, "cifar100") == 0 && d.classes == 100, "%s %zu",
	       d.format->name, d.classes);
	gf_dataset_batch(&d, GF_PART_TRAIN, &first, 1, x, &label, NULL);
	EXPECT(label == 99 && x[5] == 0, "fine label %d, one value: %g", label, x[5]);
	gf_dataset_close(&d);
	clear(cifar100);
}

/* --- hostile files ------------------------------------------------------- */

static const struct gf_dataset_want any, few = {.classes = 2}, flat = {.input = {1, {7}}};
static const struct gf_dataset_want text100 = {
	.input = {1, {3}}, .positions = 3, .vocabulary = 100, .classes = 100};

static const struct bad_folder bad[] = {
	{"nothing",
	 {(const struct content[]){{0}}, {0}, NULL, &any, -ENOENT},
	 "want a folder with data of a known format (idx, cifar10, "
	 "cifar100, words, chars, jpeg) or synthetic, found none"},
	{"a batch is missing",
	 {cifar10, {"data_batch_4.bin"}, NULL, &any, -ENOENT},
	 "want a file data_batch_4.bin or .gz, found none"},
	{"half a record",
	 {cifar10, {"data_batch_4.bin", "\1", 1, 3071, 9}, NULL, &any, -EINVAL},
	 "data_batch_4.bin: want whole records of 3073 bytes, got 3072 bytes"},
	{"CIFAR-100 as CIFAR-10",
	 {cifar10, {"data_batch_4.bin", "\1", 1, 3073, 9}, NULL, &any, -EINVAL},
	 "want whole records of 3073 bytes, got 3074"},
	{"an empty batch",
	 {cifar10, {"data_batch_4.bin", "", 0, 0, 9}, NULL, &any, -ENOENT},
	 "want a file data_batch_4.bin"},
	{"labels out of range",
	 {cifar10, {0}, NULL, &few, -EINVAL},
	 "data_batch_2.bin.gz: want labels of 0 to 1, label 1 is 2"},
	{"another shape",
	 {cifar100, {0}, NULL, &flat, -EINVAL},
	 "want samples of 7 for this model, got 3x32x32"},
	{"no images for this model",
	 {cifar100, {0}, NULL, &text100, -EINVAL},
	 "want text for this model, got images"},
	{"another format",
	 {cifar100, {0}, "cifar10", &any, -ENOENT},
	 "want a file data_batch_1.bin or .gz, found none"},
};

/* Empty files, which the table above cannot hold, and a damaged stream. */
static void test_empty(void)
{
	static const struct content empty[] = {
		{"train.bin", "", 0},
		{"test.bin", "", 0},
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
	make_folder("test_data_formats");
	test_cifar();
	test_bad_folders(bad, GF_ARRAY_LENGTH(bad));
	test_empty();
	return TEST_END();
}
