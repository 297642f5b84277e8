/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_IMPORTS_NCCL_RUN_H
#define GF_IMPORTS_NCCL_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "documents/library_tuning.h"
#include "imports/importers.h"

/*
 * The runs of benchmarks in a log, as nccl-tests': their rows, and which of them is an all-reduce,
 * a reduce-scatter or an all-gather on how many ranks. Zero-initialise, and set `imported` and the
 * library; the owner calls gf_nccl_release.
 */
struct gf_nccl_row {
	size_t size_bytes, line;
	char type[32]; /* with the redop */
	bool reduces;
	int root; /* -1: none */
	/* in place; NAN: not said. Half of the last digit that is printed */
	double time_us, algbw, busbw, algbw_half, busbw_half;
	double wrong; /* the greater of the two places; NAN */
};

/* What NCCL was told; "": nothing. */
struct gf_nccl_told {
	char algorithm[32], protocol[32], channels[32]; /* at most so many */
	char least[32];                                 /* channels */
};

struct gf_nccl_run {
	char program[64];        /* "all_reduce_perf"; "": not said */
	size_t line;             /* where it begins */
	size_t first, nrows;     /* of the log's rows */
	bool sweeps;             /* the program goes over ranks */
	long long out_of_bounds; /* as the last line counts them */
	/* Lists of ranks: how many of the first one's group, whether there are other groups, and
	 * the number behind the highest. */
	int listed, group, end;
	bool split;
	void *names; /* of the hosts, for tsearch */
	int hosts;
	struct gf_nccl_told told;
};

struct gf_nccl_log {
	struct gf_nccl_run *runs;
	struct gf_nccl_row *rows;
	size_t nruns, run_capacity, nrows, row_capacity;
	struct gf_nccl_told told; /* before the next table */
	char library[48];         /* "NCCL 2.28.9"; "NCCL": no more is said */
	bool parts;               /* the sizes of an all-gather are one rank's */
	struct gf_imported *imported;
};

/* The run that stands, or a new one if that has rows. Valid until the next call. */
struct gf_nccl_run *gf_nccl_begin(struct gf_nccl_log *log, size_t line);
/* From a path, as in a command line. */
void gf_nccl_name(struct gf_nccl_run *run, const char *path);
/* A process that begins with that rank and has `count` of them. */
void gf_nccl_list_rank(struct gf_nccl_run *run, int rank, int group, int count);
/* What a line of nccl-tests says of a run before its rows; and variables of the
 * environment and NCCL's version. false: nothing of a run. */
bool gf_nccl_note_run(struct gf_nccl_log *log, const char *line, size_t number);
/* A row of the run that stands. */
void gf_nccl_add(struct gf_nccl_log *log, const struct gf_nccl_row *row);

/* The first run of each collective is the cost of the algorithm "library", or of a program's sweep
 * the one on in->ranks, or on most. Each run of an all-reduce is a variant, too, if the log has
 * NCCL's settings. */
int gf_nccl_finish(struct gf_nccl_log *log, const struct gf_import *in, struct gf_profile *out,
		   struct gf_text *remarks, struct gf_error *err);
void gf_nccl_release(struct gf_nccl_log *log);

#endif
