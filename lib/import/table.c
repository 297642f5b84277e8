/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "import/importers.h"

int gf_import_lines(const struct gf_import *in, gf_import_line *take, void *ctx,
		    struct gf_error *err)
{
	char *copy = gf_xstrdup(in->text), *saved = copy, *line;
	size_t number = 0;
	int rc = 0;

	while (rc == 0 && (line = strsep(&saved, "\n"))) {
		number++;
		rc = take(ctx, line + strspn(line, " \t"), err);
		if (rc < 0)
			gf_error_prefix(err, "%s:%zu", in->file, number);
	}
	free(copy);
	return rc;
}

size_t gf_import_words(char *line, char **words, size_t most)
{
	char *saved = NULL, *word;
	size_t n = 0;

	for (word = strtok_r(line, " \t\r", &saved); word && n < most;
	     word = strtok_r(NULL, " \t\r", &saved))
		words[n++] = word;
	return n;
}
