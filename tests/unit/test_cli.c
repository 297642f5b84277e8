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
		{gf_human_size, 1536, "1.5 KiB"},
		{gf_human_size, 4194304, "4 MiB"},
		{gf_human_time, 0, "0 s"},
		{gf_human_time, 0.0123, "12.3 ms"},
		{gf_human_time, 5e-5, "50 us"},
		{gf_human_time, 61.23, "61.2 s"},
		{gf_human_time, 1.234e-9, "1.23 ns"},
		{gf_human_time, 1.25e-10, "125 ps"},
		{gf_human_rate, 1.25e8, "125 MB/s"},
		{gf_human_rate, 32e9, "32 GB/s"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		EXPECT_TEXT(cases[i].print(cases[i].value).text, cases[i].want);
}

static void test_table(void)
{
	struct gf_table t = {0};
	struct gf_text out = {0};

	gf_table_cells(&t, "policy\tms\tnote");
	gf_table_cells(&t, "wfbp\t12.5\ta");
	gf_table_cells(&t, "optimal\t7\tbc");
	gf_table_print(&t, &out);
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
	test_table();
	test_status();
	return TEST_END();
}
