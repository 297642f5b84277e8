/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "cli/plot.h"
#include "test.h"

static void endings(void)
{
	static const struct {
		const char *path;
		int rc;
	} cases[] = {
		{"a.svg", 0},  {"a/b.c.pdf", 0},    {"a.png", 0},         {"a.csv", 0},
		{".csv", 0},   {"svg", -EINVAL},    {"a.jpg", -EINVAL},   {"a.svg.", -EINVAL},
		{"", -EINVAL}, {"a.svgz", -EINVAL}, {"a.svg/b", -EINVAL}, {"a.SVG", -EINVAL},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_error err = {""};
		const char *stored = NULL;
		int rc = gf_plot_store(cases[i].path, &stored, &err);

		EXPECT(rc == cases[i].rc, "%s: %d", cases[i].path, rc);
		EXPECT(stored == (rc ? NULL : cases[i].path), "%s", cases[i].path);
	}
}

static void labels(void)
{
	static const struct {
		const char *text, *cell;
	} cases[] = {
		{"", ""},
		{"layer1.0.conv/weight", "layer1.0.conv/weight"},
		{"a, b,c", "a; b;c"},
		{"\"a\" \\n `b`", "?a? ?n ?b?"},
		{"a\tb\nc\x01\x7f", "a?b?c??"},
		{"\xc3\xa9\xe2\x82\xac", "\xc3\xa9\xe2\x82\xac"},
		/* cut, overlong, a surrogate, no character, beyond Unicode */
		{"\xc3", "?"},
		{"\xc0\xaf", "??"},
		{"\xed\xa0\x80", "???"},
		{"\xef\xbf\xbe", "???"},
		{"\xf4\x90\x80\x80", "????"},
		{"it's <b>&{x}^2_@%d#", "it's <b>&{x}^2_@%d#"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_text csv = {0};

		gf_plot_label(&csv, cases[i].text);
		EXPECT_TEXT(csv.data ? csv.data : "", cases[i].cell);
		gf_text_release(&csv);
	}
}

static void variables(void)
{
	struct gf_plot p = {.script = "curves"};
	char many[2000];

	gf_plot_text(&p, "title", "'%s' of %d", "it's", 4);
	gf_plot_text(&p, "x", "%s", "");
	gf_plot_number(&p, "xlog", 2);
	EXPECT_TEXT(p.vars.data, "title='''it''s'' of 4';x='';xlog=2;");
	gf_plot_cell(&p.csv, 0.1);
	gf_plot_cell(&p.csv, NAN);
	gf_plot_cell(&p.csv, 3e9);
	EXPECT_TEXT(p.csv.data, ",0.1,,3000000000");
	gf_text_release(&p.csv);
	gf_text_release(&p.vars);
	/* an argument has a longest length */
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	gf_plot_text(&p, "title", "%s", many);
	EXPECT(p.vars.length < 500, "%zu", p.vars.length);
	gf_text_release(&p.csv);
	gf_text_release(&p.vars);
}

static void numbers(void)
{
	char path[] = "/tmp/test_plot.XXXXXX", *file, *text;
	struct gf_plot p = {.script = "curves"};
	struct gf_error err = {""};
	size_t size;
	int rc;

	EXPECT(mkdtemp(path) != NULL, "%s", path);
	EXPECT(asprintf(&file, "%s/a.csv", path) > 0, "%s", path);
	gf_text_addf(&p.csv, "x,y\n1,2\n");
	rc = gf_plot_finish(&p, file, &err);
	EXPECT(rc == 0, "%s", err.text);
	rc = gf_file_read(file, &text, &size, &err);
	EXPECT(rc == 0, "%s", err.text);
	EXPECT_TEXT(text, "x,y\n1,2\n");
	free(text);
	unlink(file);
	rmdir(path);
	/* the folder is gone */
	rc = gf_plot_finish(&p, file, &err);
	EXPECT(rc == -ENOENT, "%d", rc);
	p.script = "no-such-script";
	rc = gf_plot_finish(&p, "a.svg", &err);
	EXPECT(rc == -ENOENT, "%d", rc);
	EXPECT_TEXT(err.text, "want no-such-script.gp in share/plots, found none");
	free(file);
}

int main(void)
{
	endings();
	labels();
	variables();
	numbers();
	return TEST_END();
}
