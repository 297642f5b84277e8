/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "imports/importers.h"

/* An object over several lines is no longer. */
#define RECORD_MOST ((size_t)1 << 16)

/* What is in front of the object, or behind it, may be a label. */
static int read_object(const struct gf_import *in, const char *open, size_t *length,
		       struct gf_json **root)
{
	size_t left = in->size - (size_t)(open - in->text);
	const char *end = memchr(open, '\n', left);
	size_t line = end ? (size_t)(end - open) : left, used = 0;
	int rc = gf_json_parse_next(open, line, in->file, &used, root, NULL);

	if (rc < 0 && strspn(open + 1, " \t\r") + 1 >= line) {
		used = 0;
		rc = gf_json_parse_next(open, left < RECORD_MOST ? left : RECORD_MOST, in->file,
					&used, root, NULL);
	}
	*length = rc < 0 ? line : used;
	return rc;
}

int gf_import_records(const struct gf_import *in, gf_import_record *take, void *ctx,
		      struct gf_error *err)
{
	const char *p = in->text, *end = in->text + in->size, *open;
	size_t number = 1, length;
	int rc = 0;

	while (p < end && rc == 0) {
		const char *next = memchr(p, '\n', (size_t)(end - p));
		struct gf_json_at at = {0};
		struct gf_json *root = NULL;

		next = next ? next : end;
		open = memchr(p, '{', (size_t)(next - p));
		if (!open) {
			if (strspn(p, " \t\r,[]") < (size_t)(next - p))
				gf_imported_leave(in->imported, "lines that are no records",
						  number);
			length = 0;
			open = next;
		} else if (read_object(in, open, &length, &root) < 0) {
			gf_imported_leave(in->imported, "broken records", number);
		} else {
			char *place = gf_xasprintf("%s:%zu", in->file, number);

			rc = gf_json_root(root, place, &at, err);
			if (rc == 0)
				rc = take(ctx, &at, number, err);
			gf_json_leave(&at);
			gf_json_free(root);
			free(place);
		}
		for (next = open + length; p < next; p++)
			number += *p == '\n';
		/* the rest of its line is blank, or a comma */
		p += strcspn(p, "\n");
		number += p < end;
		p += p < end;
	}
	return rc;
}
