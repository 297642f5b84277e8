/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The JSON Lines of gf-allreduce (--table=json). Times in place are taken, for that is how
 * gradients are reduced. Every algorithm becomes an entry of its own, with its factors and stages.
 * Rows of codecs, of sparse sets, of several messages at once and of a whole plan say nothing about
 * one dense message, and are left out.
 */
#include "imports/importers.h"

#include <float.h>
#include <limits.h>
#include <string.h>

#include "base/heap.h"
#include "base/log_lines.h"
#include "imports/readings.h"
#include "json/json.h"

/* A key of JSON Lines. */
static const char record_has[] = "busbw_bytes_per_s";

static bool is(struct gf_json_at *at, const char *name, const char *want)
{
	GF_FREED char *word = gf_json_word(at, name);

	return strcmp(word, want) == 0;
}

/* A codec of its own is what the elements are not. */
static bool plain_numbers(struct gf_json_at *at)
{
	GF_FREED char *codec = gf_json_word(at, "codec");

	return is(at, "dtype", codec);
}

static int read_record(void *ctx, struct gf_json_at *at, size_t line, struct gf_error *err)
{
	struct gf_readings *all = ctx;
	int ranks, lanes, rc;
	double size, time, density;
	double wrong = 0, p25 = 0, p75 = 0;
	GF_FREED char *algorithm = NULL, *factors = NULL, *stages = NULL, *both = NULL,
		      *variant = NULL, *library = NULL;
	int per_host = 0, collective = GF_COLL_WHOLE;
	struct gf_reading r;

	if (!gf_json_has(at, record_has)) {
		gf_imported_leave(all->imported, "records of other programs", line);
		return 0;
	}
	rc = gf_json_int(at, "ranks", 1, INT_MAX, &ranks, err);
	if (!is(at, "placement", "in_place"))
		return rc;
	rc = rc ?: gf_json_real(at, "size_bytes", 0, 0x1p62, &size, err);
	rc = rc ?: gf_json_real(at, "time_s", 0, 1e12, &time, err);
	rc = rc ?: gf_json_real(at, "density", 0, 1, &density, err);
	rc = rc ?: gf_json_int(at, "lanes", 1, INT_MAX, &lanes, err);
	if (rc)
		return rc;
	/* an old file does not say it */
	if (gf_json_has(at, "collective"))
		rc = gf_json_choice(at, "collective", gf_coll_half_names, &collective, err);
	if (rc)
		return rc;
	/* null, or nothing, where nothing was checked */
	gf_json_real(at, "wrong", 0, DBL_MAX, &wrong, NULL);
	gf_json_real(at, "p25_s", 0, 1e12, &p25, NULL);
	gf_json_real(at, "p75_s", 0, 1e12, &p75, NULL);
	gf_json_int(at, "ranks_per_host", 1, INT_MAX, &per_host, NULL);
	algorithm = gf_json_word(at, "chosen");
	variant = gf_json_word(at, "variant");
	library = gf_json_word(at, "library");
	factors = gf_json_word(at, "factors");
	stages = gf_json_word(at, "stages");
	both = gf_xasprintf("%s%s%s", factors, stages[0] ? ":" : "", stages);
	r = (struct gf_reading){
		.ranks = ranks,
		.collective = (enum gf_coll_half)collective,
		.size_bytes = (size_t)size,
		.time_s = time,
		.spread_s = p75 - p25,
		.algorithm = algorithm,
		.factors = both,
		.variant = variant[0] ? variant : NULL,
		.library = library,
		/* 0: not known, for hosts differ */
		.hosts = per_host && ranks % per_host == 0 ? ranks / per_host : 0,
		.dense = density == 1 && lanes == 1 && plain_numbers(at) &&
			 !is(at, "algorithm", "plan"),
		.wrong = wrong,
		.place = line,
	};
	if (!algorithm[0])
		rc = gf_json_refuse(at, "chosen", err, "want an algorithm, got none");
	else if ((rc = gf_readings_take(all, &r, err)))
		gf_error_prefix(err, "%s", at->file);
	return rc;
}

/* Its table, too, though it has no records: nccl-tests' reader would take it.
 */
static int recognise(const char *text)
{
	return strstr(text, record_has) || gf_log_has_line(text, " algorithm ", "algbw");
}

static int read_allreduce(const struct gf_import *in, struct gf_profile *out,
			  struct gf_text *remarks, struct gf_error *err)
{
	GF_RELEASED(gf_readings_release) struct gf_readings all = {.imported = in->imported};
	int rc;

	if (recognise(in->text) && !strstr(in->text, "\"busbw_bytes_per_s\""))
		return gf_error_set(err, -EINVAL,
				    "%s: this is a table or CSV of gf-allreduce: give what "
				    "gf-allreduce --table=json prints",
				    in->file);
	rc = gf_import_records(in, read_record, &all, err);
	return rc ?: gf_readings_finish(&all, in, out, remarks, err);
}

/* MANUAL
 * what
 * .Xr gf-allreduce 1
 * prints with
 * .Fl -table Ns = Ns Cm json ;
 * each algorithm becomes an entry of its own for each of its factors and stages, on as many ranks
 * as the file says.
 * Rows of
 * .Cm library : Ns Ar variant
 * become variants of the library, which no plan uses.
 * Rows of codecs, sparse sets, several messages at once and whole plans are left out. */
const struct gf_importer gf_importer_allreduce = {
	.name = "gf-allreduce",
	.description = "what gf-allreduce prints",
	.place = 20,
	.recognise = recognise,
	.read = read_allreduce,
};
