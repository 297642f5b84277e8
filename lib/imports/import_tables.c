/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables of all-reduces: a row here for each program. A table is one run, and a log may hold
 * several, also of other collectives: lib/imports/nccl_run.c judges by all that a run says whether
 * it is an all-reduce, and on how many ranks.
 */
#include "imports/importers.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "base/log_lines.h"
#include "base/registry.h"
#include "base/units.h"
#include "imports/nccl_run.h"

/*
 * Tables of benchmarks, as they stand in logs: the words of a heading name the columns, and a row
 * has a word for each, maybe among words of other programs. Zero-initialise; the owner calls
 * release.
 */
enum { MOST_COLUMNS = 64 };

struct columns {
	char *names[MOST_COLUMNS]; /* of the heading that stands; owned */
	size_t ncolumns;           /* 0: there is none */
};

static void release(struct columns *t)
{
	while (t->ncolumns)
		free(t->names[--t->ncolumns]);
}

/* Takes the words of a line as the heading that stands. */
static void take_head(struct columns *t, const char *line)
{
	char *copy = gf_xstrdup(line), *words[MOST_COLUMNS];
	const size_t n = gf_log_words(copy, words, MOST_COLUMNS);

	release(t);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(words[i], "timestamp") == 0) /* is two words */
			break;
		if (strcmp(words[i], "#") != 0 && strcmp(words[i], "|") != 0)
			t->names[t->ncolumns++] = gf_xstrdup(words[i]);
	}
	free(copy);
}

static bool is_text(const char *name)
{
	static const char *const texts[] = {"type", "redop", NULL};

	return gf_names_index(texts, name) >= 0;
}

/* "N/A", "1.5", "7*" beyond what is allowed, "32KiB", "0.48GBps" */
static bool suits(const char *name, const char *word)
{
	char *end;

	if (is_text(name))
		return isalpha((unsigned char)*word);
	if (strcmp(word, "N/A") == 0)
		return true;
	strtod(word, &end);
	if (end == word)
		return false;
	while (isalpha((unsigned char)*end) || *end == '*')
		end++;
	return !*end;
}

/* How many columns the words suit, from the first on. */
static size_t suited(const struct columns *t, char **words, size_t nwords)
{
	size_t i;

	for (i = 0; i < t->ncolumns && i < nwords; i++)
		if (!suits(t->names[i], words[i]))
			break;
	return i;
}

/* What stands before the times begins a row. */
static size_t keys(const struct columns *t)
{
	size_t i = 1;

	while (i < t->ncolumns && i < 4 && !strstr(t->names[i], "time") &&
	       !strstr(t->names[i], "t_min") && strcmp(t->names[i], "Avg") != 0)
		i++;
	return i;
}

/* 1 and the cells of a row among a line's words; -EINVAL: the line begins as a row does, and is
 * none; 0: it does not. */
static int find_row(const struct columns *t, char **words, size_t nwords, char ***cells)
{
	bool texts = false;

	for (size_t i = 0; i < t->ncolumns; i++)
		texts |= is_text(t->names[i]);
	/* numbers alone are a row where a line begins */
	for (size_t i = 0; t->ncolumns && i + t->ncolumns <= nwords && (texts || !i); i++)
		if (suited(t, words + i, nwords - i) == t->ncolumns) {
			*cells = words + i;
			return 1;
		}
	return t->ncolumns && suited(t, words, nwords) >= keys(t) ? -EINVAL : 0;
}

/* The cell below the last column of that name: what is in place stands right. NULL: there is
 * none. */
static const char *cell_of(const struct columns *t, char **cells, const char *name)
{
	for (size_t i = t->ncolumns; i-- > 0;)
		if (strcmp(t->names[i], name) == 0)
			return cells[i];
	return NULL;
}

struct reading {
	const struct gf_columns_format *format;
	struct columns table;
	struct gf_nccl_log *log;
};

/* --- headings ------------------------------------------------------------- */

static bool is_heading(const struct gf_columns_format *f, const char *line)
{
	char *copy = gf_xstrdup(f->heading), *wants[8];
	struct columns t = {0};
	size_t n = gf_log_words(copy, wants, 8), i;
	bool is;

	take_head(&t, line);
	is = t.ncolumns && strcmp(t.names[0], wants[0]) == 0;
	for (i = 1; i < n && is; i++)
		is = cell_of(&t, t.names, wants[i]);
	release(&t);
	free(copy);
	return is;
}

/* "# OSU MPI Allreduce Latency Test v7.5", "# Benchmarking: allreduce" */
static void take_title(struct reading *r, const char *line, size_t number)
{
	const struct gf_columns_format *f = r->format;
	struct gf_nccl_run *run = gf_nccl_begin(r->log, number);
	struct gf_imported *imported = r->log->imported;
	const char *version = strstr(line, " v");

	line += strlen(f->title);
	snprintf(run->program, sizeof(run->program), "%.63s", line + strspn(line, " :"));
	run->sweeps = f->ranks;
	if (version && !imported->version)
		imported->version = gf_xstrdup(version + 2);
	release(&r->table);
	if (f->columns)
		take_head(&r->table, f->columns);
}

/* "mpirun -np 2 ... osu_allreduce"; 0: the line is no such command. */
static int ranks_of_command(const char *program, char **words, size_t n)
{
	long long ranks = 0;

	for (size_t i = 0; i < n; i++) {
		const char *slash = strrchr(words[i], '/');

		if (strncmp(slash ? slash + 1 : words[i], program, strlen(program)) == 0)
			return (int)ranks;
		if (i + 1 < n && (strcmp(words[i], "-n") == 0 || strcmp(words[i], "-np") == 0))
			gf_units_int(words[i + 1], 1, INT_MAX, &ranks, NULL);
	}
	return 0;
}

/* "# #processes = 4", "all_reduce over 8 ranks"; 0: it does not say it. */
static int ranks_of_line(const char *before, const char *line)
{
	const char *at = before ? strstr(line, before) : NULL;
	long ranks;

	if (!at)
		return 0;
	at += strlen(before);
	ranks = strtol(at + strspn(at, " =:"), NULL, 10);
	return ranks > 0 && ranks < INT_MAX ? (int)ranks : 0;
}

static void take_ranks(struct gf_nccl_log *log, int ranks, size_t number)
{
	struct gf_nccl_run *run = gf_nccl_begin(log, number);

	run->listed = run->end = 0;
	gf_nccl_list_rank(run, 0, 0, ranks);
}

/* What stands before rows; false: nothing of it. */
static bool take_remark(struct reading *r, char *line, size_t number)
{
	const struct gf_columns_format *f = r->format;
	const int ranks = ranks_of_line(f->ranks, line);

	if (ranks)
		take_ranks(r->log, ranks, number);
	else if (f->title && strncmp(line, f->title, strlen(f->title)) == 0)
		take_title(r, line, number);
	else if (f->heading && is_heading(f, line)) {
		gf_nccl_begin(r->log, number);
		take_head(&r->table, line);
	} else {
		return f->told && gf_nccl_note_run(r->log, line, number);
	}
	return true;
}

/* --- rows ----------------------------------------------------------------- */

/* A number as it is printed, and half of its last digit; NAN: there is none. */
static double number_in(const char *word, double *half)
{
	const char *point = word ? strchr(word, '.') : NULL;
	double value = word ? strtod(word, NULL) : NAN;

	*half = 0.5 * pow(10, point ? -(double)strspn(point + 1, "0123456789") : 0);
	if (!word || strchr(word, 'e'))
		*half = NAN;
	return word && isdigit((unsigned char)*word) && value <= 1e15 ? value : NAN;
}

/* The most that is wrong in any place. */
static double wrong_in(const struct columns *t, char **cells)
{
	double most = 0, half;

	for (size_t i = 0; i < t->ncolumns; i++)
		if (strcmp(t->names[i], "#wrong") == 0 || strcmp(t->names[i], "error") == 0)
			most = fmax(most, number_in(cells[i], &half));
	return most;
}

/* Do size, time and algbw agree? Pieces of two rows do not. */
static bool agrees(const struct gf_nccl_row *r)
{
	const double algbw = 1e-3 * (double)r->size_bytes / r->time_us;

	return !(r->time_us > 0) || !(r->algbw > 0) || isnan(r->algbw_half) ||
	       fabs(algbw - r->algbw) <= 0.1 * algbw + 2 * r->algbw_half;
}

/* Fills a zeroed row but for its line; -EINVAL: its figures are none. */
static int read_cells(const struct reading *r, char **cells, struct gf_nccl_row *row)
{
	const struct columns *t = &r->table;
	const char *type = cell_of(t, cells, "type");
	const char *redop = cell_of(t, cells, "redop");
	const char *root = cell_of(t, cells, "root");
	const char *size = cell_of(t, cells, r->format->size);
	double half;

	if (!size || gf_units_size(size, &row->size_bytes, NULL) < 0)
		return -EINVAL;
	row->algbw = number_in(cell_of(t, cells, "algbw"), &row->algbw_half);
	row->busbw = number_in(cell_of(t, cells, "busbw"), &row->busbw_half);
	row->time_us = r->format->time ? number_in(cell_of(t, cells, r->format->time), &half)
				       : 1e-3 * (double)row->size_bytes / row->algbw;
	row->wrong = wrong_in(t, cells);
	row->root = root ? atoi(root) : -1;
	row->reduces = !redop || strcmp(redop, "none") != 0;
	snprintf(row->type, sizeof(row->type), "%s %s", type ? type : "", redop ? redop : "");
	return agrees(row) ? 0 : -EINVAL;
}

/* Cuts a line into words, without the rules of a page's table. */
static size_t cut(char *line, char **words)
{
	size_t n = gf_log_words(line, words, 2 * MOST_COLUMNS), i, kept = 0;

	for (i = 0; i < n; i++)
		if (words[i][strspn(words[i], "|-:")])
			words[kept++] = words[i];
	return kept;
}

static void take_row(struct reading *r, char *line, size_t number)
{
	const struct gf_columns_format *f = r->format;
	char *words[2 * MOST_COLUMNS], **cells;
	const size_t n = cut(line, words);
	struct gf_nccl_row row = {.line = number};
	const int found = n ? find_row(&r->table, words, n, &cells) : 0;
	const int ranks = n && !found && f->program ? ranks_of_command(f->program, words, n) : 0;
	const char *left = NULL;

	if (ranks)
		take_ranks(r->log, ranks, number);
	if (n == 0 || ranks)
		return;
	if (found == 0)
		left = "lines that are no rows";
	else if (found < 0 || read_cells(r, cells, &row) < 0)
		left = "broken rows";
	else if (!f->time && !(row.algbw_half <= 0.05 * row.algbw))
		left = "rows whose bandwidth has too few digits";
	if (left) {
		gf_imported_leave(r->log->imported, left, number);
		return;
	}
	if (strcmp(words[n - 1], "Fail") == 0)
		row.wrong = 1;
	if (!r->log->nruns)
		gf_nccl_begin(r->log, number);
	gf_nccl_add(r->log, &row);
}

/* --- the formats ---------------------------------------------------------- */

int gf_columns_recognise(const struct gf_columns_format *f, const char *text)
{
	char *words[2 * MOST_COLUMNS], **cells, *line;
	GF_RELEASED(gf_log_release) struct gf_log log = {.at = text};
	struct columns t = {0};
	bool found = false;

	if (!f->heading)
		return gf_log_has_line(text, f->title, " Test");
	if (strchr("{[", text[strspn(text, " \t\r\n")]))
		return 0; /* a trace may have a line of a gigabyte */
	if (f->columns)
		take_head(&t, f->columns);
	while (!found && (line = gf_log_next(&log)))
		found = *line &&
			(is_heading(f, line) ||
			 (t.ncolumns && find_row(&t, words, cut(line, words), &cells) > 0));
	release(&t);
	return found;
}

int gf_columns_read(const struct gf_import *in, struct gf_profile *out, struct gf_text *remarks,
		    struct gf_error *err)
{
	const struct gf_columns_format *f = in->importer->table;
	GF_RELEASED(gf_nccl_release)
	struct gf_nccl_log runs = {.imported = in->imported, .parts = f->parts};
	struct reading r = {.format = f, .log = &runs};
	GF_RELEASED(gf_log_release) struct gf_log log = {.at = in->text};
	char *line;

	snprintf(runs.library, sizeof(runs.library), "%s", f->library);
	if (f->columns && !f->title)
		take_head(&r.table, f->columns);
	while ((line = gf_log_next(&log)))
		if (*line && !take_remark(&r, line, log.line) && *line != '#')
			take_row(&r, line, log.line);
	release(&r.table);
	return gf_nccl_finish(&runs, in, out, remarks, err);
}

/* OSU Micro-Benchmarks; -f, -z and -c put further columns behind the means. */
/* MANUAL
 * the table of osu_allreduce (OSU Micro-Benchmarks 5.4 to 7.5); its mean times become the cost of
 * the algorithm
 * .Cm library .
 * The number of ranks is that of
 * .Fl -ranks ,
 * or of a command
 * .Ql mpirun -np P ... osu_allreduce
 * in the same log. */
const struct gf_importer gf_importer_osu = {
	.name = "osu",
	.description = "the table of osu_allreduce",
	.place = 40,
	.read = gf_columns_read,
	.table =
		&(const struct gf_columns_format){
			.title = "# OSU ",
			.columns = "Size Avg",
			.size = "Size",
			.time = "Avg",
			.program = "osu_",
			.parts = true,
			.library = "Open MPI", /* no other that has variants */
		},
};

/* The time of the slowest rank, as gf-allreduce takes it. oneCCL's benchmark prints the same, with
 * a column of elements. */
/* MANUAL
 * the tables of IMB-MPI1 Allreduce (Intel MPI Benchmarks 2021), or of the benchmark of oneCCL
 * (2021); the times of the slowest rank
 * .Pq t_max
 * become the cost of the algorithm
 * .Cm library .
 * Of the tables of one run that with the most ranks is taken, or with as many as
 * .Fl -ranks
 * says. */
const struct gf_importer gf_importer_imb = {
	.name = "imb",
	.description = "the tables of IMB-MPI1 Allreduce or oneCCL's benchmark",
	.place = 50,
	.read = gf_columns_read,
	.table =
		&(const struct gf_columns_format){
			.title = "# Benchmarking",
			.heading = "#bytes #repetitions t_max[usec]",
			.size = "#bytes",
			.time = "t_max[usec]",
			.ranks = "# #processes",
			.parts = true,
			.library = "Open MPI",
		},
};

/* all_reduce_bench.py of the book Machine Learning Engineering. */
/* MANUAL
 * the table of all_reduce_bench.py, of the book Machine Learning Engineering; a time is the
 * payload over the algbw.
 * The number of ranks comes from the line above the table, or from the busbw as for
 * .Cm nccl-tests . */
const struct gf_importer gf_importer_all_reduce_bench = {
	.name = "all_reduce_bench",
	.description = "the table of all_reduce_bench.py",
	.place = 60,
	.read = gf_columns_read,
	.table =
		&(const struct gf_columns_format){
			.heading = "payload busbw algbw",
			.size = "payload",
			.ranks = "all_reduce over",
			.library = "NCCL",
		},
};
