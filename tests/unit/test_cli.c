/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/array.h"
#include "cli/cli.h"
#include "cli/human.h"
#include "cli/table.h"
#include "test.h"

static void test_human(void)
{
	static const struct {
		struct gf_human (*print)(double);
		double value;
		const char *want;
	} cases[] = {
		{gf_human_size, 0, "0 B"},
		{gf_human_size, 1023, "1023 B"},
		{gf_human_size, 1536, "1.50 KiB"},
		{gf_human_size, 4194304, "4 MiB"},
		{gf_human_time, 0, "0 s"},
		{gf_human_time, 0.0123, "12.3 ms"},
		{gf_human_time, 5e-5, "50.0 us"},
		{gf_human_time, 61.23, "61.2 s"},
		{gf_human_time, 1.234e-9, "1.23 ns"},
		{gf_human_time, 1.25e-10, "125 ps"},
		{gf_human_rate, 1.25e8, "125 MB/s"},
		{gf_human_rate, 32e9, "32.0 GB/s"},
		{gf_human_link, 1.25e9, "10 Gb/s"},
		{gf_human_link, 1.25e8 * (1 - 1e-12), "1 Gb/s"},
		{gf_human_link, 1.176e8, "941 Mb/s"},
		{gf_human_ratio, 1.3, "1.30"},
		{gf_human_ratio, 0.9996, "1.00"},
		{gf_human_ratio, 0.0123456, "0.0123"},
		{gf_human_ratio, 1234, "1234"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		EXPECT_TEXT(cases[i].print(cases[i].value).text, cases[i].want);
}

static void test_forms(void)
{
	static const struct {
		size_t form;
		const char *want;
	} cases[] = {
		{GF_TABLE_MARKDOWN, "| a\\|b | time (ms) | size (KiB) |\n|---|--:|--:|\n"
				    "| 50 %, x | 1.50 | 4.00 |\n| y_z | 0.0200 +? | - |\n\nnote\n"},
		{GF_TABLE_LATEX,
		 "\\begin{tabular}{lrr}\na|b & time (ms) & size (KiB) \\\\\n\\hline\n"
		 "50 \\%, x & 1.50 & 4.00 \\\\\ny\\_z & 0.0200 +? & - \\\\\n"
		 "\\end{tabular}\n% note\n"},
		{GF_TABLE_CSV,
		 "a|b,time (ms),size (KiB)\n\"50 %, x\",1.50,4.00\ny_z,0.0200 +?,-\n"},
		{GF_TABLE_TSV,
		 "a|b\ttime (ms)\tsize (KiB)\n50 %, x\t1.50\t4.00\ny_z\t0.0200 +?\t-\n"},
	};
	struct gf_text out = {0};
	struct gf_table t = {0};
	size_t i;

	gf_table_cells(&t, "a|b\ttime\tsize");
	gf_table_cells(&t, "50 %%, x\t1.50 ms\t4 KiB");
	gf_table_cells(&t, "y_z\t20.0 us +?\t-");
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		gf_table_print_in(&t, cases[i].form, &out);
		gf_table_note(cases[i].form, &out, "note");
		EXPECT_TEXT(out.data, cases[i].want);
		gf_text_release(&out);
	}
	gf_table_release(&t);
}

static void test_cells(void)
{
	struct gf_text out = {0};

	gf_text_add_cell(&out, "a,b", ',');
	gf_text_add_cell(&out, "say \"no\"", '\t');
	gf_text_add_cell(&out, "c,d", '\t');
	gf_text_add_cell(&out, "", ',');
	EXPECT_TEXT(out.data, "\"a,b\"\"say \"\"no\"\"\"c,d");
	gf_text_release(&out);
}

static void test_table(void)
{
	struct gf_table t = {0};
	struct gf_text out = {0};

	gf_table_cells(&t, "policy\tms\tnote");
	gf_table_cells(&t, "wfbp\t12.5\ta");
	gf_table_cells(&t, "optimal\t7\tbc");
	gf_table_print_in(&t, 0, &out);
	EXPECT_TEXT(out.data, "policy     ms  note\n"
			      "wfbp     12.5  a\n"
			      "optimal     7  bc\n");
	gf_text_release(&out);
	gf_table_release(&t);
}

static void test_status(void)
{
	static const struct {
		int rc, want;
	} cases[] = {
		{0, 0},    {1, 1},          {-EINVAL, 2}, {-ENOTSUP, 1},
		{-EIO, 3}, {-ETIMEDOUT, 4}, {-ENOENT, 3},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		EXPECT(gf_cli_status(cases[i].rc) == cases[i].want, "rc %d", cases[i].rc);
}

int main(void)
{
	test_human();
	test_forms();
	test_cells();
	test_forms();
	test_table();
	test_status();
	return TEST_END();
}
