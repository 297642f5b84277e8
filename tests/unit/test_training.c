/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/array.h"
#include "documents/training.h"
#include "json/record.h"
#include "doc_test.h"
#include "lists/gf_document_formats.h"

static char *trip(const struct gf_json *root, const char *file, struct gf_error *err)
{
	struct gf_training t;
	char *text;

	if (gf_document_read(root, file, &gf_document_training, &t, err))
		return NULL;
	text = gf_training_write(&t);
	gf_training_release(&t);
	return text;
}

static const struct doc_case cases[] = {
	{"\"epochs\": 90,", "", NULL},
	{"\"seed\": 0", "\"seed\": 1000000000000000", NULL},
	{"\"seed\": 0", "\"seed\": 1000000000000001",
	 "t: /seed: want an integer <= 1000000000000000, got "
	 "1000000000000001"},
	{"\"accumulate\": 4", "\"accumulate\": 0", "t: /accumulate: want an integer >= 1, got 0"},
	{"65536.0", "3", "t: /loss_scale/initial: want a power of two, got 3"},
	{"65536.0", "0.5", NULL},
	{"[30.0, 60.0, 80.0]", "[]", NULL},
	{"[30.0, 60.0, 80.0]", "[5, 5]", NULL},
	{"[30.0, 60.0, 80.0]", "[5, 4.5]",
	 "t: /rate/drop_epochs/1: want at least 5, the one before, got 4.5"},
};

/* --- absent fields -------------------------------------------------------- */

static struct gf_training parse(const char *members)
{
	char *text = gf_xasprintf("{\"format\": \"gf-training\", "
				  "\"version\": 1%s%s}",
				  members[0] ? ", " : "", members);
	struct gf_json *root = NULL;
	struct gf_error err = {""};
	struct gf_training t = {0};

	EXPECT(!gf_json_parse(text, strlen(text), "t", &root, &err) &&
		       !gf_document_read(root, "t", &gf_document_training, &t, &err),
	       "%s: %s", text, err.text);
	gf_json_free(root);
	free(text);
	return t;
}

/* `over` laid over `under` is `want`. */
static const struct {
	const char *over, *under, *want;
} fills[] = {
	{"", "", ""},
	{"", "\"epochs\": 3", "\"epochs\": 3"},
	{"\"epochs\": 4", "\"epochs\": 3", "\"epochs\": 4"},
	/* a value that is nothing is still a value */
	{"\"seed\": 0, \"optimizer\": {\"momentum\": 0}",
	 "\"seed\": 7, \"optimizer\": {\"momentum\": 0.9, \"name\": \"lars\"}",
	 "\"seed\": 0, \"optimizer\": {\"name\": \"lars\", \"momentum\": 0}"},
	{"\"rate\": {\"schedule\": \"constant\"}",
	 "\"rate\": {\"schedule\": \"poly\", \"drop_epochs\": [1, 2]}",
	 "\"rate\": {\"schedule\": \"constant\", \"drop_epochs\": [1, 2]}"},
	{"\"rate\": {\"drop_epochs\": [3]}", "\"rate\": {\"drop_epochs\": [1, 2]}",
	 "\"rate\": {\"drop_epochs\": [3]}"},
	{"\"x-a\": 1, \"loss_scale\": {\"mode\": \"auto\"}",
	 "\"x-b\": 2, \"x-a\": 3, \"loss_scale\": {\"initial\": 4, \"x-c\": "
	 "5}",
	 "\"loss_scale\": {\"mode\": \"auto\", \"initial\": 4, \"x-c\": 5}, \"x-a\": 1, \"x-b\": "
	 "2"},
};

static void test_fill(void)
{
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(fills); i++) {
		struct gf_training over = parse(fills[i].over);
		struct gf_training under = parse(fills[i].under);
		struct gf_training want = parse(fills[i].want);
		char *before = gf_training_write(&under), *after, *text, *good;

		gf_training_fill(&over, &under);
		after = gf_training_write(&under);
		text = gf_training_write(&over);
		good = gf_training_write(&want);
		EXPECT_TEXT(text, good);
		EXPECT_TEXT(after, before);
		free(before);
		free(after);
		free(text);
		free(good);
		gf_training_release(&over);
		gf_training_release(&under);
		gf_training_release(&want);
	}
}

static void test_init(void)
{
	struct gf_training t, empty = parse("");
	char *a, *b;

	gf_training_init(&t);
	EXPECT(isnan(t.momentum) && t.seed == GF_TRAINING_NO_SEED &&
		       t.schedule == GF_TRAINING_NO_CHOICE && !t.epochs,
	       "absent");
	a = gf_training_write(&t);
	b = gf_training_write(&empty);
	EXPECT_TEXT(a, b);
	free(a);
	free(b);
	gf_training_release(&t);
	gf_training_release(&empty);
}

int main(void)
{
	char *base = doc_load("tests/data/valid/training-lars.json");

	doc_expect_stable(base, "training-lars.json", trip);
	doc_run_cases(base, "t", trip, cases, GF_ARRAY_LENGTH(cases));
	free(base);
	test_fill();
	test_init();
	return TEST_END();
}
