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

const char **gf_cli_split(const char *arg)
{
	size_t room = strlen(arg) + 2, n = 0;
	const char **parts = gf_xmalloc(room * sizeof(*parts) + room);
	char *rest = (char *)(parts + room), *part;

	memcpy(rest, arg, room - 1);
	while ((part = strsep(&rest, ",")))
		parts[n++] = part;
	parts[n] = NULL;
	return parts;
}

void gf_cli_warn_lines(const struct gf_cli *cli, const char *text)
{
	char *copy = gf_xstrdup_or_null(text), *rest = copy, *line;

	while (!cli->quiet && rest && (line = strsep(&rest, "\n")))
		if (*line)
			gf_cli_warn(cli, "%s", line);
	free(copy);
}
