/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/array.h"
#include "base/heap.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "folder.h"

/* 4 training and 2 test images of 2 x 3; the largest training byte is 16. */
#define HEAD3(n, h, w) "\0\0\x08\x03\0\0\0" n "\0\0\0" h "\0\0\0" w
#define HEAD1(n)       "\0\0\x08\x01\0\0\0" n
#define IMAGE          "\0\1\2\4\x08\x10"
#define BYTES(text)    (text), sizeof(text) - 1

struct content {
	const char *name; /* NULL: leave out */
	const char *bytes;
	size_t size;
};

enum { TRAIN_X, TRAIN_Y, TEST_X, TEST_Y, FILES };

static const struct content good[FILES] = {
	{"train-images-idx3-ubyte", BYTES(HEAD3("\4", "\2", "\3") IMAGE IMAGE IMAGE IMAGE)},
	{"train-labels-idx1-ubyte", BYTES(HEAD1("\4") "\0\1\2\1")},
	{"t10k-images-idx3-ubyte", BYTES(HEAD3("\2", "\2", "\3") IMAGE "\x20\0\0\0\0\0")},
	{"t10k-labels-idx1-ubyte", BYTES(HEAD1("\2") "\2\0")},
};

static char *path_of(const char *name)
{
	return gf_xasprintf("%s/%s", folder, name);
}

static void put(const struct content *c, int gzipped)
{
	char *name = gf_xasprintf("%s%s", c->name, gzipped ? ".gz" : "");
	char *path = path_of(name);

	if (gzipped) {
		gzFile f = gzopen(path, "wb");

		gzwrite(f, c->bytes, (unsigned)c->size);
		gzclose(f);
	} else {
		FILE *f = fopen(path, "wb");

		fwrite(c->bytes, 1, c->size, f);
		fclose(f);
	}
	free(path);
	free(name);
}

static void clear(void)
{
	static const char *const names[] = {
		"train-images-idx3-ubyte", "train-images-idx4-ubyte", "train-labels-idx1-ubyte",
		"t10k-images-idx3-ubyte",  "train-labels-idx1-short", "train-labels-idx1-int",
		"t10k-labels-idx1-ubyte",  "test-images-idx3-ubyte",  "test-labels-idx1-ubyte",
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(names); i++) {
		char *path = path_of(names[i]);
		char *gz = gf_xasprintf("%s.gz", path);

		unlink(path);
		unlink(gz);
		free(gz);
		free(path);
	}
}

static const struct gf_dataset_want any;

static void test_read(void)
{
	static const float first[] = {0, 1 / 16.f, 2 / 16.f, 4 / 16.f, .5f, 1};
	static const size_t indices[] = {2, 0};
	struct gf_dataset d;
	struct gf_error err = {""};
	float values[12];
	int32_t labels[2];
	int variant, rc;
	size_t i;

	/* plain, gzipped, and under the names test-* */
	for (variant = 0; variant < 3; variant++) {
		clear();
		for (i = 0; i < FILES; i++) {
			struct content c = good[i];

			if (variant == 2 && i == TEST_X)
				c.name = "test-images-idx3-ubyte";
			if (variant == 2 && i == TEST_Y)
				c.name = "test-labels-idx1-ubyte";
			put(&c, variant == 1);
		}
		rc = gf_dataset_open(folder, &any, &d, &err);
		EXPECT(rc == 0, "variant %d: %s", variant, err.text);
		if (rc)
			continue;
		EXPECT(d.count[GF_PART_TRAIN] == 4 && d.count[GF_PART_TEST] == 2 &&
			       d.classes == 3 && d.shape.rank == 3 && d.shape.dims[0] == 1 &&
			       d.shape.dims[1] == 2 && d.shape.dims[2] == 3,
		       "variant %d", variant);
		gf_dataset_batch(&d, GF_PART_TRAIN, indices, 2, values, labels, NULL);
		EXPECT(labels[0] == 2 && labels[1] == 0, "variant %d", variant);
		for (i = 0; i < 12; i++)
			EXPECT(values[i] == first[i % 6], "%zu: %g", i, (double)values[i]);
		/* the test part is scaled by the training part's maximum */
		gf_dataset_batch(&d, GF_PART_TEST, indices + 1, 1, values, labels, NULL);
		EXPECT(labels[0] == 2 && values[5] == 1, "variant %d", variant);
		gf_dataset_close(&d);
	}
}

/* Labels beyond 255, of 16 and 32 bits; under a name for bytes, too. */
static void test_wide_labels(void)
{
	static const struct {
		struct content labels;
		int32_t last;
	} cases[] = {
		{{"train-labels-idx1-short", BYTES("\0\0\x0b\1\0\0\0\4\0\0\0\1\0\2\3\xe7")}, 999},
		{{"train-labels-idx1-int", BYTES("\0\0\x0c\1\0\0\0\4\0\0\0\0\0\0\0\1\0\0\0\2\0\1"
						 "\0\7")},
		 65543},
		{{"train-labels-idx1-ubyte", BYTES("\0\0\x0c\1\0\0\0\4\0\0\0\0\0\0\0\1\0\0\0\2\0\0"
						   "\3\xe7")},
		 999},
	};
	static const size_t last = 3;
	struct gf_error err = {""};
	struct gf_dataset d;
	float values[6];
	int32_t label;
	size_t i, k;
	int rc;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		clear();
		for (k = 0; k < FILES; k++)
			put(k == TRAIN_Y ? &cases[i].labels : &good[k], 0);
		rc = gf_dataset_open(folder, &any, &d, &err);
		EXPECT(rc == 0, "%s: %s", cases[i].labels.name, err.text);
		if (rc)
			continue;
		gf_dataset_batch(&d, GF_PART_TRAIN, &last, 1, values, &label, NULL);
		EXPECT(label == cases[i].last && d.classes == (size_t)label + 1, "%s: %d of %zu",
		       cases[i].labels.name, label, d.classes);
		gf_dataset_close(&d);
	}
}

static const struct {
	const char *label;
	int file;
	struct content instead; /* name NULL: the file is missing */
	struct {
		int gzipped;
		size_t want_classes;
		int rc;
	};
	const char *text; /* part of the message */
} bad[] = {
	{"missing",
	 TEST_Y,
	 {NULL, NULL, 0},
	 {0, 0, -ENOENT},
	 "want a file t10k-labels-idx1-ubyte, -short, -int or .gz (or test-...)"},
	{"empty",
	 TRAIN_X,
	 {"train-images-idx3-ubyte", BYTES("")},
	 {0, 0, -EINVAL},
	 "want an IDX file (0 0 TYPE NDIM), got less than 4"},
	{"other magic",
	 TRAIN_X,
	 {"train-images-idx3-ubyte", BYTES("\x89PNG----")},
	 {0, 0, -EINVAL},
	 "got another magic number"},
	{"floats",
	 TRAIN_X,
	 {"train-images-idx3-ubyte", BYTES("\0\0\x0d\3\0\0\0\1")},
	 {0, 0, -EINVAL},
	 "got type 0x0d in 3"},
	{"wide images",
	 TRAIN_X,
	 {"train-images-idx3-ubyte", BYTES("\0\0\x0b\3\0\0\0\1")},
	 {0, 0, -EINVAL},
	 "want unsigned bytes (type 0x08) in 1 to 4 dimensions, got type 0x0b"},
	{"labels that are fractions",
	 TRAIN_Y,
	 {"train-labels-idx1-ubyte", BYTES("\0\0\x0d\1\0\0\0\4")},
	 {0, 0, -EINVAL},
	 "(type 0x08; 0x0b, 0x0c: 16, 32 bits) in 1 to 4 dimensions, got type 0x0d in 1"},
	{"a negative label of 16 bits",
	 TRAIN_Y,
	 {"train-labels-idx1-short", BYTES("\0\0\x0b\1\0\0\0\4\0\0\0\1\xff\xff\0\1")},
	 {0, 3, -EINVAL},
	 "want labels of 0 to 2, label 2 is -1"},
	{"labels of 32 bits, cut",
	 TRAIN_Y,
	 {"train-labels-idx1-int", BYTES("\0\0\x0c\1\0\0\0\4\0\0\0\0\0\0\0\1\0\0\0\2\0\0\0")},
	 {0, 0, -EINVAL},
	 "want 16 bytes of data as the header says, got 15"},
	{"too many dimensions",
	 TRAIN_X,
	 {"train-images-idx3-ubyte", BYTES("\0\0\x08\5\0\0\0\1")},
	 {0, 0, -EINVAL},
	 "got type 0x08 in 5"},
	{"header cut",
	 TRAIN_X,
	 {"train-images-idx3-ubyte", BYTES("\0\0\x08\3\0\0\0\4\0\0")},
	 {0, 0, -EINVAL},
	 "want 3 dimensions in the header"},
	{"no samples",
	 TRAIN_X,
	 {"train-images-idx3-ubyte", BYTES(HEAD3("\0", "\2", "\3"))},
	 {0, 0, -EINVAL},
	 "dimension 0 is 0"},
	{"lying header, huge",
	 TRAIN_X,
	 {"train-images-idx3-ubyte",
	  BYTES("\0\0\x08\3\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\2" IMAGE)},
	 {0, 0, -EINVAL},
	 "the header says more"},
	{"lying header, large",
	 TRAIN_X,
	 {"train-images-idx3-ubyte", BYTES("\0\0\x08\3\0\xff\xff\xff\0\0\0\x08\0\0\0\x08" IMAGE)},
	 {0, 0, -EINVAL},
	 "want 1073741760 bytes of data as the header says, got 6"},
	{"truncated",
	 TRAIN_X,
	 {"train-images-idx3-ubyte", BYTES(HEAD3("\4", "\2", "\3") IMAGE IMAGE "\1")},
	 {0, 0, -EINVAL},
	 "want 24 bytes of data as the header says, got 13"},
	{"too long",
	 TRAIN_Y,
	 {"train-labels-idx1-ubyte", BYTES(HEAD1("\4") "\0\1\2\1\1")},
	 {0, 0, -EINVAL},
	 "want 4 bytes of data as the header says, got more"},
	{"labels of rank 3",
	 TRAIN_Y,
	 {"train-labels-idx1-ubyte", BYTES(HEAD3("\4", "\1", "\1") "\0\1\2\1")},
	 {0, 0, -EINVAL},
	 "want 1 dimensions, got 3"},
	{"fewer labels",
	 TRAIN_Y,
	 {"train-labels-idx1-ubyte", BYTES(HEAD1("\3") "\0\1\2")},
	 {0, 0, -EINVAL},
	 "want 4 labels, one for each image of"},
	{"label out of range",
	 TRAIN_Y,
	 {"train-labels-idx1-ubyte", BYTES(HEAD1("\4") "\0\1\x09\1")},
	 {0, 3, -EINVAL},
	 "want labels of 0 to 2, label 2 is 9"},
	{"other size",
	 TEST_X,
	 {"t10k-images-idx3-ubyte", BYTES(HEAD3("\2", "\3", "\2") IMAGE IMAGE)},
	 {0, 0, -EINVAL},
	 "want images of the same size as those for training"},
};

static void test_bad(void)
{
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(bad); i++) {
		struct gf_dataset_want want = {.classes = bad[i].want_classes};
		struct gf_dataset d;
		struct gf_error err = {""};
		int gz, rc;

		for (gz = 0; gz < 2; gz++) {
			clear();
			for (k = 0; k < FILES; k++)
				if ((int)k != bad[i].file)
					put(&good[k], 0);
			if (bad[i].instead.name)
				put(&bad[i].instead, gz);
			rc = gf_dataset_open(folder, &want, &d, &err);
			EXPECT(rc == bad[i].rc, "%s: got %d", bad[i].label, rc);
			EXPECT(strstr(err.text, bad[i].text), "%s: got \"%s\"", bad[i].label,
			       err.text);
			EXPECT(!strchr(err.text, '\n'), "%s", bad[i].label);
		}
	}
}

/* A .gz file cut short, and one with a flipped bit. */
static void test_gzip_damage(void)
{
	static const char *const text[] = {"truncated", "damaged"};
	char *path = path_of("train-images-idx3-ubyte.gz");
	int damage;
	size_t i;

	for (damage = 0; damage < 2; damage++) {
		struct gf_dataset d;
		struct gf_error err = {""};
		struct stat st;

		clear();
		for (i = 0; i < FILES; i++)
			put(&good[i], 1);
		stat(path, &st);
		if (damage == 0) {
			EXPECT(truncate(path, st.st_size - 9) == 0, "truncate");
		} else {
			FILE *f = fopen(path, "r+b");

			/* in the checksum */
			fseek(f, -8, SEEK_END);
			fputc(0x5a, f);
			fclose(f);
		}
		EXPECT(gf_dataset_open(folder, &any, &d, &err) == -EINVAL, "%s", text[damage]);
		EXPECT(strstr(err.text, text[damage]), "%s: got \"%s\"", text[damage], err.text);
	}
	free(path);
}

static void test_shapes(void)
{
	static const struct {
		struct gf_shape want;
		int rc;
	} cases[] = {
		{{3, {1, 2, 3}}, 0},       {{1, {6}}, 0},          {{1, {7}}, -EINVAL},
		{{3, {1, 3, 2}}, -EINVAL}, {{2, {2, 3}}, -EINVAL}, {{0, {0}}, 0},
		{{3, {3, 2, 3}}, -EINVAL},
	};
	size_t i;

	clear();
	for (i = 0; i < FILES; i++)
		put(&good[i], 0);
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_dataset_want want = {.input = cases[i].want};
		struct gf_dataset d = {0};
		struct gf_error err = {""};
		int rc = gf_dataset_open(folder, &want, &d, &err);

		EXPECT(rc == cases[i].rc, "case %zu: %d %s", i, rc, err.text);
		if (!rc)
			gf_dataset_close(&d);
		else
			EXPECT(strstr(err.text, "got 1x2x3"), "%s", err.text);
	}
}

static void test_synthetic(void)
{
	struct gf_dataset_want want = {.input = {3, {1, 2, 2}}, .classes = 5, .seed = 7};
	struct gf_dataset a, b;
	struct gf_error err = {""};
	float x[4], y[4];
	int32_t p, q;
	size_t i, seen = 0;

	EXPECT(gf_dataset_open("synthetic:100", &want, &a, &err) == 0, "%s", err.text);
	EXPECT(gf_dataset_open("synthetic:100", &want, &b, &err) == 0, "%s", err.text);
	EXPECT(a.count[GF_PART_TRAIN] == 100 && a.count[GF_PART_TEST] == 25, "counts");
	for (i = 0; i < 100; i++) {
		gf_dataset_batch(&a, GF_PART_TRAIN, &i, 1, x, &p, NULL);
		gf_dataset_batch(&b, GF_PART_TRAIN, &i, 1, y, &q, NULL);
		EXPECT(p == q && p < 5 && memcmp(x, y, sizeof(x)) == 0, "sample %zu", i);
		seen |= (size_t)1 << p;
	}
	EXPECT(seen == 0x1f, "classes seen: %zx", seen);
	gf_dataset_close(&a);
	gf_dataset_close(&b);
	EXPECT(gf_dataset_open("synthetic:0", &want, &a, &err) == -EINVAL, "count 0");
	EXPECT(gf_dataset_open("synthetic:1099511627776", &want, &a, &err) == -EINVAL &&
		       strstr(err.text, "1 to 268435456"),
	       "count whose order fits no memory: %s", err.text);
	EXPECT(gf_dataset_open("synthetic:x", &want, &a, &err) == -EINVAL, "count x");
	EXPECT(gf_dataset_open("synthetic", &any, &a, &err) == -EINVAL &&
		       strstr(err.text, "want a model that says the shape"),
	       "%s", err.text);
	EXPECT(gf_dataset_open("/nonexistent", &want, &a, &err) == -ENOENT, "missing folder");
}

/* P ranks with batch B take in each step what one rank takes with P*B, be it shuffled or in
 * rows. */
static void test_order(bool row)
{
	static const struct {
		size_t count;
		int ranks;
		size_t batch, steps;
	} cases[] = {
		{100, 1, 10, 10}, {100, 4, 5, 5}, {103, 4, 5, 5},
		{7, 2, 4, 0},     {12, 3, 4, 1},  {1437, 4, 16, 22},
	};
	size_t i, epoch, step, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		size_t b = cases[i].batch, p = (size_t)cases[i].ranks;
		unsigned char *seen = calloc(cases[i].count, 1);
		struct gf_order many, one;
		size_t twice = 0;
		int r;

		gf_order_init(&many, cases[i].count, 3, row);
		gf_order_init(&one, cases[i].count, 3, row);
		EXPECT(gf_order_steps(&many, cases[i].ranks, b) == cases[i].steps, "case %zu", i);
		/* backwards: no epoch depends on an earlier one */
		for (epoch = 3; epoch-- > 0 && cases[i].steps;) {
			memset(seen, 0, cases[i].count);
			for (step = 0; step < cases[i].steps; step++) {
				const size_t *whole =
					gf_order_slice(&one, epoch, step, 1, 0, p * b);

				for (r = 0; r < cases[i].ranks; r++) {
					const size_t *part = gf_order_slice(&many, epoch, step,
									    cases[i].ranks, r, b);

					EXPECT(memcmp(part, whole + (size_t)r * b,
						      b * sizeof(*part)) == 0,
					       "case %zu rank %d", i, r);
				}
				for (k = 0; k < p * b; k++)
					twice += seen[whole[k]]++;
			}
			EXPECT(twice == 0, "case %zu epoch %zu", i, epoch);
		}
		gf_order_release(&many);
		gf_order_release(&one);
		free(seen);
	}
}

/* In rows, each place goes on with the sample after its last. */
static void test_rows(void)
{
	size_t last[6] = {0}, step, i;
	struct gf_order o;

	gf_order_init(&o, 45, 3, true);
	EXPECT(gf_order_steps(&o, 2, 3) == 7, "steps");
	for (step = 0; step < 7; step++)
		for (i = 0; i < 6; i++) {
			const size_t *slice = gf_order_slice(&o, 2, step, 2, i < 3 ? 0 : 1, 3);
			size_t at = slice[i % 3];

			EXPECT(step ? at == last[i] + 1 : at == i * 7, "step %zu, place %zu: %zu",
			       step, i, at);
			last[i] = at;
		}
	gf_order_release(&o);
}

static void test_share(void)
{
	int ranks, r;
	size_t n;

	for (ranks = 1; ranks < 7; ranks++)
		for (n = 0; n < 20; n++) {
			size_t next = 0, first, count;

			for (r = 0; r < ranks; r++) {
				gf_order_share(n, ranks, r, &first, &count);
				EXPECT(first == next && count <= n / (size_t)ranks + 1,
				       "%zu over %d", n, ranks);
				next = first + count;
			}
			EXPECT(next == n, "%zu over %d", n, ranks);
		}
}

int main(void)
{
	make_folder("test_data");
	test_read();
	test_wide_labels();
	test_bad();
	test_gzip_damage();
	test_shapes();
	test_synthetic();
	test_order(false);
	test_order(true);
	test_rows();
	test_share();
	clear();
	return TEST_END();
}
