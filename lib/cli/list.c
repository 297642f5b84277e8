/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/list.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

int gf_cli_list(const char *arg,
		int (*item)(void *ctx, const char *text, struct gf_error *err),
		void *ctx, struct gf_error *err)
{
	char *copy = gf_xstrdup(arg), *rest = copy, *part;
	int rc = 0;

	while (rc == 0 && (part = strsep(&rest, ",")))
		rc = item(ctx, part, err);
	free(copy);
	return rc;
}
