/* SPDX-License-Identifier: BSD-3-Clause */
#include "data_folder.h"

#include <errno.h>

#include "base/array.h"
#include "data/data_parts.h"

/* Text by words and by characters. */

#define WORDS(vocabulary_, length)                                                                 \
	(struct gf_dataset_want)                                                                   \
	{                                                                                          \
		.input = {1, {length}}, .positions = length, .vocabulary = vocabulary_,            \
		.classes = vocabulary_                                                             \
	}

static const struct content words[] = {
	{"ptb.train.txt", " b a b c\n b a\n a b d\n", 0},
	{"ptb.test.txt.gz", "b e\nd b\n", 0},
	{"ptb.valid.txt", "not read\n", 0},
	{0},
};

/* b 4, a 3, <eos> 3; c, d and <unk> follow: c and d once each, but <unk> must be in, whatever it
 * counts. */
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
			       d.vocabulary == cases[i].vocabulary && d.consecutive &&
			       d.positions == 3 && d.count[GF_PART_TRAIN] == 3 &&
			       d.count[GF_PART_TEST] == 1,
		       "case %zu: %s %zu words, %zu + %zu samples", i, d.format->name, d.vocabulary,
		       d.count[GF_PART_TRAIN], d.count[GF_PART_TEST]);
		gf_dataset_batch(&d, GF_PART_TRAIN, &zero, 1, x, labels, NULL);
		EXPECT(memcmp(x, cases[i].first, sizeof(x)) == 0 &&
			       memcmp(labels, cases[i].first_label, sizeof(labels)) == 0,
		       "case %zu: %g %g %g, then %d", i, x[0], x[1], x[2], labels[2]);
		gf_dataset_batch(&d, GF_PART_TRAIN, &two, 1, x, labels, NULL);
		EXPECT(memcmp(x, cases[i].last, sizeof(x)) == 0 &&
			       memcmp(labels, cases[i].last_label, sizeof(labels)) == 0,
		       "case %zu: %g %g %g, then %d", i, x[0], x[1], x[2], labels[2]);
		gf_dataset_batch(&d, GF_PART_TEST, &zero, 1, x, labels, NULL);
		EXPECT(memcmp(labels, cases[i].test, sizeof(labels)) == 0, "case %zu: %d %d %d", i,
		       labels[0], labels[1], labels[2]);
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
		       d.count[GF_PART_TRAIN] == 13 && d.count[GF_PART_TEST] == 1,
	       "%zu: %zu + %zu", d.vocabulary, d.count[GF_PART_TRAIN], d.count[GF_PART_TEST]);
	gf_dataset_batch(&d, GF_PART_TRAIN, &zero, 1, x, labels, NULL);
	EXPECT(x[0] == 1 && x[1] == 2 && labels[0] == 2 && labels[1] == 3, "a b, b c");
	/* the last tenth begins with a line */
	gf_dataset_batch(&d, GF_PART_TEST, &zero, 1, x, labels, NULL);
	EXPECT(x[0] == 4 && x[1] == 1 && labels[1] == 0, "%g %g", x[0], x[1]);
	gf_dataset_close(&d);
	/* one answer per sample */
	want.positions = 1;
	EXPECT(!open_folder("chars", &want, &d, &err), "%s", err.text);
	gf_dataset_batch(&d, GF_PART_TRAIN, &zero, 1, x, labels, NULL);
	EXPECT(d.positions == 1 && labels[0] == 3, "label %d", labels[0]);
	gf_dataset_close(&d);
	clear(one_text);
}

/* --- masked numbers ------------------------------------------------------ */

enum { LENGTH = 40, ASKED = 6, SAMPLES = 2000 };

/* What one sample's masking came to: of the labels, how many stand where the mask is, another
 * number, the number itself. */
struct masking {
	size_t labels, hidden, other, kept;
	size_t at[LENGTH];
};

static void add_masking(const struct gf_dataset *d, const float *plain, const float *x,
			const int32_t *labels, struct masking *sum)
{
	size_t i;

	for (i = 0; i < LENGTH; i++) {
		if (labels[i] == GF_NO_LABEL) {
			EXPECT(x[i] == plain[i], "[%zu]: not masked", i);
			continue;
		}
		EXPECT((float)labels[i] == plain[i],
		       "[%zu]: want label %g, "
		       "got %d",
		       i, (double)plain[i], labels[i]);
		sum->labels++;
		sum->at[i]++;
		if (x[i] == (float)d->vocabulary)
			sum->hidden++;
		else if (x[i] == plain[i])
			sum->kept++;
		else
			sum->other++;
	}
}

static void test_masked(void)
{
	struct gf_dataset_want want = WORDS(50, LENGTH);
	float plain[LENGTH], x[LENGTH], again[LENGTH];
	int32_t labels[LENGTH], labels_again[LENGTH];
	struct masking sum = {0};
	struct gf_dataset d;
	struct gf_error err;
	size_t i, differ = 0;

	want.masked = true;
	want.seed = 7;
	EXPECT(!gf_dataset_open("synthetic:2000", &want, &d, &err), "%s", err.text);
	EXPECT(d.vocabulary == 49 && d.positions == LENGTH && gf_dataset_labels(&d) == ASKED,
	       "%zu, %zu labels", d.vocabulary, gf_dataset_labels(&d));
	for (i = 0; i < SAMPLES; i++) {
		size_t before = sum.labels;

		gf_dataset_batch(&d, GF_PART_TRAIN, &i, 1, plain, labels, &err);
		memcpy(x, plain, sizeof(x));
		gf_mask_sample(&d, GF_PART_TRAIN, 3, 1, i, x, labels);
		add_masking(&d, plain, x, labels, &sum);
		EXPECT(sum.labels == before + ASKED, "%zu: %zu labels", i, sum.labels - before);
		/* the same again, another in the next epoch */
		memcpy(again, plain, sizeof(again));
		gf_mask_sample(&d, GF_PART_TRAIN, 3, 1, i, again, labels_again);
		EXPECT(memcmp(x, again, sizeof(x)) == 0 &&
			       memcmp(labels, labels_again, sizeof(labels)) == 0,
		       "%zu: not the same again", i);
		memcpy(again, plain, sizeof(again));
		gf_mask_sample(&d, GF_PART_TRAIN, 3, 2, i, again, labels_again);
		differ += memcmp(labels, labels_again, sizeof(labels)) != 0;
	}
	/* 12,000 labels: four deviations are 175 and 131; of any number one in 49 is the number
	 * itself */
	EXPECT_NEAR((double)sum.hidden, .8 * 12000, 175 / 9600., "hidden");
	EXPECT_NEAR((double)sum.other, .098 * 12000, 131 / 1176., "other");
	EXPECT_NEAR((double)sum.kept, .102 * 12000, 131 / 1224., "kept");
	for (i = 0; i < LENGTH; i++)
		EXPECT_NEAR((double)sum.at[i], 300, 64 / 300., "at %zu", i);
	EXPECT(differ > SAMPLES - 10, "%zu differ", differ);
	/* the test part, in every epoch */
	i = 3;
	gf_dataset_batch(&d, GF_PART_TEST, &i, 1, plain, labels, &err);
	memcpy(x, plain, sizeof(x));
	memcpy(again, plain, sizeof(again));
	gf_mask_sample(&d, GF_PART_TEST, 3, 1, i, x, labels);
	gf_mask_sample(&d, GF_PART_TEST, 3, 2, i, again, labels_again);
	EXPECT(memcmp(x, again, sizeof(x)) == 0, "the test part changes");
	gf_dataset_close(&d);
	want.vocabulary = 1;
	EXPECT(gf_dataset_open("synthetic", &want, &d, &err) == -EINVAL &&
		       strstr(err.text, "want a model with 2 word numbers"),
	       "%s", err.text);
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
	EXPECT(open_folder("chars", &text3, &d, &err) == -EINVAL && strstr(err.text, "more than 3"),
	       "%s", err.text);
	EXPECT(open_folder("words", &text3, &d, &err) == -EINVAL && strstr(err.text, "more than 3"),
	       "%s", err.text);
	clear(empty);
}

int main(void)
{
	make_folder("test_data_text");
	test_words();
	test_chars();
	test_masked();
	test_bad_folders(bad, GF_ARRAY_LENGTH(bad));
	test_empty();
	return TEST_END();
}
