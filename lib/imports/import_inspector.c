/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The JSON Lines of NCCL Inspector, NCCL's profiler plugin (formats 4.0 to 4.4): a record for each
 * collective that a rank of a communicator has run. The header with the communicator stands in each
 * record, or, from 4.3 on, in a marker in front of a rank's records.
 *
 * Files of several ranks are read one after the other. NCCL chose algorithm and protocol by size,
 * so that they are one curve; what it chose is told.
 */
#include "imports/importers.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "imports/collectives.h"
#include "imports/job.h"

struct inspector {
	struct gf_collectives all;
	struct gf_imported *imported;
	bool job; /* takes what is read, in place of `all`: */
	struct part {
		int rank; /* of its group */
		struct gf_import_job_message message;
	} * parts;
	size_t nparts, capacity;
	/* of the header that stands */
	uint64_t group;
	int ranks; /* 0: there was none */
	int rank;
};

static int recognise(const char *text)
{
	return strstr(text, "\"coll_perf\"") != NULL ||
	       strstr(text, "\"inspector_output_format_version\"") != NULL;
}

static void read_header(struct inspector *n, struct gf_json_at *at)
{
	struct gf_json_at header = {0}, meta = {0};
	GF_FREED char *id = NULL, *version = NULL;

	if (gf_json_object(at, "header", &header, NULL) == 0) {
		n->ranks = n->rank = 0;
		gf_json_int(&header, "n_ranks", 1, INT_MAX, &n->ranks, NULL);
		gf_json_int(&header, "rank", 0, INT_MAX, &n->rank, NULL);
		gf_json_string(&header, "id", &id, NULL);
		n->group = gf_collectives_group(id ? id : "", n->ranks);
	}
	if (!n->imported->version && gf_json_object(at, "metadata", &meta, NULL) == 0 &&
	    gf_json_string(&meta, "inspector_output_format_version", &version, NULL) == 0)
		n->imported->version = gf_xstrdup(version);
	gf_json_leave(&header);
	gf_json_leave(&meta);
}

/* "RING LL"; NULL: neither is said. The caller frees. */
static char *choice_of(struct gf_json_at *perf)
{
	GF_FREED char *algorithm = NULL, *protocol = NULL;

	gf_json_string(perf, "coll_algo", &algorithm, NULL);
	gf_json_string(perf, "coll_proto", &protocol, NULL);
	if (!algorithm && !protocol)
		return NULL;
	return gf_xasprintf("%s%s%s", algorithm ? algorithm : "", algorithm && protocol ? " " : "",
			    protocol ? protocol : "");
}

static void add_part(struct inspector *n, const struct gf_collective *r, const char *name)
{
	*gf_array_push(&n->parts, &n->nparts, &n->capacity) = (struct part){
		n->rank,
		{
			.group = r->group,
			.ranks = r->ranks,
			.sequence = r->sequence,
			.kind = gf_collective_kind(name),
			.size_bytes = r->size_bytes,
			.ready_s = NAN,
			.end_s = r->time_s,
		},
	};
}

static int read_perf(struct inspector *n, struct gf_json_at *perf, size_t line,
		     struct gf_error *err)
{
	struct gf_collective r = {.group = n->group, .ranks = n->ranks, .place = line};
	GF_FREED char *name = NULL, *source = NULL, *choice = NULL;
	const char *left = NULL;
	double time_us = 0;
	int rc = gf_json_string(perf, "coll", &name, err);

	gf_json_string(perf, "coll_timing_source", &source, NULL);
	if (rc == 0 && !n->job && gf_collective_kind(name) != GF_COLLECTIVE_ALL_REDUCE)
		left = "other collectives";
	else if (source && strstr(source, "cpu"))
		left = "collectives timed by the host";
	if (left)
		gf_imported_leave(n->imported, left, line);
	if (rc || left)
		return rc;
	rc = gf_json_size(perf, "coll_msg_size_bytes", 0, SIZE_MAX / 2, &r.size_bytes, err);
	rc = rc ?: gf_json_real(perf, "coll_exec_time_us", 0, 1e15, &time_us, err);
	if (rc == 0 && !n->ranks)
		rc = gf_json_refuse(perf, NULL, err, "want a header with n_ranks before it");
	if (rc)
		return rc;
	r.sequence = line; /* none: a collective of its own */
	gf_json_size(perf, "coll_sn", 0, SIZE_MAX / 2, &r.sequence, NULL);
	r.time_s = 1e-6 * time_us;
	if (n->job) {
		add_part(n, &r, name);
		return 0;
	}
	choice = choice_of(perf);
	gf_collectives_add(&n->all, &r, choice);
	return 0;
}

static int read_record(void *ctx, struct gf_json_at *at, size_t line, struct gf_error *err)
{
	struct inspector *n = ctx;
	struct gf_json_at perf = {0}, stats = {0};
	size_t dropped = 0;
	int rc;

	read_header(n, at);
	if (gf_json_object(at, "coll_perf", &perf, NULL) == 0) {
		rc = read_perf(n, &perf, line, err);
		gf_json_leave(&perf);
		return rc;
	}
	if (gf_json_object(at, "dump_stats", &stats, NULL) < 0)
		gf_imported_leave(n->imported, "records of no collective", line);
	else if (gf_json_size(&stats, "coll_dropped_since_last_dump", 1, SIZE_MAX / 2, &dropped,
			      NULL) == 0)
		gf_imported_leave(n->imported,
				  "dumps before which the Inspector had lost collectives", line);
	gf_json_leave(&stats);
	return 0;
}

static int read_inspector(const struct gf_import *in, struct gf_profile *out,
			  struct gf_text *remarks, struct gf_error *err)
{
	struct inspector n = {.imported = in->imported, .all.imported = in->imported};
	int rc = gf_import_records(in, read_record, &n, err);

	if (rc == 0) {
		gf_collectives_match(&n.all, in->file, in->ranks, remarks);
		rc = gf_collectives_finish(&n.all, in, out, remarks, err);
	}
	gf_collectives_release(&n.all);
	return rc;
}

GF_ORDER(by_rank, struct part, GF_BY(x->message.group, y->message.group) ?: GF_BY(x->rank, y->rank))

/* A header has the rank within its group. A file with several groups is that of one rank of the
 * job, by the file's number. */
static int add_parts(struct inspector *n, const struct gf_import *in, struct gf_import_job *job,
		     struct gf_error *err)
{
	struct part *p = n->parts;
	struct gf_import_job_rank *r = NULL;
	bool several = false;

	if (n->nparts) {
		qsort(p, n->nparts, sizeof(*p), by_rank);
		several = p[0].message.group != p[n->nparts - 1].message.group;
	}
	if (several) {
		r = gf_import_job_new_rank(job, in->rank, in->file, err);
		if (!r)
			return -EINVAL;
	}
	for (size_t i = 0; i < n->nparts; i++) {
		if (several && i && p[i].rank != p[i - 1].rank &&
		    p[i].message.group == p[i - 1].message.group)
			return gf_error_set(err, -EINVAL,
					    "%s: want a file for each rank, since it has several "
					    "groups, got ranks %d and %d of one",
					    in->file, p[i - 1].rank, p[i].rank);
		if (!several && (i == 0 || p[i].rank != p[i - 1].rank))
			r = gf_import_job_rank(job, p[i].rank);
		gf_import_job_add_message(r, &p[i].message);
	}
	return 0;
}

static int read_job(const struct gf_import *in, struct gf_import_job *job, struct gf_error *err)
{
	struct inspector n = {.imported = in->imported, .job = true};
	int rc = gf_import_records(in, read_record, &n, err);

	rc = rc ?: add_parts(&n, in, job, err);
	free(n.parts);
	return rc;
}

/* MANUAL
 * the JSON Lines of NCCL Inspector (formats 4.0 to 4.4), in one file, or in a folder that has a
 * file for each rank.
 * Lines are then counted through all files, in the order of their names.
 * An all-reduce takes as long as on the rank that waited least, and a size takes the median of
 * its all-reduces; one that some rank's file does not hold is left out.
 * Of several communicators the one with the most ranks counts, or with as many as
 * .Fl -ranks
 * says. */
const struct gf_importer gf_importer_inspector = {
	.name = "inspector",
	.description = "NCCL Inspector's JSON Lines",
	.place = 80,
	.folders = true,
	.recognise = recognise,
	.read = read_inspector,
	.job = read_job,
};
