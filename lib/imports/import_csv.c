/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A profile's model half as a table: name,count_elems,dtype,ready_s and, optionally, need_s; one
 * tensor per row in generation order. A few lines of hooks in any framework can print such a table.
 */
#include "imports/importers.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/registry.h"
#include "base/text.h"
#include "base/units.h"

struct reader {
	const char *at, *end;
	size_t line;
};

/* One field, unquoted; *last: the row ends after it. */
static int read_field(struct reader *r, char **field, int *last)
{
	GF_RELEASED(gf_text_release) struct gf_text text = {0};
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
			return -EINVAL;
		}
		r->line += c == '\n';
		gf_text_add(&text, r->at++, 1);
	}
	if (quoted)
		return -EINVAL;
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
	for (size_t i = 0; i < count; i++)
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

/* The column of that name, or -1. */
static int csv_column(const struct gf_csv *csv, const char *name)
{
	for (size_t i = 0; i < csv->ncolumns; i++)
		if (strcmp(csv->columns[i], name) == 0)
			return (int)i;
	return -1;
}

static int need(const struct gf_csv *csv, const char *name, int *column, struct gf_error *err)
{
	*column = csv_column(csv, name);
	if (*column >= 0)
		return 0;
	return gf_error_set(err, -EINVAL, "%s:1: want a column %s, got none", csv->file, name);
}

const char *gf_csv_field(const struct gf_csv *csv, size_t row, int column)
{
	return csv->fields[row * csv->ncolumns + (size_t)column];
}

/* Puts "file:line: column" in front of the error. */
static void csv_place(const struct gf_csv *csv, size_t row, int column, struct gf_error *err)
{
	gf_error_prefix(err, "%s:%zu: %s", csv->file, csv->lines[row], csv->columns[column]);
}

static int recognise(const char *text)
{
	GF_RELEASED(gf_csv_release) struct gf_csv csv = {0};

	return gf_csv_read(text, strcspn(text, "\n"), "", &csv, NULL) == 0 &&
	       csv_column(&csv, "name") >= 0 && csv_column(&csv, "ready_s") >= 0;
}

struct columns {
	int name, count, dtype, ready, need; /* dtype, need: or -1 */
};

static int read_count(const struct gf_csv *csv, size_t row, int column, long long low, size_t *out,
		      struct gf_error *err)
{
	long long value;
	int rc = gf_units_int(gf_csv_field(csv, row, column), low, LLONG_MAX / 8, &value, err);

	if (rc < 0)
		csv_place(csv, row, column, err);
	else
		*out = (size_t)value;
	return rc;
}

static int read_time(const struct gf_csv *csv, size_t row, int column, double *out,
		     struct gf_error *err)
{
	int rc = gf_units_real(gf_csv_field(csv, row, column), 0, DBL_MAX, out, err);

	if (rc < 0)
		csv_place(csv, row, column, err);
	return rc;
}

static int read_dtype(const struct gf_csv *csv, size_t row, int column, enum gf_dtype *out,
		      struct gf_error *err)
{
	const char *name = gf_csv_field(csv, row, column);
	int i = gf_names_index(gf_dtype_names, name), rc;

	if (i >= 0) {
		*out = (enum gf_dtype)i;
		return 0;
	}
	rc = gf_error_set(err, -EINVAL,
			  "want f32, f64, f16, bf16 or i32, got "
			  "\"%s\"",
			  name);
	csv_place(csv, row, column, err);
	return rc;
}

static int read_tensor(const struct gf_csv *csv, size_t row, const struct columns *c,
		       struct gf_tensor *t, struct gf_error *err)
{
	int rc = read_count(csv, row, c->count, 1, &t->count_elems, err);

	t->name = gf_xstrdup(gf_csv_field(csv, row, c->name));
	t->dtype = GF_F32;
	t->need_s = NAN;
	if (rc == 0 && c->dtype >= 0)
		rc = read_dtype(csv, row, c->dtype, &t->dtype, err);
	rc = rc ?: read_time(csv, row, c->ready, &t->ready_s, err);
	if (rc == 0 && c->need >= 0 && *gf_csv_field(csv, row, c->need))
		rc = read_time(csv, row, c->need, &t->need_s, err);
	if (rc == 0 && row > 0 && t->ready_s < t[-1].ready_s) {
		rc = gf_error_set(err, -EINVAL, "want no less than the row above, %g, got %g",
				  t[-1].ready_s, t->ready_s);
		csv_place(csv, row, c->ready, err);
	}
	return rc;
}

/* needs: read the column need_s, if there is one. */
static int read_tensors(const struct gf_csv *csv, bool needs, struct gf_model_profile *m,
			struct gf_error *err)
{
	struct columns c = {
		.dtype = csv_column(csv, "dtype"),
		.need = needs ? csv_column(csv, "need_s") : -1,
	};
	int rc = need(csv, "name", &c.name, err);

	rc = rc ?: need(csv, "count_elems", &c.count, err);
	rc = rc ?: need(csv, "ready_s", &c.ready, err);
	if (rc == 0 && csv->nrows == 0)
		rc = gf_error_set(err, -EINVAL, "%s: want tensors, got none", csv->file);
	if (rc < 0)
		return rc;
	m->tensors = gf_xcalloc(csv->nrows, sizeof(*m->tensors));
	for (size_t i = 0; i < csv->nrows && rc == 0; i++) {
		m->ntensors = i + 1;
		rc = read_tensor(csv, i, &c, &m->tensors[i], err);
	}
	return rc;
}

static int read_csv(const struct gf_import *in, struct gf_profile *out, struct gf_text *remarks,
		    struct gf_error *err)
{
	static const char *const known[] = {"name",    "count_elems", "dtype",
					    "ready_s", "need_s",      NULL};
	GF_RELEASED(gf_csv_release) struct gf_csv csv = {0};
	int k, rc = gf_csv_read(in->text, in->size, in->file, &csv, err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < csv.ncolumns; i++)
		if (gf_names_find(known, csv.columns[i], &k, NULL) < 0)
			gf_imported_leave(in->imported, "columns of other names", 1);
	if (isnan(in->forward_s) && csv_column(&csv, "need_s") >= 0)
		gf_imported_leave(in->imported, "columns need_s, which want --passes forward", 1);
	out->model = gf_import_model(in, NULL, remarks);
	rc = read_tensors(&csv, !isnan(in->forward_s), out->model, err);
	return rc ?: gf_import_finish_model(in, out->model, err);
}

/* MANUAL
 * a row of column names, then one row per tensor in the order in which backward makes the
 * gradients:
 * .Va name , count_elems , ready_s
 * and, if there are such columns,
 * .Va dtype
 * (f32) and
 * .Va need_s .
 * A few lines of hooks in any framework can print this file. */
const struct gf_importer gf_importer_csv = {
	.name = "csv",
	.description = "name,count_elems,dtype,ready_s per tensor",
	.place = 10,
	.recognise = recognise,
	.read = read_csv,
};

static const char source[] = "--imported: params";

struct parameters {
	struct gf_csv csv;
	int name, elems; /* columns */
	size_t *left;    /* elements per row; 0: the row is taken, or says none */
};

/* The last row not taken that can be this tensor; nrows if there is none. */
static size_t find(const struct parameters *p, const struct gf_tensor *t)
{
	for (size_t row = p->csv.nrows; row-- > 0;)
		if (p->left[row] && (t->count_elems == 0 || t->count_elems == p->left[row]))
			return row;
	return p->csv.nrows;
}

static int name_all(struct parameters *p, struct gf_model_profile *m, struct gf_error *err)
{
	size_t t, row;

	if (p->csv.nrows > (1 << 30) / (m->ntensors + 1)) /* compared pairs */
		return gf_error_set(
			err, -EINVAL,
			"%s: want a row for each of %zu gradients, and few others, got %zu", source,
			m->ntensors, p->csv.nrows);
	for (t = 0; t < m->ntensors; t++) {
		struct gf_tensor *tensor = &m->tensors[t];

		row = find(p, tensor);
		if (row == p->csv.nrows)
			return gf_error_set(
				err, -EINVAL,
				"%s: no parameter is left for gradient %zu, of %zu elements",
				source, t, tensor->count_elems);
		tensor->count_elems = p->left[row];
		p->left[row] = 0;
		free(tensor->name);
		tensor->name = gf_xstrdup(gf_csv_field(&p->csv, row, p->name));
	}
	return 0;
}

int gf_import_names(const struct gf_import *in, struct gf_model_profile *m, struct gf_error *err)
{
	struct parameters p = {0};
	int rc = gf_csv_read(in->parameters, strlen(in->parameters), source, &p.csv, err);

	if (rc < 0)
		return rc;
	rc = need(&p.csv, "name", &p.name, err);
	rc = rc ?: need(&p.csv, "count_elems", &p.elems, err);
	if (rc == 0) {
		p.left = gf_xcalloc(p.csv.nrows + 1, sizeof(*p.left));
		for (size_t row = 0; row < p.csv.nrows; row++)
			rc = rc ?: read_count(&p.csv, row, p.elems, 0, &p.left[row], err);
		rc = rc ?: name_all(&p, m, err);
		free(p.left);
	}
	gf_csv_release(&p.csv);
	return rc;
}
