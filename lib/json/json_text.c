/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/heap.h"
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

/* "<file>:<line>:<column>: <reason>"; returns -EINVAL. */
static int refuse_at(const char *text, size_t offset, const char *file, struct gf_error *err,
		     const char *reason)
{
	int line, column;

	gf_json_place(text, offset, &line, &column);
	return gf_error_set(err, -EINVAL, "%s:%d:%d: %s", file, line, column, reason);
}

static size_t skip_blanks(const char *text, size_t size, size_t from)
{
	while (from < size && strchr(" \t\r\n", text[from]) && text[from])
		from++;
	return from;
}

/* Refuses a value that opens more than GF_JSON_MAX_DEPTH levels, before any parser recurses into
 * it. */
static int check_depth(const char *text, size_t size, size_t from, const char *file,
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
				return refuse_at(text, i, file, err,
						 "want at most 64 levels of nesting, got more");
		} else if ((c == '}' || c == ']') && --depth <= 0) {
			break;
		}
	}
	return 0;
}

/* jansson takes a lack of memory within a text for bad syntax, or crashes: its memory is taken by
 * base/heap.h meanwhile. A program that has given it another memory keeps that. */
static json_t *load(const char *text, size_t size, size_t flags, json_error_t *found)
{
	json_malloc_t before;
	json_free_t give;
	json_t *value;

	json_get_alloc_funcs(&before, &give);
	if (before == malloc)
		json_set_alloc_funcs(gf_xmalloc, give);
	value = json_loadb(text, size, flags, found);
	if (before == malloc)
		json_set_alloc_funcs(before, give);
	return value;
}

/* jansson counts from where it was started; the message counts from the beginning of the text. */
static int refuse_syntax(const char *text, size_t from, const char *file, const json_error_t *found,
			 struct gf_error *err)
{
	struct gf_text reason = {0};
	int line, column;

	gf_json_place(text, from, &line, &column);
	column = found->line == 1 ? column - 1 + found->column : found->column;
	line += found->line - 1;
	if (column < 1) /* the end of the text, after a line break */
		column = 1;
	if (strstr(found->text, "JSON_ALLOW_NUL"))
		gf_text_addf(&reason, "\\u0000 is not allowed in a string");
	else
		gf_text_add_printable(&reason, found->text, sizeof(found->text));
	gf_error_set(err, -EINVAL, "%s:%d:%d: %s", file, line, column,
		     reason.data ? reason.data : "not JSON");
	gf_text_release(&reason);
	return -EINVAL;
}

/* gf_json_parse_next with jansson's flags. */
static int parse_next(const char *text, size_t size, const char *file, size_t flags, size_t *used,
		      struct gf_json **root, struct gf_error *err)
{
	size_t from = skip_blanks(text, size, *used);
	json_error_t found;
	json_t *value;
	int rc;

	if (from == size) {
		*used = size;
		*root = NULL;
		return 0;
	}
	rc = check_depth(text, size, from, file, err);
	if (rc)
		return rc;
	value = load(text + from, size - from, flags | JSON_DISABLE_EOF_CHECK, &found);
	if (!value)
		return refuse_syntax(text, from, file, &found, err);
	*used = from + (size_t)found.position;
	*root = (struct gf_json *)value;
	return 0;
}

static int parse(const char *text, size_t size, const char *file, size_t flags,
		 struct gf_json **root, struct gf_error *err)
{
	struct gf_json *value;
	size_t used = 0;
	int rc;

	rc = parse_next(text, size, file, flags, &used, &value, err);
	if (rc)
		return rc;
	if (!value)
		return gf_error_set(err, -EINVAL, "%s: want a JSON document, got nothing", file);
	used = skip_blanks(text, size, used);
	if (used < size) {
		gf_json_free(value);
		return refuse_at(text, used, file, err, "want one document, got more after it");
	}
	*root = value;
	return 0;
}

int gf_json_parse_next(const char *text, size_t size, const char *file, size_t *used,
		       struct gf_json **root, struct gf_error *err)
{
	return parse_next(text, size, file, JSON_REJECT_DUPLICATES, used, root, err);
}

int gf_json_parse(const char *text, size_t size, const char *file, struct gf_json **root,
		  struct gf_error *err)
{
	return parse(text, size, file, JSON_REJECT_DUPLICATES, root, err);
}

int gf_json_parse_loose(const char *text, size_t size, const char *file, struct gf_json **root,
			struct gf_error *err)
{
	return parse(text, size, file, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, root, err);
}
