/* SPDX-License-Identifier: BSD-3-Clause */
#include "imports/csv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"

struct reader {
	const char *at, *end;
	size_t line;
};

/* One field, unquoted; *last: the row ends after it. */
static int read_field(struct reader *r, char **field, int *last)
{
	struct gf_text text = {0};
	int quoted = r->at < r->end && *r->at == '"';

	r->at += quoted;
	while (r->at < r->end) {
		char c = *r->at;

		if (quoted && c == '"') {
			r->at++;
			if (r->at == r->end || *r->at != '"') {
				quoted = 0;
				continue;
			}
		} else if (!quoted && (c == ',' || c == '\n' || c == '\r')) {
			break;
		} else if (c == '\0') {
			gf_text_release(&text);
			return -EINVAL;
		}
		r->line += c == '\n';
		gf_text_add(&text, r->at++, 1);
	}
	if (quoted) {
		gf_text_release(&text);
		return -EINVAL;
	}
	*last = r->at == r->end || *r->at != ',';
	if (!*last || (r->at < r->end && *r->at == '\r'))
		r->at++;
	if (*last && r->at < r->end && *r->at == '\n') {
		r->at++;
		r->line++;
	}
	*field = gf_text_take(&text);
	return 0;
}

static void free_fields(char **fields, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		free(fields[i]);
	free(fields);
}

/* *count is 0 at the end of the text; *line is where the row begins. */
static int read_row(struct reader *r, char ***fields, size_t *count, size_t *line)
{
	size_t capacity = 0;
	int last = 0, rc = 0;

	*fields = NULL;
	*count = 0;
	while (r->at < r->end && (*r->at == '\n' || *r->at == '\r'))
		r->line += *r->at++ == '\n';
	*line = r->line;
	while (r->at < r->end && !last && rc == 0) {
		char *field = NULL;

		rc = read_field(r, &field, &last);
		if (rc == 0)
			*gf_array_push(fields, count, &capacity) = field;
		/* "a," at the end of the text: one more, empty */
		if (rc == 0 && !last && r->at == r->end) {
			*gf_array_push(fields, count, &capacity) = gf_xstrdup("");
			break;
		}
	}
	if (rc < 0) {
		free_fields(*fields, *count);
		*fields = NULL;
		*count = 0;
	}
	return rc;
}

static int refuse(const char *file, size_t line, const char *what, struct gf_error *err)
{
	return gf_error_set(err, -EINVAL, "%s:%zu: %s", file, line, what);
}

static int read_rows(struct reader *r, struct gf_csv *csv, struct gf_error *err)
{
	size_t field_capacity = 0, line_capacity = 0, nfields = 0;

	for (;;) {
		size_t count, i, line;
		char **fields;

		if (read_row(r, &fields, &count, &line) < 0)
			return refuse(csv->file, line, "a quote is not closed, or a NUL byte", err);
		if (count == 0)
			return 0;
		if (count != csv->ncolumns) {
			free_fields(fields, count);
			return gf_error_set(err, -EINVAL, "%s:%zu: want %zu fields, got %zu",
					    csv->file, line, csv->ncolumns, count);
		}
		for (i = 0; i < count; i++)
			*gf_array_push(&csv->fields, &nfields, &field_capacity) = fields[i];
		free(fields);
		*gf_array_push(&csv->lines, &csv->nrows, &line_capacity) = line;
	}
}

int gf_csv_read(const char *text, size_t size, const char *file, struct gf_csv *csv,
		struct gf_error *err)
{
	struct reader r = {text, text + size, 1};
	size_t line;
	int rc;

	memset(csv, 0, sizeof(*csv));
	csv->file = file;
	if (read_row(&r, &csv->columns, &csv->ncolumns, &line) < 0)
		return refuse(file, line, "a quote is not closed, or a NUL byte", err);
	if (csv->ncolumns == 0)
		return refuse(file, 1, "want a row of column names, got none", err);
	rc = read_rows(&r, csv, err);
	if (rc < 0)
		gf_csv_release(csv);
	return rc;
}

void gf_csv_release(struct gf_csv *csv)
{
	free_fields(csv->fields, csv->nrows * csv->ncolumns);
	free_fields(csv->columns, csv->ncolumns);
	free(csv->lines);
	memset(csv, 0, sizeof(*csv));
}

int gf_csv_column(const struct gf_csv *csv, const char *name)
{
	size_t i;

	for (i = 0; i < csv->ncolumns; i++)
		if (strcmp(csv->columns[i], name) == 0)
			return (int)i;
	return -1;
}

int gf_csv_need(const struct gf_csv *csv, const char *name, int *column, struct gf_error *err)
{
	*column = gf_csv_column(csv, name);
	if (*column >= 0)
		return 0;
	return gf_error_set(err, -EINVAL, "%s:1: want a column %s, got none", csv->file, name);
}

const char *gf_csv_field(const struct gf_csv *csv, size_t row, int column)
{
	return csv->fields[row * csv->ncolumns + (size_t)column];
}

void gf_csv_place(const struct gf_csv *csv, size_t row, int column, struct gf_error *err)
{
	gf_error_prefix(err, "%s:%zu: %s", csv->file, csv->lines[row], csv->columns[column]);
}
