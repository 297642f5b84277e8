/* SPDX-License-Identifier: BSD-3-Clause */
#include "paper.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"
#include "cli/share.h"
#include "json/json.h"

static int read_strings(struct gf_json_at *at, const char *key, char ***out,
			size_t *count, struct gf_error *err)
{
	struct gf_json_at array;
	size_t i, n;
	int rc = gf_json_array(at, key, &array, &n, err);

	if (rc)
		return rc;
	*out = gf_xcalloc(n + 1, sizeof(**out));
	for (i = 0; i < n && !rc; i++) {
		rc = gf_json_item_string(&array, i, &(*out)[i], err);
		*count = i + !rc;
	}
	return rc;
}

static int read_input(struct gf_json_at *at, struct gf_paper_input *in,
		      struct gf_error *err)
{
	int rc = gf_json_string(at, "name", &in->name, err);

	if (!rc)
		rc = gf_json_real(at, "value", -1e300, 1e300, &in->value, err);
	if (!rc)
		rc = gf_json_string(at, "where", &in->where, err);
	return rc ? rc : gf_json_end(at, NULL, err);
}

static int read_row(struct gf_json_at *at, size_t ncolumns,
		    struct gf_paper_row *row, struct gf_error *err)
{
	struct gf_json_at values;
	size_t i, n;
	int rc = gf_json_string(at, "name", &row->name, err);

	if (!rc)
		rc = gf_json_array(at, "values", &values, &n, err);
	if (!rc && n != ncolumns)
		rc = gf_json_refuse(at, "values", err,
				    "want %zu values, one per column, got %zu",
				    ncolumns, n);
	if (rc)
		return rc;
	row->values = gf_xcalloc(n + 1, sizeof(*row->values));
	for (i = 0; i < n && !rc; i++)
		rc = gf_json_item_real(&values, i, -1e300, 1e300,
				       &row->values[i], err);
	return rc ? rc : gf_json_end(at, NULL, err);
}

static int read_table(struct gf_json_at *at, struct gf_paper_table *t,
		      struct gf_error *err)
{
	struct gf_json_at rows, item = {0};
	size_t i, n = 0;
	int rc = gf_json_string(at, "name", &t->name, err);

	if (!rc)
		rc = gf_json_string(at, "where", &t->where, err);
	if (!rc)
		rc = gf_json_string(at, "unit", &t->unit, err);
	if (!rc)
		rc = read_strings(at, "columns", &t->columns, &t->ncolumns,
				  err);
	if (!rc)
		rc = gf_json_array(at, "rows", &rows, &n, err);
	if (rc)
		return rc;
	t->rows = gf_xcalloc(n + 1, sizeof(*t->rows));
	t->nrows = n;
	for (i = 0; i < n && !rc; i++) {
		rc = gf_json_item_object(&rows, i, &item, err);
		if (!rc)
			rc = read_row(&item, t->ncolumns, &t->rows[i], err);
		gf_json_leave(&item);
	}
	return rc ? rc : gf_json_end(at, NULL, err);
}

static int read_inputs(struct gf_json_at *at, struct gf_paper *p,
		       struct gf_error *err)
{
	struct gf_json_at array, item = {0};
	size_t i, n;
	int rc = gf_json_array(at, "inputs", &array, &n, err);

	if (rc)
		return rc;
	p->inputs = gf_xcalloc(n + 1, sizeof(*p->inputs));
	p->ninputs = n;
	for (i = 0; i < n && !rc; i++) {
		rc = gf_json_item_object(&array, i, &item, err);
		if (!rc)
			rc = read_input(&item, &p->inputs[i], err);
		gf_json_leave(&item);
	}
	return rc;
}

static int read_tables(struct gf_json_at *at, struct gf_paper *p,
		       struct gf_error *err)
{
	struct gf_json_at array, item = {0};
	size_t i, n;
	int rc = gf_json_array(at, "tables", &array, &n, err);

	if (rc)
		return rc;
	p->tables = gf_xcalloc(n + 1, sizeof(*p->tables));
	p->ntables = n;
	for (i = 0; i < n && !rc; i++) {
		rc = gf_json_item_object(&array, i, &item, err);
		if (!rc)
			rc = read_table(&item, &p->tables[i], err);
		gf_json_leave(&item);
	}
	return rc;
}

static int read_paper(const struct gf_json *root, const char *file,
		      struct gf_paper *p, struct gf_error *err)
{
	struct gf_json_at at = {0};
	int rc = gf_json_root(root, file, &at, err);

	if (!rc)
		rc = gf_json_string(&at, "paper", &p->name, err);
	if (!rc)
		rc = gf_json_string(&at, "title", &p->title, err);
	if (!rc)
		rc = gf_json_string(&at, "authors", &p->authors, err);
	if (!rc)
		rc = gf_json_string(&at, "venue", &p->venue, err);
	if (!rc)
		rc = gf_json_int(&at, "year", 1900, 2100, &p->year, err);
	if (!rc)
		rc = read_inputs(&at, p, err);
	if (!rc)
		rc = read_tables(&at, p, err);
	if (!rc)
		rc = read_strings(&at, "not_given", &p->not_given,
				  &p->nnot_given, err);
	if (!rc)
		rc = gf_json_end(&at, NULL, err);
	gf_json_leave(&at);
	return rc;
}

int gf_paper_load(const char *name, struct gf_paper *p, struct gf_error *err)
{
	struct gf_json *root = NULL;
	char *text = NULL;
	size_t size;
	int rc;

	*p = (struct gf_paper){0};
	rc = gf_cli_share("papers", name, &p->file, err);
	if (!rc)
		rc = gf_file_read(p->file, &text, &size, err);
	if (!rc)
		rc = gf_json_parse(text, size, p->file, &root, err);
	if (!rc)
		rc = read_paper(root, p->file, p, err);
	gf_json_free(root);
	free(text);
	if (rc)
		gf_paper_release(p);
	return rc;
}

static void free_strings(char **strings, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		free(strings[i]);
	free(strings);
}

static void release_table(struct gf_paper_table *t)
{
	size_t i;

	for (i = 0; i < t->nrows; i++) {
		free(t->rows[i].name);
		free(t->rows[i].values);
	}
	free(t->rows);
	free_strings(t->columns, t->ncolumns);
	free(t->name);
	free(t->where);
	free(t->unit);
}

void gf_paper_release(struct gf_paper *p)
{
	size_t i;

	for (i = 0; i < p->ninputs; i++) {
		free(p->inputs[i].name);
		free(p->inputs[i].where);
	}
	for (i = 0; i < p->ntables; i++)
		release_table(&p->tables[i]);
	free_strings(p->not_given, p->nnot_given);
	free(p->inputs);
	free(p->tables);
	free(p->file);
	free(p->name);
	free(p->title);
	free(p->authors);
	free(p->venue);
	*p = (struct gf_paper){0};
}

double gf_paper_input(struct gf_paper *p, const char *name)
{
	size_t i;

	for (i = 0; i < p->ninputs; i++)
		if (!strcmp(p->inputs[i].name, name))
			return p->inputs[i].value;
	if (!*p->miss.text)
		gf_error_set(&p->miss, 0, "want an input \"%s\", found none",
			     name);
	return NAN;
}

static double cell(const struct gf_paper_table *t, const char *row,
		   const char *column)
{
	size_t i, k;

	for (i = 0; i < t->nrows; i++)
		for (k = 0; k < t->ncolumns; k++)
			if (!strcmp(t->rows[i].name, row) &&
			    !strcmp(t->columns[k], column))
				return t->rows[i].values[k];
	return NAN;
}

double gf_paper_value(struct gf_paper *p, const char *table, const char *row,
		      const char *column)
{
	double value = NAN;
	size_t i;

	for (i = 0; i < p->ntables; i++)
		if (!strcmp(p->tables[i].name, table))
			value = cell(&p->tables[i], row, column);
	if (isnan(value) && !*p->miss.text)
		gf_error_set(&p->miss, 0,
			     "want a value in \"%s\", row \"%s\", column "
			     "\"%s\", found none",
			     table, row, column);
	return value;
}

int gf_paper_check(const struct gf_paper *p, struct gf_error *err)
{
	if (!*p->miss.text)
		return 0;
	return gf_error_set(err, -EINVAL, "%s: %s", p->file, p->miss.text);
}
