/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The JSON Lines of NCCL Inspector, NCCL's profiler plugin (formats 4.0
 * to 4.4): a record for each collective that a rank of a communicator has run.
 * The header with the communicator stands in each record, or, from 4.3 on, in a
 * marker in front of a rank's records.
 *
 * A rank's time holds its wait for the last rank to come, so a collective's
 * time is that of the rank that waited least: records of several ranks, one
 * file after the other, are matched by communicator and sequence number. A size
 * has the median of its collectives. NCCL chose algorithm and protocol by size,
 * so that they are one curve; what it chose is told.
 */
#include "import/importers.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "import/readings.h"

struct record {
	uint64_t comm; /* a number for its name and ranks */
	size_t sequence, size_bytes, line;
	double time_s;
	int ranks, choice;
};

enum { CHOICES_MOST = 64 }; /* NCCL has half as many */

/* "RING LL", and how many collectives it ran. */
struct choice {
	char *name;
	size_t count;
};

struct inspector {
	struct record *records;
	struct choice *choices;
	size_t nrecords, record_capacity, nchoices, choice_capacity;
	struct gf_imported *imported;
	/* of the header that stands */
	uint64_t comm;
	int ranks; /* 0: there was none */
};

static int recognise(const char *text, size_t size)
{
	(void)size;
	return strstr(text, "\"coll_perf\"") != NULL ||
	       strstr(text, "\"inspector_output_format_version\"") != NULL;
}

/* FNV-1a: two communicators of one run hardly ever share it. */
static uint64_t hash(uint64_t h, const char *text)
{
	while (*text)
		h = (h ^ (unsigned char)*text++) * 0x100000001b3u;
	return h;
}

static void read_header(struct inspector *n, struct gf_json_at *at)
{
	struct gf_json_at header = {0}, meta = {0};
	char *id = NULL, *version = NULL;

	if (gf_json_object(at, "header", &header, NULL) == 0) {
		n->ranks = 0;
		gf_json_int(&header, "n_ranks", 1, INT_MAX, &n->ranks, NULL);
		gf_json_string(&header, "id", &id, NULL);
		n->comm = hash(0xcbf29ce484222325u + (uint64_t)n->ranks,
			       id ? id : "");
	}
	if (!n->imported->version &&
	    gf_json_object(at, "metadata", &meta, NULL) == 0 &&
	    gf_json_string(&meta, "inspector_output_format_version", &version,
			   NULL) == 0)
		n->imported->version = gf_xstrdup(version);
	free(id);
	free(version);
	gf_json_leave(&header);
	gf_json_leave(&meta);
}

static int choice_of(struct inspector *n, struct gf_json_at *perf)
{
	char *algorithm = NULL, *protocol = NULL, *name;
	size_t i;

	gf_json_string(perf, "coll_algo", &algorithm, NULL);
	gf_json_string(perf, "coll_proto", &protocol, NULL);
	name = gf_xasprintf("%s %s", algorithm ? algorithm : "unknown",
			    protocol ? protocol : "unknown");
	free(algorithm);
	free(protocol);
	for (i = 0; i < n->nchoices; i++)
		if (strcmp(n->choices[i].name, name) == 0)
			break;
	if (i < n->nchoices || i == CHOICES_MOST)
		free(name);
	else
		gf_array_push(&n->choices, &n->nchoices, &n->choice_capacity)
			->name = name;
	return (int)(i < CHOICES_MOST ? i : CHOICES_MOST - 1);
}

static int read_perf(struct inspector *n, struct gf_json_at *perf, size_t line,
		     struct gf_error *err)
{
	struct record r = {.comm = n->comm, .ranks = n->ranks, .line = line};
	char *collective = NULL, *source = NULL;
	double time_us = 0;
	int rc = gf_json_string(perf, "coll", &collective, err);

	if (rc == 0 && strcmp(collective, "AllReduce") != 0) {
		gf_imported_leave(n->imported, "other collectives", line);
		free(collective);
		return 0;
	}
	free(collective);
	gf_json_string(perf, "coll_timing_source", &source, NULL);
	if (source && strstr(source, "cpu")) {
		gf_imported_leave(n->imported, "all-reduces timed by the host",
				  line);
		free(source);
		return rc;
	}
	free(source);
	if (rc == 0)
		rc = gf_json_size(perf, "coll_msg_size_bytes", 0, SIZE_MAX / 2,
				  &r.size_bytes, err);
	if (rc == 0)
		rc = gf_json_real(perf, "coll_exec_time_us", 0, 1e15, &time_us,
				  err);
	if (rc == 0 && !n->ranks)
		rc = gf_json_refuse(perf, NULL, err,
				    "want a header with n_ranks before it");
	if (rc)
		return rc;
	r.sequence = line; /* none: a collective of its own */
	gf_json_size(perf, "coll_sn", 0, SIZE_MAX / 2, &r.sequence, NULL);
	r.time_s = 1e-6 * time_us;
	r.choice = choice_of(n, perf);
	*gf_array_push(&n->records, &n->nrecords, &n->record_capacity) = r;
	return 0;
}

static int read_record(void *ctx, struct gf_json_at *at, size_t line,
		       struct gf_error *err)
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
		gf_imported_leave(n->imported, "records of no collective",
				  line);
	else if (gf_json_size(&stats, "coll_dropped_since_last_dump", 1,
			      SIZE_MAX / 2, &dropped, NULL) == 0)
		gf_imported_leave(n->imported,
				  "dumps before which the Inspector had lost "
				  "collectives",
				  line);
	gf_json_leave(&stats);
	return 0;
}

/* --- one time for each size ----------------------------------------------- */

/* Each collective's ranks together, the shortest time first. */
static int by_collective(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	if (x->size_bytes != y->size_bytes)
		return x->size_bytes < y->size_bytes ? -1 : 1;
	return (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

static int by_size(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->size_bytes != y->size_bytes)
		return x->size_bytes < y->size_bytes ? -1 : 1;
	return (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

/* The ranks that are told, or those of the largest communicator. */
static int ranks_of(const struct inspector *n, int told)
{
	size_t i;
	int most = 0;

	for (i = 0; i < n->nrecords; i++) {
		if (n->records[i].ranks == told)
			return told;
		if (n->records[i].ranks > most)
			most = n->records[i].ranks;
	}
	return most;
}

/* False: no collective stands there twice, by two ranks. */
static bool keep_collectives(struct inspector *n, int ranks)
{
	size_t i, kept = 0, of_ranks = 0;
	struct record *r = n->records;

	if (n->nrecords)
		qsort(r, n->nrecords, sizeof(*r), by_collective);
	for (i = 0; i < n->nrecords; i++) {
		if (r[i].ranks != ranks) {
			gf_imported_leave(n->imported,
					  "all-reduces of fewer or more ranks",
					  r[i].line);
			continue;
		}
		of_ranks++;
		if (!kept || r[i].comm != r[kept - 1].comm ||
		    r[i].sequence != r[kept - 1].sequence ||
		    r[i].size_bytes != r[kept - 1].size_bytes) {
			n->choices[r[i].choice].count++;
			r[kept++] = r[i];
		}
	}
	n->nrecords = kept;
	if (kept)
		qsort(r, kept, sizeof(*r), by_size);
	return of_ranks > kept;
}

static int take_medians(struct inspector *n, struct gf_readings *all,
			struct gf_error *err)
{
	size_t i, end;
	int rc = 0;

	for (i = 0; i < n->nrecords && rc == 0; i = end) {
		const struct record *r = &n->records[i];
		struct gf_reading reading = {
			.ranks = r->ranks,
			.size_bytes = r->size_bytes,
			.algorithm = "library",
			.factors = "",
			.dense = true,
			.place = r->line,
		};

		for (end = i; end < n->nrecords &&
			      n->records[end].size_bytes == r->size_bytes;
		     end++)
			;
		reading.time_s = (r[(end - i - 1) / 2].time_s +
				  r[(end - i) / 2].time_s) /
				 2;
		rc = gf_readings_take(all, &reading, err);
	}
	return rc;
}

static void tell_choices(const struct inspector *n)
{
	size_t i;

	for (i = 0; i < n->nchoices; i++)
		if (n->choices[i].count)
			gf_imported_find(n->imported, "%zu by %s",
					 n->choices[i].count,
					 n->choices[i].name);
}

static int read_inspector(const struct gf_import *in, struct gf_profile *out,
			  struct gf_text *remarks, struct gf_error *err)
{
	struct inspector n = {.imported = in->imported};
	struct gf_readings all = {.imported = in->imported};
	size_t i;
	int rc = gf_import_records(in, read_record, &n, err);

	if (rc == 0) {
		if (!keep_collectives(&n, ranks_of(&n, in->ranks)) &&
		    n.nrecords)
			gf_text_addf(
				remarks,
				"%s: it has the records of one rank, whose "
				"times hold its waits for the others: give "
				"the folder with all ranks' files\n",
				in->file);
		gf_imported_find(in->imported, "%zu all-reduces", n.nrecords);
		tell_choices(&n);
		rc = take_medians(&n, &all, err);
	}
	if (rc == 0) {
		out->network = gf_xcalloc(1, sizeof(*out->network));
		rc = gf_readings_finish(&all, in, out->network, remarks, err);
	}
	for (i = 0; i < n.nchoices; i++)
		free(n.choices[i].name);
	free(n.choices);
	free(n.records);
	gf_readings_release(&all);
	return rc;
}

const struct gf_importer gf_importer_inspector = {
	.name = "inspector",
	.description = "NCCL Inspector's JSON Lines",
	.folders = true,
	.recognise = recognise,
	.read = read_inspector,
};
