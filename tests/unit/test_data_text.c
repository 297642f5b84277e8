/* SPDX-License-Identifier: BSD-3-Clause */
#include "data_folder.h"

#include <errno.h>

#include "base/array.h"

/* Text by words and by characters. */

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

static const struct gf_dataset_want flat = {.input = {1, {7}}};
static const struct gf_dataset_want text3 = {
	.input = {1, {3}}, .positions = 3, .vocabulary = 9, .classes = 9};
static const struct gf_dataset_want text_wrong = {
	.input = {1, {3}}, .positions = 2, .vocabulary = 9, .classes = 9};
static const struct gf_dataset_want text_few = {
	.input = {1, {3}}, .positions = 3, .vocabulary = 2, .classes = 2};

static const struct bad_folder bad[] = {
	{"no test part",
	 {words, {"ptb.test.txt.gz"}, NULL, &text3, -ENOENT},
	 "want a file ptb.test.txt or .gz, found none"},
	{"too short",
	 {words, {"ptb.test.txt.gz", "a b", 3}, NULL, &text3, -EINVAL},
	 "want more than 3 words or characters in the test part, got 2"},
	{"text for images",
	 {words, {0}, NULL, &flat, -EINVAL},
	 "want images for this model, got text"},
	{"labels of another length",
	 {words, {0}, NULL, &text_wrong, -EINVAL},
	 "want 2 labels per sample for this model, got 3"},
	{"several texts",
	 {words, {"ptb.train.txt"}, NULL, &text3, -ENOENT},
	 "want train.txt and test.txt, or one .txt file, found 2"},
	{"too many characters",
	 {one_text, {0}, NULL, &text_few, -EINVAL},
	 "want at most 2 different characters for this model, found 5"},
	{"an empty text",
	 {one_text, {"book.txt", "", 0}, "chars", &text3, -ENOENT},
	 "want train.txt and test.txt, or one .txt file, found 0"},
};

/* Empty files, which the table above cannot hold. */
static void test_empty(void)
{
	static const struct content empty[] = {{"book.txt", "", 0}, {0}};
	struct gf_dataset d;
	struct gf_error err;

	put_all(empty);
	EXPECT(open_folder("chars", &text3, &d, &err) == -EINVAL &&
		       strstr(err.text, "more than 3"),
	       "%s", err.text);
	EXPECT(open_folder("words", &text3, &d, &err) == -EINVAL &&
		       strstr(err.text, "more than 3"),
	       "%s", err.text);
	clear(empty);
}

int main(void)
{
	make_folder("test_data_text");
	test_words();
	test_chars();
	test_bad_folders(bad, GF_ARRAY_LENGTH(bad));
	test_empty();
	return TEST_END();
}
