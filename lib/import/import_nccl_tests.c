/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The output of NVIDIA's all_reduce_perf (nccl-tests): its table, or the JSON
 * of -J. In-place times are taken, for that is how gradients are reduced. The
 * number of ranks is the number of "# Rank" lines of the table's heading, or
 * told (--ranks).
 */
#include "import/importers.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "json/json.h"

struct points {
	size_t *size_bytes;
	double *time_s;
	size_t nsizes, ntimes, size_capacity, time_capacity;
	int ranks; /* 0: not said */
};

static void add_point(struct points *p, size_t size_bytes, double time_us)
{
	/* nccl-tests prints an empty message, too: that is no transfer */
	if (size_bytes == 0 || !(time_us > 0))
		return;
	*gf_array_push(&p->size_bytes, &p->nsizes, &p->size_capacity) =
		size_bytes;
	*gf_array_push(&p->time_s, &p->ntimes, &p->time_capacity) =
		time_us * 1e-6;
}

static int recognise(const char *text, size_t size)
{
	(void)size;
	return strstr(text, "algbw") != NULL || strstr(text, "alg_bw") != NULL;
}

/* --- the table ------------------------------------------------------------ */

enum { MOST_FIELDS = 16 };

/*
 * size count type redop [root] time algbw busbw #wrong time algbw busbw #wrong,
 * the last four in place.
 */
static int read_row(struct points *p, char *line, struct gf_error *err)
{
	char *fields[MOST_FIELDS], *end;
	size_t n = gf_import_words(line, fields, MOST_FIELDS), size;
	double time;

	if (n == 0)
		return 0;
	if (n != 12 && n != 13)
		return gf_error_set(err, -EINVAL,
				    "want 12 or 13 columns, got %zu", n);
	if (strcmp(fields[3], "none") == 0)
		return gf_error_set(err, -EINVAL,
				    "want the table of an all-reduce, got a "
				    "collective that reduces nothing");
	size = strtoull(fields[0], &end, 10);
	if (*end)
		return gf_error_set(err, -EINVAL,
				    "want a size in bytes, got \"%s\"",
				    fields[0]);
	time = strtod(fields[n - 4], &end);
	if (*end || !isfinite(time))
		return gf_error_set(err, -EINVAL,
				    "want a time in us, got \"%s\"",
				    fields[n - 4]);
	add_point(p, size, time);
	return 0;
}

static int is_rank_line(const char *line)
{
	int rank;
	char rest;

	return sscanf(line, "# Rank %d %c", &rank, &rest) == 2;
}

static int read_line(void *ctx, char *line, struct gf_error *err)
{
	struct points *p = ctx;

	if (*line != '#')
		return read_row(p, line, err);
	p->ranks += is_rank_line(line);
	return 0;
}

/* --- -J --------------------------------------------------------------------
 */

static int read_result(struct gf_json_at *results, size_t i, struct points *p,
		       struct gf_error *err)
{
	struct gf_json_at at = {0}, place = {0};
	size_t size;
	double time;
	int rc = gf_json_item_object(results, i, &at, err);

	if (rc == 0)
		rc = gf_json_size(&at, "size", 0, SIZE_MAX / 2, &size, err);
	if (rc == 0)
		rc = gf_json_object(&at,
				    gf_json_has(&at, "in_place")
					    ? "in_place"
					    : "out_of_place",
				    &place, err);
	if (rc == 0)
		rc = gf_json_real(&place, "time", 0, 1e15, &time, err);
	if (rc == 0)
		add_point(p, size, time);
	gf_json_leave(&place);
	gf_json_leave(&at);
	return rc;
}

static int read_json(const struct gf_import *in, struct points *p,
		     struct gf_error *err)
{
	struct gf_json *root = NULL;
	struct gf_json_at at = {0}, results;
	size_t count = 0, i;
	int rc = gf_json_parse(in->text, in->size, in->file, &root, err);

	if (rc == 0)
		rc = gf_json_root(root, in->file, &at, err);
	if (rc == 0)
		rc = gf_json_array(&at, "results", &results, &count, err);
	for (i = 0; i < count && rc == 0; i++)
		rc = read_result(&results, i, p, err);
	gf_json_leave(&at);
	gf_json_free(root);
	return rc;
}

/* --- both ------------------------------------------------------------------
 */

static int read_nccl_tests(const struct gf_import *in, struct gf_profile *out,
			   struct gf_text *remarks, struct gf_error *err)
{
	struct points p = {0};
	int rc = in->text[strspn(in->text, " \t\r\n")] == '{'
			 ? read_json(in, &p, err)
			 : gf_import_lines(in, read_line, &p, err);

	if (in->ranks > 0)
		p.ranks = in->ranks;
	if (rc == 0 && p.ranks == 0)
		rc = gf_import_want_ranks(in, err);
	if (rc == 0) {
		struct gf_import_points points = {p.nsizes, p.size_bytes,
						  p.time_s};

		out->network = gf_xcalloc(1, sizeof(*out->network));
		out->network->ranks = p.ranks;
		/* what MPI or NCCL chose to do */
		rc = gf_import_curve(in, "library", &points, out->network,
				     remarks, err);
	}
	free(p.size_bytes);
	free(p.time_s);
	return rc;
}

const struct gf_importer gf_importer_nccl_tests = {
	.name = "nccl-tests",
	.description = "all_reduce_perf's table or its JSON (-J)",
	.recognise = recognise,
	.read = read_nccl_tests,
};
