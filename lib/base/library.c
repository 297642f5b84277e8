/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

int gf_library_open(const char *file, const struct gf_symbol *symbols, size_t count, void *table,
		    struct gf_error *err)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return gf_error_set(err, -ENODEV, "%s", dlerror());
	for (size_t i = 0; i < count; i++) {
		void *symbol = dlsym(library, symbols[i].name);

		if (!symbol)
			return gf_error_set(err, -ENODEV, "%s has no %s", file, symbols[i].name);
		memcpy((char *)table + symbols[i].at, &symbol, sizeof(symbol));
	}
	return 0;
}
