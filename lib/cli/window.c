/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/command.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"

enum { NARROWEST = 20, USUAL = 80 };

bool gf_cli_to_terminal(const struct gf_cli *cli)
{
	return !gf_cli_output_file(cli) && isatty(STDOUT_FILENO);
}

bool gf_cli_utf8(void)
{
	static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	const char *value = NULL;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(variables) && !(value && *value); i++)
		value = getenv(variables[i]);
	return value &&
	       (strcasestr(value, "utf-8") || strcasestr(value, "utf8"));
}

size_t gf_cli_width(const struct gf_cli *cli)
{
	const char *columns = getenv("COLUMNS");
	struct winsize window = {0};
	int width = columns ? atoi(columns) : 0;

	if (!gf_cli_to_terminal(cli))
		return 0;
	if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0)
		width = window.ws_col;
	if (width <= 0)
		width = USUAL;
	return (size_t)(width < NARROWEST ? NARROWEST : width);
}
