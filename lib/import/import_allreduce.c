/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The output of gf-allreduce: its table or its JSON Lines (--json). Times in
 * place are taken, for that is how gradients are reduced.
 * Every algorithm becomes an entry of its own, with its factors and stages.
 * Rows of codecs, of sparse sets, of several messages at once and of a whole
 * plan say nothing about one dense message, and are left out.
 */
#include "import/importers.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/log_lines.h"
#include "base/units.h"
#include "doc/algorithm_traits.h"
#include "import/readings.h"
#include "import/columns.h"
#include "json/json.h"

/* --- rows for programs ---------------------------------------------------- */

/* A key of JSON Lines. */
static const char record_has[] = "busbw_bytes_per_s";

/* The caller frees; "" where it is absent or empty. */
static char *word_of(struct gf_json_at *at, const char *name)
{
	char *word = NULL;

	gf_json_string(at, name, &word, NULL);
	return word ? word : gf_xstrdup("");
}

static bool is(struct gf_json_at *at, const char *name, const char *want)
{
	char *word = word_of(at, name);
	bool same = strcmp(word, want) == 0;

	free(word);
	return same;
}

/* A codec of its own is what the elements are not. */
static bool plain_numbers(struct gf_json_at *at)
{
	char *codec = word_of(at, "codec");
	bool plain = is(at, "dtype", codec);

	free(codec);
	return plain;
}

/* 0: not known, for hosts differ. */
static int hosts_of(int ranks, int per_host)
{
	return per_host && ranks % per_host == 0 ? ranks / per_host : 0;
}

static int read_record(void *ctx, struct gf_json_at *at, size_t line,
		       struct gf_error *err)
{
	struct gf_readings *all = ctx;
	int ranks, lanes, rc;
	double size, time, density;
	double wrong = 0, p25 = 0, p75 = 0;
	char *algorithm, *factors, *stages, *both, *variant, *library;
	int per_host = 0;
	struct gf_reading r;

	if (!gf_json_has(at, record_has)) {
		gf_imported_leave(all->imported, "records of other programs",
				  line);
		return 0;
	}
	rc = gf_json_int(at, "ranks", 1, INT_MAX, &ranks, err);
	if (!is(at, "placement", "in_place"))
		return rc;
	if (rc == 0)
		rc = gf_json_real(at, "size_bytes", 0, 0x1p62, &size, err);
	if (rc == 0)
		rc = gf_json_real(at, "time_s", 0, 1e12, &time, err);
	if (rc == 0)
		rc = gf_json_real(at, "density", 0, 1, &density, err);
	if (rc == 0)
		rc = gf_json_int(at, "lanes", 1, INT_MAX, &lanes, err);
	if (rc)
		return rc;
	/* null, or nothing, where nothing was checked */
	gf_json_real(at, "wrong", 0, DBL_MAX, &wrong, NULL);
	gf_json_real(at, "p25_s", 0, 1e12, &p25, NULL);
	gf_json_real(at, "p75_s", 0, 1e12, &p75, NULL);
	gf_json_int(at, "ranks_per_host", 1, INT_MAX, &per_host, NULL);
	algorithm = word_of(at, "chosen");
	variant = word_of(at, "variant");
	library = word_of(at, "library");
	factors = word_of(at, "factors");
	stages = word_of(at, "stages");
	both = gf_xasprintf("%s%s%s", factors, stages[0] ? ":" : "", stages);
	r = (struct gf_reading){
		.ranks = ranks,
		.size_bytes = (size_t)size,
		.time_s = time,
		.spread_s = p75 - p25,
		.algorithm = algorithm,
		.factors = both,
		.variant = variant[0] ? variant : NULL,
		.library = library,
		.hosts = hosts_of(ranks, per_host),
		.dense = density == 1 && lanes == 1 && plain_numbers(at) &&
			 !is(at, "algorithm", "plan"),
		.wrong = wrong,
		.place = line,
	};
	if (!algorithm[0])
		rc = gf_json_refuse(at, "chosen", err,
				    "want an algorithm, got none");
	else
		rc = gf_readings_take(all, &r, err);
	free(algorithm);
	free(factors);
	free(stages);
	free(both);
	free(variant);
	free(library);
	return rc;
}

/* --- the table ------------------------------------------------------------ */

struct table {
	struct gf_readings *all;
	struct gf_columns columns;
	int ranks, per_host;
	char *library;           /* that is told; owned */
	bool coded, wired, many; /* a codec, a column of bytes on the wire,
				    several messages at once */
};

static void read_remark(struct table *t, char *line)
{
	int number, used = 0;

	/* at most 9 digits: an int */
	if (sscanf(line, "# %9d rank%n", &number, &used) == 1 && used > 0) {
		t->ranks = number;
		sscanf(line + used, "%*[s,] %9d on this host", &t->per_host);
	}
	if (strncmp(line, "# library ", 10) == 0 && !t->library)
		t->library = gf_xstrdup(line + 10);
	used = 0;
	t->coded |= strncmp(line, "# codec ", 8) == 0;
	sscanf(line, "# %d messages of that size at once%n", &number, &used);
	t->many |= used > 0;
	if (!strstr(line, " algorithm ") || !strstr(line, "algbw"))
		return;
	gf_columns_head(&t->columns, line);
	t->wired = gf_columns_cell(&t->columns, t->columns.names, "wire");
	if (!gf_columns_cell(&t->columns, t->columns.names, "size") ||
	    !gf_columns_cell(&t->columns, t->columns.names, "time"))
		gf_columns_release(&t->columns); /* another program's */
}

static int take_row(struct table *t, char **cells, size_t line,
		    struct gf_error *err)
{
	struct gf_reading r = {.ranks = t->ranks, .place = line};
	const char *label = gf_columns_cell(&t->columns, cells, "algorithm"),
		   *wrong;
	double size = 0, time_us = 0;
	char *colon;

	gf_units_real(gf_columns_cell(&t->columns, cells, "size"), 0, 0x1p62,
		      &size, NULL);
	gf_units_real(gf_columns_cell(&t->columns, cells, "time"), 0, 1e15,
		      &time_us, NULL);
	wrong = gf_columns_cell(&t->columns, cells, "#wrong");
	if (wrong)
		gf_units_real(wrong, 0, DBL_MAX, &r.wrong, NULL);
	if (strncmp(label, "auto:", 5) == 0)
		label += 5;
	colon = strchr(label, ':');
	if (colon)
		*colon = '\0';
	r.size_bytes = (size_t)size;
	r.time_s = 1e-6 * time_us;
	r.algorithm = label;
	if (colon && gf_algorithm_has(label, GF_ALGORITHM_TOLD)) {
		r.variant = colon + 1;
		r.library = t->library;
		colon = NULL;
	}
	r.hosts = hosts_of(t->ranks, t->per_host);
	r.factors = colon ? colon + 1 : "";
	/* a plan's table does not say which of its messages have a codec */
	t->coded |= t->wired && strcmp(label, "plan") == 0;
	r.dense = !t->coded && !t->many && strcmp(label, "plan") != 0;
	return gf_readings_take(t->all, &r, err);
}

static int read_row(struct table *t, char *line, size_t number,
		    struct gf_error *err)
{
	char *words[2 * GF_COLUMNS_MOST], **cells;
	const size_t n = gf_log_words(line, words, 2 * GF_COLUMNS_MOST);
	const int found = gf_columns_row(&t->columns, words, n, &cells);

	if (found > 0)
		return take_row(t, cells, number, err);
	if (n > 0)
		gf_imported_leave(t->all->imported,
				  found < 0 ? "broken rows"
					    : "lines that are no rows",
				  number);
	return 0;
}

static int read_table(const struct gf_import *in, struct gf_readings *all,
		      struct gf_error *err)
{
	struct gf_log log = {.at = in->text};
	struct table t = {.all = all};
	char *line;
	int rc = 0;

	while (rc == 0 && (line = gf_log_next(&log)))
		if (*line == '#')
			read_remark(&t, line);
		else
			rc = read_row(&t, line, log.line, err);
	if (rc < 0)
		gf_error_prefix(err, "%s:%zu", in->file, log.line);
	gf_columns_release(&t.columns);
	free(t.library);
	gf_log_release(&log);
	return rc;
}

/* --- both ------------------------------------------------------------ */

static int recognise(const char *text)
{
	return strstr(text, record_has) ||
	       gf_log_has_line(text, " algorithm ", "algbw");
}

static int read_allreduce(const struct gf_import *in, struct gf_profile *out,
			  struct gf_text *remarks, struct gf_error *err)
{
	struct gf_readings all = {.imported = in->imported};
	int rc = strstr(in->text, record_has)
			 ? gf_import_records(in, read_record, &all, err)
			 : read_table(in, &all, err);

	if (rc == 0)
		rc = gf_readings_finish(&all, in, out, remarks, err);
	gf_readings_release(&all);
	return rc;
}

const struct gf_importer gf_importer_allreduce = {
	.name = "gf-allreduce",
	.description = "the table or JSON of gf-allreduce",
	.recognise = recognise,
	.read = read_allreduce,
};
