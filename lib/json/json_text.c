/* SPDX-License-Identifier: BSD-3-Clause */
#include "json/json_text.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "json/json.h"

void gf_json_place(const char *text, size_t offset, int *line, int *column)
{
	size_t i, start = 0;

	*line = 1;
	for (i = 0; i < offset; i++) {
		if (text[i] == '\n') {
			(*line)++;
			start = i + 1;
		}
	}
	*column = (int)(offset - start) + 1;
}

int gf_json_refuse_at(const char *text, size_t offset, const char *file, struct gf_error *err,
		      const char *reason)
{
	int line, column;

	gf_json_place(text, offset, &line, &column);
	return gf_error_set(err, -EINVAL, "%s:%d:%d: %s", file, line, column, reason);
}

size_t gf_json_skip_blanks(const char *text, size_t size, size_t from)
{
	while (from < size && strchr(" \t\r\n", text[from]) && text[from])
		from++;
	return from;
}

int gf_json_check_depth(const char *text, size_t size, size_t from, const char *file,
			struct gf_error *err)
{
	bool in_string = false;
	int depth = 0;
	size_t i;

	for (i = from; i < size; i++) {
		char c = text[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > GF_JSON_MAX_DEPTH)
				return gf_json_refuse_at(
					text, i, file, err,
					"want at most 64 levels of nesting, got more");
		} else if ((c == '}' || c == ']') && --depth <= 0) {
			break;
		}
	}
	return 0;
}
