/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The output of NVIDIA's all_reduce_perf, reduce_scatter_perf and all_gather_perf (nccl-tests), or
 * AMD's (rccl-tests): their tables, in whatever log they stand, or the JSON of -J. In-place times
 * are taken, for that is how gradients are reduced.
 *
 * The other tests of the collection print the same table, and logs hold several of them. So a table
 * is one run, and lib/imports/nccl_run.c judges by all that it says whether it is an all-reduce,
 * and on how many ranks.
 */
#include "imports/importers.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "imports/nccl_run.h"

/* --- -J ------------------------------------------------------------------- */

/* A number that may be missing, null or "nan". */
static double number_of(struct gf_json_at *at, const char *key)
{
	double value;

	return gf_json_real(at, key, 0, 1e15, &value, NULL) < 0 ? NAN : value;
}

static int read_result(struct gf_json_at *results, size_t i, struct gf_nccl_log *log,
		       struct gf_error *err)
{
	struct gf_json_at at = {0}, place = {0};
	struct gf_nccl_row row = {.line = i + 1, .root = -1, .reduces = true};
	GF_FREED char *redop = NULL, *type = NULL, *root = NULL;
	int rc = gf_json_object(gf_json_item(results, i), NULL, &at, err);

	rc = rc ?: gf_json_size(&at, "size", 0, SIZE_MAX / 2, &row.size_bytes, err);
	if (rc == 0)
		rc = gf_json_object(&at, gf_json_has(&at, "in_place") ? "in_place" : "out_of_place",
				    &place, err);
	if (rc == 0) {
		gf_json_string(&at, "redop", &redop, NULL);
		gf_json_string(&at, "type", &type, NULL);
		gf_json_int(&at, "root", -1, INT_MAX, &row.root, NULL);
		if (gf_json_string(&at, "root", &root, NULL) == 0)
			row.root = atoi(root);
		row.reduces = !redop || strcmp(redop, "none") != 0;
		snprintf(row.type, sizeof(row.type), "%s %s", type ? type : "", redop ? redop : "");
		row.time_us =
			number_of(&place, gf_json_has(&place, "cpu_time") ? "cpu_time" : "time");
		row.algbw = number_of(&place, "alg_bw");
		row.busbw = number_of(&place, "bus_bw");
		/* six decimals are printed */
		row.algbw_half = row.busbw_half = 1e-6;
		row.wrong = number_of(&place, "nwrong");
		gf_nccl_add(log, &row);
	}
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
			if (gf_json_object(gf_json_item(&devices, i), NULL, &device, NULL) < 0)
				continue;
			gf_json_int(&device, "rank", 0, 1 << 24, &rank, NULL);
			gf_json_int(&device, "group", INT_MIN, INT_MAX, &group, NULL);
			gf_nccl_list_rank(run, rank, group, threads * gpus);
			gf_json_leave(&device);
		}
	gf_json_leave(&config);
}

static int read_json(const struct gf_import *in, struct gf_nccl_log *log, struct gf_error *err)
{
	GF_RELEASED(gf_json_free_at) struct gf_json *root = NULL;
	struct gf_json_at at = {0}, results, args;
	struct gf_nccl_run *run = gf_nccl_begin(log, 1);
	size_t count = 0, i;
	GF_FREED char *program = NULL;
	int rc = gf_json_parse(in->text, in->size, in->file, &root, err);

	log->imported->unit = "result";
	rc = rc ?: gf_json_root(root, in->file, &at, err);
	if (rc == 0 && gf_json_array(&at, "args", &args, &count, NULL) == 0 && count &&
	    gf_json_string(gf_json_item(&args, 0), NULL, &program, NULL) == 0)
		gf_nccl_name(run, program);
	if (rc == 0)
		read_devices(&at, run);
	rc = rc ?: gf_json_array(&at, "results", &results, &count, err);
	for (i = 0; i < count && rc == 0; i++)
		rc = read_result(&results, i, log, err);
	gf_json_leave(&at);
	return rc;
}

/* --- both ----------------------------------------------------------------- */

static int is_json(const char *text)
{
	return strchr("{[", text[strspn(text, " \t\r\n")]) && strstr(text, "\"alg_bw\"");
}

static int read_nccl_tests(const struct gf_import *in, struct gf_profile *out,
			   struct gf_text *remarks, struct gf_error *err)
{
	GF_RELEASED(gf_nccl_release)
	struct gf_nccl_log log = {.imported = in->imported, .library = "NCCL"};
	int rc;

	if (in->text[strspn(in->text, " \t\r\n")] != '{')
		return gf_columns_read(in, out, remarks, err);
	rc = read_json(in, &log, err);
	return rc ?: gf_nccl_finish(&log, in, out, remarks, err);
}

/* size count type redop [root] time algbw busbw #wrong time algbw busbw #wrong, the last four in
 * place; old versions have no root, some options leave out the first four or put more behind
 * each. */
/* MANUAL
 * the table of all_reduce_perf (nccl-tests up to 2.18, rccl-tests), or the JSON of its option
 * .Fl J ;
 * its in-place times become the cost of the algorithm
 * .Cm library .
 * The number of ranks comes from the rows, since an all-reduce of n ranks has a busbw of 2(n-1)/n
 * times the algbw, and from the list of ranks as far as that agrees.
 * .Fl -ranks
 * overrides both.
 * A table of another collective is refused, by its heading, its
 * .Va redop ,
 * its root or its busbw; one of reduce_scatter_perf or all_gather_perf, too, since a profile has no
 * line for them.
 * Of several tables in one log the first of an all-reduce is taken.
 * If the log also says what NCCL was told before a table, every table of an all-reduce becomes a
 * variant
 * .Po
 * .Ql ring.simple.8 ,
 * or
 * .Ql default
 * where nothing was told
 * .Pc :
 * .Ev NCCL_ALGO , NCCL_PROTO
 * and one of
 * .Ev NCCL_MAX_NCHANNELS , NCCL_MAX_CTAS
 * and their minima, as a shell shows them
 * .Pq Ql NCCL_ALGO=Ring
 * or as NCCL repeats them with
 * .Ev NCCL_DEBUG Ns =INFO .
 * Wrong results
 * .Pq #wrong
 * give a warning. */
const struct gf_importer gf_importer_nccl_tests = {
	.name = "nccl-tests",
	.description = "all_reduce_perf's table or its JSON (-J)",
	.place = 30,
	.recognise = is_json,
	.read = read_nccl_tests,
	.table =
		&(const struct gf_columns_format){
			.columns = "size count type redop root time algbw busbw #wrong time algbw "
				   "busbw #wrong",
			.heading = "size count type busbw",
			.size = "size",
			.time = "time",
			.library = "NCCL",
			.told = true,
		},
};
