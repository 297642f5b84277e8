/* SPDX-License-Identifier: BSD-3-Clause */
/* gf-schema FOLDER: writes the JSON Schema of every kind of document, NAME.schema.json, which the
 * tables of its reader make. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "json/record_schema.h"

extern const struct gf_document_format *const gf_document_formats[];

static int write_schema(const char *folder, const struct gf_document_format *format)
{
	char *path = gf_xasprintf("%s/%s.schema.json", folder, format->name);
	char *text = gf_document_schema(format);
	FILE *f = fopen(path, "w");
	int failed = !f || fputs(text, f) < 0;

	failed |= f && fclose(f);
	if (failed)
		fprintf(stderr, "gf-schema: %s: %s\n", path, strerror(errno));
	free(text);
	free(path);
	return failed;
}

int main(int argc, char **argv)
{
	const struct gf_document_format *const *f;
	int failed = 0;

	if (argc != 2) {
		fprintf(stderr, "gf-schema: want FOLDER\n");
		return 2;
	}
	for (f = gf_document_formats; *f && !failed; f++)
		failed = write_schema(argv[1], *f);
	return failed;
}
