/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON Lines as a table of text (json/json.h). */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "json/json.h"

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
	char number[GF_JSON_REAL_TEXT], *text, *cell;

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
		cell = quoted(text ? text : "", separator);
		free(text);
		return cell;
	}
}

/* Puts the members of an object into cells (of so many, grown); those of an object in it go by both
 * names: "over.lanes". */
static void take(const json_t *object, const char *prefix, char separator, struct columns *c,
		 char ***cells, size_t *n)
{
	const char *key;
	json_t *value;
	char *name;
	size_t at;

	json_object_foreach((json_t *)object, key, value)
	{
		name = gf_xasprintf("%s%s%s", prefix, *prefix ? "." : "", key);
		if (json_is_object(value)) {
			take(value, name, separator, c, cells, n);
			free(name);
			continue;
		}
		at = column_of(c, name);
		free(name);
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
	size_t i, k;

	for (k = 0; k < c->n; k++)
		gf_text_addf(out, "%.*s%s", k > 0, &separator, c->names[k]);
	for (i = 0; i < nrows; i++) {
		gf_text_add(out, "\n", 1);
		for (k = 0; k < c->n; k++)
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
		object = json_loadb(lines, strcspn(lines, "\n"), 0, &why);
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
