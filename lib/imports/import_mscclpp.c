/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The JSON Lines of MSCCL++'s tests: a record for each kernel and size, with the time of one
 * collective in us. A library takes the kernel that is fastest for a size, so of several records of
 * one size the fastest counts.
 */
#include "imports/importers.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "imports/nccl_run.h"

#include "base/array.h"
#include "base/heap.h"

struct reading {
	struct gf_nccl_log log;
	int ranks; /* 0: those of the first record */
};

static int recognise(const char *text)
{
	return strstr(text, "\"algBw\"") && strstr(text, "\"ranksPerNode\"");
}

static int read_record(void *ctx, struct gf_json_at *at, size_t line, struct gf_error *err)
{
	struct reading *r = ctx;
	struct gf_nccl_row row = {.line = line, .root = -1, .reduces = true};
	GF_FREED char *name = NULL;
	const char *left = NULL;
	int ranks = 0, rc = gf_json_string(at, "name", &name, err);

	if (rc == 0 && strcasecmp(name, "allreduce") != 0)
		left = "records of other collectives";
	if (rc == 0 && !left)
		rc = gf_json_int(at, "ranks", 1, INT_MAX, &ranks, err);
	if (rc == 0 && !left && r->ranks && r->ranks != ranks)
		left = "all-reduces of other numbers of ranks";
	if (left)
		gf_imported_leave(r->log.imported, left, line);
	if (rc || left)
		return rc;
	if (!r->log.nruns)
		gf_nccl_list_rank(gf_nccl_begin(&r->log, line), 0, 0, ranks);
	r->ranks = ranks;
	rc = gf_json_size(at, "size", 0, SIZE_MAX / 2, &row.size_bytes, err);
	rc = rc ?: gf_json_real(at, "time", 0, 1e15, &row.time_us, err);
	/* the bandwidths say no more, and are rounded as anybody likes */
	row.algbw = row.busbw = NAN;
	if (rc == 0)
		gf_nccl_add(&r->log, &row);
	return rc;
}

GF_ORDER(by_time, struct gf_nccl_row, GF_BY(x->time_us, y->time_us))

static int read_mscclpp(const struct gf_import *in, struct gf_profile *out, struct gf_text *remarks,
			struct gf_error *err)
{
	struct reading r = {
		.log = {.imported = in->imported, .library = "MSCCL++"},
		.ranks = in->ranks,
	};
	int rc = gf_import_records(in, read_record, &r, err);

	if (r.log.nrows)
		qsort(r.log.rows, r.log.nrows, sizeof(*r.log.rows), by_time);
	rc = rc ?: gf_nccl_finish(&r.log, in, out, remarks, err);
	gf_nccl_release(&r.log);
	return rc;
}

/* MANUAL
 * the JSON Lines of MSCCL++'s tests; the fastest kernel for a size becomes the cost of the
 * algorithm
 * .Cm library .
 * Records of other numbers of ranks than
 * .Fl -ranks ,
 * or than the first, are left out. */
const struct gf_importer gf_importer_mscclpp = {
	.name = "mscclpp",
	.description = "the JSON Lines of MSCCL++'s tests",
	.place = 70,
	.recognise = recognise,
	.read = read_mscclpp,
};
