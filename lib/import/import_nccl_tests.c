/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The output of NVIDIA's all_reduce_perf (nccl-tests), or AMD's (rccl-tests):
 * its table, in whatever log it stands, or the JSON of -J. In-place times are
 * taken, for that is how gradients are reduced.
 *
 * The other tests of the collection print the same table, and logs hold several
 * of them. So a table is one run, and lib/import/nccl_run.c judges by all that
 * it says whether it is an all-reduce, and on how many ranks.
 */
#include "import/importers.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/units.h"
#include "import/log_lines.h"
#include "import/nccl_run.h"

enum { MOST_WORDS = 64 };

/* --- a row of the table --------------------------------------------------- */

static bool whole(const char *word)
{
	return *word && !word[strspn(word, "0123456789")];
}

static bool one_of(const char *word, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(word, *names) == 0)
			return true;
	return false;
}

/* size, count, type and redop begin one. */
static bool begins_row(char **w, size_t n)
{
	static const char *const redops[] = {"sum", "prod",   "min",  "max",
					     "avg", "mulsum", "none", NULL};

	return n > 3 && whole(w[0]) && whole(w[1]) &&
	       isalpha((unsigned char)w[2][0]) && one_of(w[3], redops);
}

/* A number as it is printed, and half of its last digit. */
static bool read_number(const char *word, double *value, double *half)
{
	const char *point = strchr(word, '.');
	size_t decimals = point ? strspn(point + 1, "0123456789") : 0;

	*half = strchr(word, 'e') ? NAN : 0.5 * pow(10, -(double)decimals);
	return gf_units_real(word, 0, 1e15, value, NULL) == 0;
}

/* time, algbw, busbw, #wrong; time and #wrong may be N/A. */
static bool read_place(char **w, struct gf_nccl_row *r)
{
	double half;
	size_t n = strlen(w[3]);

	r->time_us = NAN;
	r->wrong = 0;
	if (strcmp(w[0], "N/A") != 0 && !read_number(w[0], &r->time_us, &half))
		return false;
	if (n > 1 && w[3][n - 1] == '*') /* beyond what is allowed */
		w[3][n - 1] = '\0';
	return read_number(w[1], &r->algbw, &r->algbw_half) &&
	       read_number(w[2], &r->busbw, &r->busbw_half) &&
	       (strcmp(w[3], "N/A") == 0 ||
		read_number(w[3], &r->wrong, &half));
}

/* Do size, time and algbw agree? Pieces of two rows do not. */
static bool agrees(const struct gf_nccl_row *r)
{
	double algbw = 1e-3 * (double)r->size_bytes / r->time_us;

	return !(r->time_us > 0) || r->algbw == 0 || isnan(r->algbw_half) ||
	       fabs(algbw - r->algbw) <= 0.1 * algbw + 2 * r->algbw_half;
}

/*
 * size count type redop [root] time algbw busbw #wrong time algbw busbw #wrong,
 * the last four in place; -I puts four columns behind each place.
 */
static bool read_row(const struct gf_nccl_run *run, char **w, size_t n,
		     struct gf_nccl_row *r)
{
	const size_t place = run->per_iteration ? 8 : 4;
	struct gf_nccl_row other = {0};
	long long size = 0, root = -1;
	size_t at = 4;

	if (gf_units_int(w[0], 0, LLONG_MAX, &size, NULL) < 0)
		return false;
	r->size_bytes = (size_t)size;
	snprintf(r->type, sizeof(r->type), "%s %s", w[2], w[3]);
	r->reduces = strcmp(w[3], "none") != 0;
	/* old versions have no column for the root */
	if (n >= 5 + (run->in_place_only ? 1 : 2) * place &&
	    gf_units_int(w[4], -1, INT_MAX, &root, NULL) == 0)
		at++;
	r->root = (int)root;
	if (!run->in_place_only) {
		if (n < at + place || !read_place(w + at, &other))
			return false;
		at += place;
	}
	if (n < at + place || !read_place(w + at, r) || !agrees(r))
		return false;
	r->wrong = fmax(r->wrong, other.wrong);
	return true;
}

/* --- the table ------------------------------------------------------------ */

/* "size count type redop root time algbw busbw #wrong ..." */
static bool is_heading(char **w, size_t n)
{
	size_t i = n > 0 && strcmp(w[0], "#") == 0;

	return n > i + 5 && strcmp(w[i], "size") == 0 &&
	       strcmp(w[i + 1], "count") == 0 && strcmp(w[i + 2], "type") == 0;
}

static void take_heading(struct gf_nccl_run *run, char **w, size_t n)
{
	size_t i, places = 0;

	run->per_iteration = false;
	for (i = 0; i < n; i++) {
		places += strcmp(w[i], "busbw") == 0;
		run->per_iteration |= strcmp(w[i], "i_min") == 0;
	}
	run->in_place_only = places == 1;
}

/* What is said of a run before its rows; false: nothing of it. The signs "#"
 * are gone where a web page has taken them for headings. */
static bool take_remark(struct gf_nccl_log *log, const char *line,
			size_t number)
{
	struct gf_nccl_run *run;
	char name[128];
	int rank, group = 0, fields;
	const char *on;
	long long wrong;
	bool page = *line != '#'; /* other programs name ranks, too */

	line += strspn(line, "# \t");
	if (strncmp(line, "Rank ", 5) && strncmp(line, "nccl-tests ", 11) &&
	    strncmp(line, "Collective ", 11) && strncmp(line, "Out of ", 7) &&
	    strncmp(line, "nThread ", 8)) /* sscanf is slow */
		return false;
	fields = sscanf(line, "Rank %9d Group %9d", &rank, &group);
	if (fields >= 1 && (!page || strstr(line, " Pid "))) {
		run = gf_nccl_begin(log, number);
		gf_nccl_list_rank(run, rank, fields > 1 ? group : 0, 1);
		on = strstr(line, " on ");
		if (on && sscanf(on, " on %127s", name) == 1)
			gf_nccl_list_host(run, name);
		return true;
	}
	if (sscanf(line, "nccl-tests version %127s", name) == 1) {
		free(log->imported->version);
		log->imported->version = gf_xstrdup(name);
		return true;
	}
	if (sscanf(line, "Collective test starting: %127s", name) == 1) {
		run = gf_nccl_begin(log, number);
		gf_nccl_name(run, name);
		return true;
	}
	if (sscanf(line, "Out of bounds values : %18lld", &wrong) == 1) {
		if (log->nruns)
			log->runs[log->nruns - 1].out_of_bounds = wrong;
		return true;
	}
	if (strncmp(line, "nThread ", 8) == 0)
		gf_nccl_begin(log, number);
	return false;
}

static void take_line(struct gf_nccl_log *log, char *line, size_t number)
{
	char *words[MOST_WORDS];
	const bool remark = *line == '#';
	const bool known = take_remark(log, line, number);
	size_t n = gf_import_words(line, words, MOST_WORDS), i;
	struct gf_nccl_row row = {.line = number};
	bool begun = false;

	if (is_heading(words, n)) {
		take_heading(gf_nccl_begin(log, number), words, n);
		return;
	}
	if (remark || known || n == 0)
		return;
	for (i = 0; i < n; i++) {
		if (!begins_row(words + i, n - i))
			continue;
		begun = true;
		if (!log->nruns)
			gf_nccl_begin(log, number);
		if (read_row(&log->runs[log->nruns - 1], words + i, n - i,
			     &row)) {
			gf_nccl_add(log, &row);
			return;
		}
	}
	gf_imported_leave(log->imported,
			  begun ? "broken rows" : "lines that are no rows",
			  number);
}

static int read_table(const struct gf_import *in, struct gf_nccl_log *runs)
{
	struct gf_log log = {.at = in->text};
	char *line;

	while ((line = gf_log_next(&log))) {
		gf_nccl_note_told(runs, line);
		take_line(runs, line, log.line);
	}
	gf_log_release(&log);
	return 0;
}

/* --- -J ------------------------------------------------------------------- */

/* A number that may be missing, null or "nan". */
static double number_of(struct gf_json_at *at, const char *key)
{
	double value;

	return gf_json_real(at, key, 0, 1e15, &value, NULL) < 0 ? NAN : value;
}

static int read_result(struct gf_json_at *results, size_t i,
		       struct gf_nccl_log *log, struct gf_error *err)
{
	struct gf_json_at at = {0}, place = {0};
	struct gf_nccl_row row = {.line = i + 1, .root = -1, .reduces = true};
	char *redop = NULL, *type = NULL, *root = NULL;
	int rc = gf_json_item_object(results, i, &at, err);

	if (rc == 0)
		rc = gf_json_size(&at, "size", 0, SIZE_MAX / 2, &row.size_bytes,
				  err);
	if (rc == 0)
		rc = gf_json_object(&at,
				    gf_json_has(&at, "in_place")
					    ? "in_place"
					    : "out_of_place",
				    &place, err);
	if (rc == 0) {
		gf_json_string(&at, "redop", &redop, NULL);
		gf_json_string(&at, "type", &type, NULL);
		gf_json_int(&at, "root", -1, INT_MAX, &row.root, NULL);
		if (gf_json_string(&at, "root", &root, NULL) == 0)
			row.root = atoi(root);
		row.reduces = !redop || strcmp(redop, "none") != 0;
		snprintf(row.type, sizeof(row.type), "%s %s", type ? type : "",
			 redop ? redop : "");
		row.time_us = number_of(&place, gf_json_has(&place, "cpu_time")
							? "cpu_time"
							: "time");
		row.algbw = number_of(&place, "alg_bw");
		row.busbw = number_of(&place, "bus_bw");
		/* six decimals are printed */
		row.algbw_half = row.busbw_half = 1e-6;
		row.wrong = number_of(&place, "nwrong");
		gf_nccl_add(log, &row);
	}
	free(redop);
	free(type);
	free(root);
	gf_json_leave(&place);
	gf_json_leave(&at);
	return rc;
}

/* One entry for each process, which has all ranks of its threads and GPUs. */
static void read_devices(struct gf_json_at *at, struct gf_nccl_run *run)
{
	struct gf_json_at config = {0}, devices;
	struct gf_json_at *holder = at;
	int threads = 1, gpus = 1, rank, group;
	size_t count, i;

	if (gf_json_object(at, "config", &config, NULL) == 0) {
		gf_json_int(&config, "nthreads", 1, 1 << 12, &threads, NULL);
		gf_json_int(&config, "ngpus", 1, 1 << 12, &gpus, NULL);
		if (gf_json_has(&config, "devices"))
			holder = &config;
	}
	if (gf_json_array(holder, "devices", &devices, &count, NULL) == 0)
		for (i = 0; i < count; i++) {
			struct gf_json_at device = {0};

			rank = (int)i;
			group = 0;
			if (gf_json_item_object(&devices, i, &device, NULL) < 0)
				continue;
			gf_json_int(&device, "rank", 0, 1 << 24, &rank, NULL);
			gf_json_int(&device, "group", INT_MIN, INT_MAX, &group,
				    NULL);
			gf_nccl_list_rank(run, rank, group, threads * gpus);
			gf_json_leave(&device);
		}
	gf_json_leave(&config);
}

static int read_json(const struct gf_import *in, struct gf_nccl_log *log,
		     struct gf_error *err)
{
	struct gf_json *root = NULL;
	struct gf_json_at at = {0}, results, args;
	struct gf_nccl_run *run = gf_nccl_begin(log, 1);
	size_t count = 0, i;
	char *program = NULL;
	int rc = gf_json_parse(in->text, in->size, in->file, &root, err);

	log->imported->unit = "result";
	if (rc == 0)
		rc = gf_json_root(root, in->file, &at, err);
	if (rc == 0 && gf_json_array(&at, "args", &args, &count, NULL) == 0 &&
	    count && gf_json_item_string(&args, 0, &program, NULL) == 0)
		gf_nccl_name(run, program);
	if (rc == 0)
		read_devices(&at, run);
	if (rc == 0)
		rc = gf_json_array(&at, "results", &results, &count, err);
	for (i = 0; i < count && rc == 0; i++)
		rc = read_result(&results, i, log, err);
	free(program);
	gf_json_leave(&at);
	gf_json_free(root);
	return rc;
}

/* --- both ----------------------------------------------------------------- */

static int recognise(const char *text, size_t size)
{
	struct gf_log log = {.at = text};
	char *words[MOST_WORDS], *line;
	const char *first = text + strspn(text, " \t\r\n");
	bool found = strstr(text, "\"alg_bw\"") != NULL;
	size_t n, i;

	(void)size;
	if (*first == '{' || strncmp(first, "[{", 2) == 0)
		return found; /* a trace may have a line of a gigabyte */
	while (!found && (line = gf_log_next(&log))) {
		n = gf_import_words(line, words, MOST_WORDS);
		found = is_heading(words, n);
		for (i = 0; !found && i + 12 <= n; i++)
			found = begins_row(words + i, n - i);
	}
	gf_log_release(&log);
	return found;
}

static int read_nccl_tests(const struct gf_import *in, struct gf_profile *out,
			   struct gf_text *remarks, struct gf_error *err)
{
	struct gf_nccl_log log = {.imported = in->imported};
	int rc = in->text[strspn(in->text, " \t\r\n")] == '{'
			 ? read_json(in, &log, err)
			 : read_table(in, &log);

	if (rc == 0) {
		out->network = gf_xcalloc(1, sizeof(*out->network));
		rc = gf_nccl_finish(&log, in, out->network, remarks, err);
	}
	gf_nccl_release(&log);
	return rc;
}

const struct gf_importer gf_importer_nccl_tests = {
	.name = "nccl-tests",
	.description = "all_reduce_perf's table or its JSON (-J)",
	.recognise = recognise,
	.read = read_nccl_tests,
};
