/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <string.h>

#include <jansson.h>

#include "base/array.h"
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

	for (size_t i = from; i < size; i++) {
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

json_t *gf_json_load(const char *text, size_t size, size_t flags, json_error_t *found)
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
	GF_RELEASED(gf_text_release) struct gf_text reason = {0};
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
	value = gf_json_load(text + from, size - from, flags | JSON_DISABLE_EOF_CHECK, &found);
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
	int rc = parse_next(text, size, file, flags, &used, &value, err);

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

/* --- JSON Lines as a table of text (json/json.h) ----------------------------- */

/* The columns, in the order in which rows first have them. */
struct columns {
	char **names;
	size_t n, capacity;
};

static size_t column_of(struct columns *c, const char *name)
{
	size_t i;

	for (i = 0; i < c->n && strcmp(c->names[i], name) != 0; i++)
		;
	if (i == c->n)
		*gf_array_push(&c->names, &c->n, &c->capacity) = gf_xstrdup(name);
	return i;
}

static char *quoted(const char *text, char separator)
{
	struct gf_text out = {0};

	gf_text_add_cell(&out, text, separator);
	return gf_text_take(&out);
}

static char *cell_of(const json_t *value, char separator)
{
	char number[GF_JSON_REAL_TEXT];
	GF_FREED char *text = NULL;

	switch (json_typeof(value)) {
	case JSON_STRING:
		return quoted(json_string_value(value), separator);
	case JSON_REAL:
		gf_json_real_text(json_real_value(value), number);
		return gf_xstrdup(number);
	case JSON_NULL:
		return gf_xstrdup("");
	default:
		text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
		return quoted(text ? text : "", separator);
	}
}

/* Puts the members of an object into cells (of so many, grown); those of an object in it go by both
 * names: "over.lanes". */
static void take(const json_t *object, const char *prefix, char separator, struct columns *c,
		 char ***cells, size_t *n)
{
	const char *key;
	json_t *value;
	size_t at;

	json_object_foreach((json_t *)object, key, value)
	{
		GF_FREED char *name = gf_xasprintf("%s%s%s", prefix, *prefix ? "." : "", key);

		if (json_is_object(value)) {
			take(value, name, separator, c, cells, n);
			continue;
		}
		at = column_of(c, name);
		if (at >= *n) {
			*cells = gf_xreallocarray(*cells, at + 1, sizeof(**cells));
			while (*n <= at)
				(*cells)[(*n)++] = NULL;
		}
		free((*cells)[at]);
		(*cells)[at] = cell_of(value, separator);
	}
}

struct row {
	char **cells;
	size_t n;
};

static void put_lines(const struct columns *c, const struct row *rows, size_t nrows, char separator,
		      struct gf_text *out)
{
	for (size_t k = 0; k < c->n; k++)
		gf_text_addf(out, "%.*s%s", k > 0, &separator, c->names[k]);
	for (size_t i = 0; i < nrows; i++) {
		gf_text_add(out, "\n", 1);
		for (size_t k = 0; k < c->n; k++)
			gf_text_addf(out, "%.*s%s", k > 0, &separator,
				     k < rows[i].n && rows[i].cells[k] ? rows[i].cells[k] : "");
	}
	gf_text_add(out, "\n", 1);
}

int gf_json_rows_text(const char *lines, char separator, struct gf_text *out, struct gf_error *err)
{
	struct columns c = {0};
	struct row *rows = NULL, *row;
	size_t nrows = 0, capacity = 0, i, k;
	json_error_t why;
	json_t *object;
	int rc = 0;

	for (; rc == 0 && *lines; lines += strcspn(lines, "\n"), lines += *lines == '\n') {
		object = gf_json_load(lines, strcspn(lines, "\n"), 0, &why);
		if (!json_is_object(object)) {
			rc = gf_error_set(err, -EINVAL, "want a JSON object on each line");
		} else {
			row = gf_array_push(&rows, &nrows, &capacity);
			*row = (struct row){0};
			take(object, "", separator, &c, &row->cells, &row->n);
		}
		json_decref(object);
	}
	if (rc == 0 && nrows)
		put_lines(&c, rows, nrows, separator, out);
	for (i = 0; i < nrows; i++) {
		for (k = 0; k < rows[i].n; k++)
			free(rows[i].cells[k]);
		free(rows[i].cells);
	}
	for (k = 0; k < c.n; k++)
		free(c.names[k]);
	free(c.names);
	free(rows);
	return rc;
}
