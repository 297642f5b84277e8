/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The output of gf-allreduce: its table, its JSON Lines (--json) or its CSV
 * (--csv). Times in place are taken, for that is how gradients are reduced.
 * Every algorithm becomes an entry of its own, with its factors and stages.
 * Rows of codecs, of sparse sets, of several messages at once and of a whole
 * plan say nothing about one dense message, and are left out.
 */
#include "import/importers.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/units.h"
#include "import/csv.h"
#include "import/readings.h"
#include "json/json.h"

/* --- rows for programs ---------------------------------------------------- */

/* A row of either kind: the cursor on an object, or a line of the CSV. */
struct fields {
	struct gf_json_at *at;
	const struct gf_csv *csv;
	size_t row;
};

static int real_of(const struct fields *f, const char *name, double low,
		   double high, double *out, struct gf_error *err)
{
	int column, rc;

	if (f->at)
		return gf_json_real(f->at, name, low, high, out, err);
	rc = gf_csv_need(f->csv, name, &column, err);
	if (rc < 0)
		return rc;
	rc = gf_units_real(gf_csv_field(f->csv, f->row, column), low, high, out,
			   err);
	if (rc < 0)
		gf_csv_place(f->csv, f->row, column, err);
	return rc;
}

/* The same of whole numbers. */
static int count_of(const struct fields *f, const char *name, int *out,
		    struct gf_error *err)
{
	long long value = 0;
	int column, rc;

	if (f->at)
		return gf_json_int(f->at, name, 1, INT_MAX, out, err);
	rc = gf_csv_need(f->csv, name, &column, err);
	if (rc < 0)
		return rc;
	rc = gf_units_int(gf_csv_field(f->csv, f->row, column), 1, INT_MAX,
			  &value, err);
	if (rc < 0)
		gf_csv_place(f->csv, f->row, column, err);
	*out = (int)value;
	return rc;
}

/* Names the place of a field that is there but empty. */
static int refuse_empty(const struct fields *f, const char *name,
			struct gf_error *err)
{
	int column, rc;

	if (f->at)
		return gf_json_refuse(f->at, name, err,
				      "want an algorithm, got none");
	rc = gf_csv_need(f->csv, name, &column, err);
	if (rc < 0)
		return rc;
	rc = gf_error_set(err, -EINVAL, "want an algorithm, got none");
	gf_csv_place(f->csv, f->row, column, err);
	return rc;
}

/* The caller frees; "" where it is absent or empty. */
static char *word_of(const struct fields *f, const char *name)
{
	char *word = NULL;
	int column;

	if (f->at) {
		gf_json_string(f->at, name, &word, NULL);
		return word ? word : gf_xstrdup("");
	}
	column = gf_csv_column(f->csv, name);
	return gf_xstrdup(column < 0 ? ""
				     : gf_csv_field(f->csv, f->row, column));
}

static bool is(const struct fields *f, const char *name, const char *want)
{
	char *word = word_of(f, name);
	bool same = strcmp(word, want) == 0;

	free(word);
	return same;
}

/* A codec of its own is what the elements are not. */
static bool plain_numbers(const struct fields *f)
{
	char *codec = word_of(f, "codec");
	bool plain = is(f, "dtype", codec);

	free(codec);
	return plain;
}

static int read_fields(const struct fields *f, struct gf_readings *all,
		       struct gf_error *err)
{
	int ranks, lanes, rc = count_of(f, "ranks", &ranks, err);
	double size, time, density;
	char *algorithm, *factors, *stages, *both;
	struct gf_reading r;

	if (!is(f, "placement", "in_place"))
		return rc;
	if (rc == 0)
		rc = real_of(f, "size_bytes", 0, 0x1p62, &size, err);
	if (rc == 0)
		rc = real_of(f, "time_s", 0, 1e12, &time, err);
	if (rc == 0)
		rc = real_of(f, "density", 0, 1, &density, err);
	if (rc == 0)
		rc = count_of(f, "lanes", &lanes, err);
	if (rc)
		return rc;
	algorithm = word_of(f, "chosen");
	factors = word_of(f, "factors");
	stages = word_of(f, "stages");
	both = gf_xasprintf("%s%s%s", factors, stages[0] ? ":" : "", stages);
	r = (struct gf_reading){ranks,
				(size_t)size,
				time,
				algorithm,
				both,
				density == 1 && lanes == 1 &&
					plain_numbers(f) &&
					!is(f, "algorithm", "plan")};
	if (!algorithm[0])
		rc = refuse_empty(f, "chosen", err);
	else
		rc = gf_readings_take(all, &r, err);
	free(algorithm);
	free(factors);
	free(stages);
	free(both);
	return rc;
}

static int read_csv(const struct gf_import *in, struct gf_readings *all,
		    struct gf_error *err)
{
	struct gf_csv csv;
	struct fields f = {.csv = &csv};
	int rc = gf_csv_read(in->text, in->size, in->file, &csv, err);

	if (rc < 0)
		return rc;
	for (f.row = 0; f.row < csv.nrows && rc == 0; f.row++)
		rc = read_fields(&f, all, err);
	gf_csv_release(&csv);
	return rc;
}

static int read_json(const struct gf_import *in, struct gf_readings *all,
		     struct gf_error *err)
{
	struct gf_json *root = NULL;
	size_t used = 0;
	int rc;

	do {
		struct gf_json_at at = {0};
		struct fields f = {.at = &at};

		rc = gf_json_parse_next(in->text, in->size, in->file, &used,
					&root, err);
		if (rc < 0 || !root)
			return rc;
		rc = gf_json_root(root, in->file, &at, err);
		if (rc == 0)
			rc = read_fields(&f, all, err);
		gf_json_leave(&at);
		gf_json_free(root);
	} while (rc == 0);
	return rc;
}

/* --- the table ------------------------------------------------------------ */

enum { COLUMNS_MOST = 32 };

struct table {
	struct gf_readings *all;
	char *names[COLUMNS_MOST]; /* of the heading that stands, or none */
	size_t ncolumns;
	int ranks;
	bool coded, wired, many; /* a codec, a column of bytes on the wire,
				    several messages at once */
};

/* The last column of that name: what is in place stands right. */
static const char *cell(const struct table *t, char **words, const char *name)
{
	size_t i;

	for (i = t->ncolumns; i-- > 0;)
		if (strcmp(t->names[i], name) == 0)
			return words[i];
	return NULL;
}

static void read_remark(struct table *t, char *line)
{
	char *words[COLUMNS_MOST];
	int number, used = 0;
	size_t n;

	/* at most 9 digits: an int */
	if (sscanf(line, "# %9d rank%n", &number, &used) == 1 && used > 0)
		t->ranks = number;
	used = 0;
	t->coded |= strncmp(line, "# codec ", 8) == 0;
	sscanf(line, "# %d messages of that size at once%n", &number, &used);
	t->many |= used > 0;
	if (!strstr(line, " algorithm ") || !strstr(line, "algbw"))
		return;
	n = gf_import_words(line + 1, words, COLUMNS_MOST);
	memcpy(t->names, words, n * sizeof(*words));
	t->ncolumns = n;
	if (!cell(t, words, "size") || !cell(t, words, "time") ||
	    !cell(t, words, "algorithm"))
		t->ncolumns = 0; /* another program's heading */
	t->wired = cell(t, words, "wire") != NULL;
}

static int read_row(struct table *t, char *line, struct gf_error *err)
{
	char *words[COLUMNS_MOST], *colon;
	size_t n = gf_import_words(line, words, COLUMNS_MOST);
	struct gf_reading r = {.ranks = t->ranks};
	double size, time_us;
	const char *label;
	int rc;

	if (n == 0)
		return 0;
	if (!t->ncolumns || n != t->ncolumns)
		return gf_error_set(err, -EINVAL, "want %zu columns, got %zu",
				    t->ncolumns, n);
	rc = gf_units_real(cell(t, words, "size"), 0, 0x1p62, &size, err);
	if (rc == 0)
		rc = gf_units_real(cell(t, words, "time"), 0, 1e15, &time_us,
				   err);
	if (rc)
		return rc;
	label = cell(t, words, "algorithm");
	if (strncmp(label, "auto:", 5) == 0)
		label += 5;
	colon = strchr(label, ':');
	if (colon)
		*colon = '\0';
	r.size_bytes = (size_t)size;
	r.time_s = 1e-6 * time_us;
	r.algorithm = label;
	r.factors = colon ? colon + 1 : "";
	/* a plan's table does not say which of its messages have a codec */
	t->coded |= t->wired && strcmp(label, "plan") == 0;
	r.dense = !t->coded && !t->many && strcmp(label, "plan") != 0;
	return gf_readings_take(t->all, &r, err);
}

static int read_line(void *ctx, char *line, struct gf_error *err)
{
	if (*line != '#')
		return read_row(ctx, line, err);
	read_remark(ctx, line);
	return 0;
}

static int read_table(const struct gf_import *in, struct gf_readings *all,
		      struct gf_error *err)
{
	struct table t = {.all = all};

	return gf_import_lines(in, read_line, &t, err);
}

/* --- all three ------------------------------------------------------------ */

/* A key of JSON Lines, and a column of CSV. */
static const char rows_have[] = "busbw_bytes_per_s";

static int recognise(const char *text, size_t size)
{
	(void)size;
	return strstr(text, rows_have) ||
	       (strstr(text, "algbw") && strstr(text, " algorithm "));
}

static int read_allreduce(const struct gf_import *in, struct gf_profile *out,
			  struct gf_text *remarks, struct gf_error *err)
{
	bool object = in->text[strspn(in->text, " \t\r\n")] == '{';
	bool rows = strstr(in->text, rows_have) != NULL;
	struct gf_readings all = {0};
	int rc = (object ? read_json
		  : rows ? read_csv
			 : read_table)(in, &all, err);

	if (rc == 0) {
		out->network = gf_xcalloc(1, sizeof(*out->network));
		rc = gf_readings_finish(&all, in, out->network, remarks, err);
	}
	gf_readings_release(&all);
	return rc;
}

const struct gf_importer gf_importer_allreduce = {
	.name = "gf-allreduce",
	.description = "the table, JSON or CSV of gf-allreduce",
	.recognise = recognise,
	.read = read_allreduce,
};
