/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/library.h"

/* Libraries that are there, that lack something, and that are not there. */
struct table {
	double (*cosine)(double x);
	double (*root)(double x);
};

static const struct {
	const char *file, *symbol; /* beside cos */
	int rc;
	const char *text; /* what the reason holds */
} cases[] = {
	{"libm.so.6", "sqrt", 0, ""},
	{"libm.so.6", "gf_no_such_function", -ENODEV, "libm.so.6 has no gf_no_such_function"},
	{"libgf-no-such-library.so.1", "sqrt", -ENODEV, "libgf-no-such-library.so.1"},
};

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct gf_symbol symbols[] = {
			{"cos", offsetof(struct table, cosine)},
			{cases[i].symbol, offsetof(struct table, root)},
		};
		struct gf_error err = {""};
		struct table t = {NULL, NULL};
		int rc = gf_library_open(cases[i].file, symbols, 2, &t, &err);

		EXPECT(rc == cases[i].rc, "%s: got %d", cases[i].file, rc);
		EXPECT(strstr(err.text, cases[i].text), "%s: got %s", cases[i].file, err.text);
		EXPECT(rc || (t.cosine(0) == 1 && t.root(9) == 3), "%s: other functions",
		       cases[i].file);
	}
	return TEST_END();
}
