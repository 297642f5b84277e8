/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_math.h"

#include <errno.h>
#include <string.h>

extern "C" {
#include "base/library.h"
}

std::string fake::failing;
std::set<const void *> fake::alive;

static int lacking;

// In place of base/library.c.
int gf_library_open(const char *file, const struct gf_symbol *symbols,
		    size_t count, void *table, struct gf_error *err)
{
	const int which = strncmp(file, "libcudnn.so.", 12) == 0 ? 1 : 2;

	fake::want(which == 1 || strncmp(file, "libcublas.so.", 13) == 0,
		   "another library");
	if (lacking == which)
		return gf_error_set(err, -ENOTSUP, "%s: no such file", file);
	for (size_t i = 0; i < count; i++) {
		void *call = which == 1 ? fake::cudnn_call(symbols[i].name)
					: fake::cublas_call(symbols[i].name);

		fake::want(call != NULL, symbols[i].name);
		memcpy((char *)table + symbols[i].at, &call, sizeof(call));
	}
	return 0;
}

void fake_math_fail(const char *call)
{
	fake::failing = call ? call : "";
}

size_t fake_math_left(void)
{
	return fake::alive.size();
}

void fake_math_lack(int which)
{
	lacking = which;
}
